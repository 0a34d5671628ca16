"""Parts of a change that may fail for themselves."""

from collections.abc import Callable

from sqlalchemy import Connection

from service.db.engine import forget_notices, restore_later
from service.db.postgresql_faults import fault_of
from service.db.sqlite_group import is_disk_fault


def attempt(connection: Connection, part: Callable[[], None]) -> Exception | None:
    """Make a part of the running change; what it failed by, and then nothing of it is left.

    Where the database is at fault the whole change fails, as it does where the transaction is lost.
    """
    savepoint = connection.begin_nested()
    forget, restore = forget_notices(connection), restore_later(connection)
    try:
        part()
    except Exception as problem:
        if is_disk_fault(problem) or fault_of(problem) is not None:
            raise
        savepoint.rollback()
        forget()
        restore()
        return problem
    savepoint.commit()
    return None
