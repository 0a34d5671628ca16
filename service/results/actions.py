"""What everyone else asks about results, beside storing them (`recording`) and taking them in."""

from collections.abc import Sequence

from sqlalchemy import Connection

from service.results import store
from service.results.model import StoredResult


def of_session(connection: Connection, session_id: str) -> Sequence[StoredResult]:
    """The results of a session so far, without details, in the order of their runs."""
    return store.of_session(connection, session_id)
