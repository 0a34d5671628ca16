"""Which engine keeps the service's database."""

from pathlib import Path

from service.db.engine import Database
from service.db.sqlite import open_sqlite
from service.settings import PostgresUrl


def open_database(where: Path | PostgresUrl) -> Database:
    """Open a file, or the PostgreSQL database of an address; to be called on the event loop.

    Raises:
        DatabaseUnusableError: it cannot be reached, or is none that the service can use.
    """
    if isinstance(where, Path):
        return open_sqlite(where)
    from service.db.postgresql import open_postgresql  # noqa: PLC0415 - SQLite starts without it

    return open_postgresql(where.value)
