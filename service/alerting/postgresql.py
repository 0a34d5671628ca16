"""The one statement that every batch of results costs, on PostgreSQL, by the driver."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection

from service.db.postgresql_faults import driver

_STORED: Final = "SELECT check_id FROM alert_state WHERE check_id = ANY(%s)"


def find_stored(connection: Connection, check_ids: Collection[str]) -> set[str]:
    """Those of the checks that have a state."""
    return {row[0] for row in driver(connection).execute(_STORED, (list(check_ids),))}
