"""What everyone asks about code bundles; each is part of the caller's transaction."""

from sqlalchemy import Connection

from service.bundles import store
from service.bundles.model import BundleRow
from service.http.errors import NotFoundError


def is_there(connection: Connection, account_id: str, sha256: str) -> bool:
    """Whether the account has sent this bundle."""
    return store.find(connection, account_id, sha256) is not None


def find(connection: Connection, account_id: str, sha256: str) -> BundleRow:
    """A bundle of the account.

    Raises:
        NotFoundError: it has not been sent.
    """
    row = store.find(connection, account_id, sha256)
    if row is None:
        raise NotFoundError("There is no code bundle with this SHA-256; send it with PUT.")
    return row


def put(connection: Connection, account_id: str, row: BundleRow) -> BundleRow:
    """Note a bundle whose file is in its place."""
    store.put(connection, account_id, row)
    return row
