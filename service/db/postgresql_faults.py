"""What a failure of PostgreSQL means; without its driver, which an embedded database has not."""

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, cast

from sqlalchemy import Connection

if TYPE_CHECKING:
    import psycopg


class Fault(Enum):
    """Whose fault it is that a change failed, if not its own."""

    CONFLICT = auto()
    """Another change was in the way."""
    CONNECTION = auto()
    """The server is away, or has ended the connection."""
    DISK = auto()
    """The server's disk is full or fails."""


_BY_CODE: Final = {
    "40001": Fault.CONFLICT,  # serialization_failure
    "40P01": Fault.CONFLICT,  # deadlock_detected
    "55P03": Fault.CONFLICT,  # lock_not_available, also after `lock_timeout`
    "57014": Fault.CONFLICT,  # query_canceled, after `statement_timeout`
    "25006": Fault.CONNECTION,  # read_only_sql_transaction: no primary any more
    "25P03": Fault.CONNECTION,  # idle_in_transaction_session_timeout
    "53300": Fault.CONNECTION,  # too_many_connections
    "53100": Fault.DISK,  # disk_full
    "58030": Fault.DISK,  # io_error
}
_BY_CLASS: Final = {
    "08": Fault.CONNECTION,  # connection exceptions
    "57": Fault.CONNECTION,  # operator intervention: shut down, crashed, starting
}


def driver(connection: Connection) -> "psycopg.Connection":
    """The driver's own connection, for statements that are too hot for anything above it."""
    return cast("psycopg.Connection", connection.connection.driver_connection)


def fault_of(problem: BaseException) -> Fault | None:
    """The fault behind an exception, wrapped by SQLAlchemy or not. None: it is the change's own."""
    origin = getattr(problem, "orig", problem)
    code = getattr(origin, "sqlstate", None)
    if code is not None:
        return _BY_CODE.get(code) or _BY_CLASS.get(code[:2])
    # The driver's errors have no code where no server answered.
    is_drivers = type(origin).__module__.startswith("psycopg")
    return Fault.CONNECTION if is_drivers and type(origin).__name__ == "OperationalError" else None
