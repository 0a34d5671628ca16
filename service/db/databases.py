"""Which engine keeps the service's database."""

from pathlib import Path

from service.db.engine import Database, DatabaseUnusableError
from service.db.sqlite import open_sqlite
from service.settings import PostgresUrl


def open_database(where: Path | PostgresUrl) -> Database:
    """Open a file, or the PostgreSQL database of an address; to be called on the event loop.

    Raises:
        DatabaseUnusableError: it cannot be reached, or is none that the service can use.
    """
    if isinstance(where, Path):
        return open_sqlite(where)
    try:
        from service.db.postgresql import open_postgresql  # noqa: PLC0415 - an extra has its driver
    except ImportError as problem:
        mend = "install picket-monitoring[postgresql]"
        raise DatabaseUnusableError(f"there is no driver for PostgreSQL; {mend}") from problem
    return open_postgresql(where.value)
