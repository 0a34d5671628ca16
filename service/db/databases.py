"""Which engine keeps the service's database."""

from pathlib import Path

from service.db.engine import Database, DatabaseUnusableError
from service.db.sqlite import open_sqlite


def open_database(file: Path, postgresql_url: str | None) -> Database:
    """Open the PostgreSQL database of the address, or without one the file; on the event loop.

    Raises:
        DatabaseUnusableError: it cannot be reached, or is none that the service can use.
    """
    if postgresql_url is None:
        return open_sqlite(file)
    try:
        from service.db.postgresql import open_postgresql  # noqa: PLC0415 - an extra has its driver
    except ImportError as problem:
        mend = "install picket-monitoring[postgresql]"
        raise DatabaseUnusableError(f"there is no driver for PostgreSQL; {mend}") from problem
    return open_postgresql(postgresql_url)
