"""SQL of maintenance windows."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, insert, select, update

from service.db.engine import announce
from service.db.tables.alerting import maintenance_window as window
from service.incidents.model import StatusChanged
from service.maintenance.model import Timing, WindowFilter, WindowRow

_OF_ACCOUNT: Final = window.c.account_id == bindparam("account")
_ALL: Final[Select[Any]] = select(window).where(_OF_ACCOUNT).order_by(window.c.id)
_ONE: Final[Select[Any]] = select(window).where(_OF_ACCOUNT, window.c.id == bindparam("window"))
_BETWEEN: Final[Select[Any]] = _ALL.where(
    window.c.starts_ms < bindparam("end"), window.c.over_ms > bindparam("start")
)
_NOT_OVER: Final = select(func.count()).where(
    _OF_ACCOUNT, window.c.over_ms > bindparam("now"), window.c.id != bindparam("but")
)


def find(connection: Connection, account_id: str, window_id: int) -> WindowRow | None:
    """One window. None: the account has none with this id."""
    row = connection.execute(_ONE, {"account": account_id, "window": window_id}).first()
    return None if row is None else _read(row)


def list_page(
    connection: Connection, account_id: str, wanted: WindowFilter, *, limit: int, offset: int
) -> tuple[WindowRow, ...]:
    """A page of the account's windows, oldest first."""
    query = _ALL.limit(limit).offset(offset)
    if wanted.starts_from_ms is not None:
        query = query.where(window.c.starts_ms >= wanted.starts_from_ms)
    if wanted.ends_by_ms is not None:
        query = query.where(window.c.ends_ms <= wanted.ends_by_ms)
    return tuple(map(_read, connection.execute(query, {"account": account_id})))


def list_between(
    connection: Connection, account_id: str, from_ms: int, to_ms: int
) -> tuple[WindowRow, ...]:
    """The windows whose first occurrence begins before `to_ms` and whose last ends after `from_ms`.

    Whether they are open in between is not said.
    """
    rows = connection.execute(_BETWEEN, {"account": account_id, "start": from_ms, "end": to_ms})
    return tuple(map(_read, rows))


def count_not_over(connection: Connection, account_id: str, *, but: int, now_ms: int) -> int:
    """How many windows of the account have not closed for the last time, one left out."""
    found: int = connection.execute(
        _NOT_OVER, {"account": account_id, "but": but, "now": now_ms}
    ).scalar_one()
    return found


def add(connection: Connection, values: Mapping[str, Any]) -> int:
    """Store a new window; the mapping holds every column but the id, which comes back."""
    made = connection.execute(insert(window).values(**values)).inserted_primary_key
    announce(connection, StatusChanged())
    return int(made[0]) if made else 0


def change(connection: Connection, window_id: int, values: Mapping[str, Any]) -> None:
    """Change a window."""
    connection.execute(update(window).where(window.c.id == window_id).values(**values))
    announce(connection, StatusChanged())


def remove(connection: Connection, window_id: int) -> None:
    """Forget a window."""
    connection.execute(delete(window).where(window.c.id == window_id))
    announce(connection, StatusChanged())


def _read(row: Row[Any]) -> WindowRow:
    timing = Timing(
        starts_ms=row.starts_ms,
        ends_ms=row.ends_ms,
        rule=row.rule,
        time_zone=row.time_zone,
        over_ms=row.over_ms,
    )
    return WindowRow(
        id=row.id,
        name=row.name,
        tags=tuple(row.tags),
        is_announced=row.is_announced,
        timing=timing,
        repeat_interval=row.repeat_interval,
        repeat_unit=row.repeat_unit,
        repeat_ends_ms=row.repeat_ends_ms,
        rrule=row.rrule,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
    )
