"""SQL of alert states and alerts."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update

from contract.checks import CheckType
from service.alerting.model import (
    Alert,
    AlertFilter,
    AlertState,
    AlertType,
    Certificate,
    Level,
    LocationAlert,
    Mismatch,
    Silence,
    StoredAlert,
    StoredState,
)
from service.db.tables.alerting import (
    alert_state,
    check_alert,
    location_alert,
)

_MOST: Final = 1_000
"""How many checks a statement asks for."""
_STATES: Final = select(alert_state).where(
    alert_state.c.check_id.in_(bindparam("check_ids", expanding=True))
)
_DUE: Final = (
    select(alert_state)
    .where(alert_state.c.timer_ms <= bindparam("now_ms"))
    .order_by(alert_state.c.timer_ms)
    .limit(bindparam("most"))
)
_FORGET: Final = delete(alert_state).where(alert_state.c.check_id == bindparam("forgotten"))
_UPDATE: Final = update(alert_state).where(alert_state.c.check_id == bindparam("changed"))
_PUT_OFF: Final = _UPDATE.values(timer_ms=bindparam("until_ms"))
_STATE_FIELDS: Final = tuple(field.name for field in fields(AlertState))
_OTHER_FIELDS: Final = tuple(field.name for field in fields(StoredState) if field.name != "state")
_LEVELS: Final = frozenset({"level", "recorded", "notified"})
_NEWEST_FIRST: Final = (check_alert.c.created_ms.desc(), check_alert.c.serial.desc())
_IN_WINDOW: Final[Select[Any]] = (
    select(check_alert)
    .where(
        check_alert.c.account_id == bindparam("account_id"),
        check_alert.c.created_ms >= bindparam("from_ms"),
        check_alert.c.created_ms < bindparam("to_ms"),
    )
    .order_by(*_NEWEST_FIRST)
)
_OF_CHECK: Final = _IN_WINDOW.where(check_alert.c.check_id == bindparam("check_id"))
_OF_LOCATIONS: Final[Select[Any]] = (
    select(location_alert)
    .where(location_alert.c.account_id == bindparam("account_id"))
    .order_by(location_alert.c.created_ms.desc(), location_alert.c.id.desc())
)


def find_states(connection: Connection, check_ids: Sequence[str]) -> dict[str, StoredState]:
    """The states of those checks that are not clean."""
    found: dict[str, StoredState] = {}
    for start in range(0, len(check_ids), _MOST):
        rows = connection.execute(_STATES, {"check_ids": check_ids[start : start + _MOST]})
        found |= {row.check_id: _read_state(row) for row in rows}
    return found


def list_due(connection: Connection, *, now_ms: int, limit: int) -> dict[str, StoredState]:
    """The states whose timers are due, the longest waiting first."""
    rows = connection.execute(_DUE, {"now_ms": now_ms, "most": limit})
    return {row.check_id: _read_state(row) for row in rows}


def put_state(connection: Connection, check_id: str, stored: StoredState, *, is_new: bool) -> None:
    """Store a state, or forget it if it is clean; `is_new`: none of the check is stored."""
    if stored.is_clean:
        if not is_new:
            connection.execute(_FORGET, {"forgotten": check_id})
        return
    values = _write_state(stored)
    if is_new:
        connection.execute(insert(alert_state), {"check_id": check_id, **values})
    else:
        connection.execute(_UPDATE.values(**values), {"changed": check_id})


def put_off(connection: Connection, check_id: str, *, until_ms: int) -> None:
    """Have a check's timer due then."""
    connection.execute(_PUT_OFF, {"changed": check_id, "until_ms": until_ms})


def _write_state(stored: StoredState) -> dict[str, Any]:
    values = {name: getattr(stored.state, name) for name in _STATE_FIELDS}
    of_state = {name: value.value if name in _LEVELS else value for name, value in values.items()}
    return {**of_state, **{name: getattr(stored, name) for name in _OTHER_FIELDS}}


def _read_state(row: Row[Any]) -> StoredState:
    values: dict[str, Any] = {
        name: Level(getattr(row, name)) if name in _LEVELS else getattr(row, name)
        for name in _STATE_FIELDS
    }
    others = {name: getattr(row, name) for name in _OTHER_FIELDS}
    return StoredState(state=AlertState(**values), **others)


def add_alert(connection: Connection, stored: StoredAlert) -> None:
    """Store an alert."""
    alert = stored.alert
    row = {
        **asdict(alert),
        "check_type": alert.check_type.value,
        "alert_type": alert.alert_type.value,
        "notified": stored.notified,
        "silence": stored.silence and stored.silence.value,
        "window": stored.window,
    }
    connection.execute(insert(check_alert), row)


def list_alerts(
    connection: Connection, wanted: AlertFilter, *, limit: int, offset: int
) -> tuple[StoredAlert, ...]:
    """A page of the alerts of a window, newest first."""
    query, values = _IN_WINDOW, asdict(wanted)
    if values.pop("check_id") is not None:
        query, values = _OF_CHECK, asdict(wanted)
    return tuple(map(_read_alert, connection.execute(query.limit(limit).offset(offset), values)))


def _read_alert(row: Row[Any]) -> StoredAlert:
    names = {field.name for field in fields(Alert)}
    values = {name: getattr(row, name) for name in names}
    values |= {
        "check_type": CheckType(row.check_type),
        "alert_type": AlertType(row.alert_type),
        "mismatch": Mismatch(**row.mismatch) if row.mismatch else None,
        "certificate": Certificate(**row.certificate) if row.certificate else None,
        **{
            name: tuple(getattr(row, name))
            for name in ("tags", "failing_locations", "passing_locations", "artifacts")
        },
    }
    return StoredAlert(
        alert=Alert(**values),
        notified=row.notified,
        silence=Silence(row.silence) if row.silence else None,
        window=row.window,
    )


def add_location_alert(connection: Connection, alert: LocationAlert) -> None:
    """Store an alert about a location."""
    connection.execute(insert(location_alert), asdict(alert))


def list_location_alerts(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> tuple[LocationAlert, ...]:
    """A page of the account's alerts about locations, newest first."""
    query = _OF_LOCATIONS.limit(limit).offset(offset)
    rows = connection.execute(query, {"account_id": account_id})
    return tuple(
        LocationAlert(**{**row._mapping, "check_names": tuple(row.check_names)})  # noqa: SLF001 - SQLAlchemy's documented face of a row
        for row in rows
    )


_OLDEST: Final = (
    select(check_alert.c.serial, check_alert.c.created_ms)
    .order_by(check_alert.c.serial)
    .limit(bindparam("most"))
)
_OLDEST_OF_LOCATIONS: Final = (
    select(location_alert.c.id, location_alert.c.created_ms)
    .order_by(location_alert.c.id)
    .limit(bindparam("most"))
)
_REMOVE: Final = delete(check_alert).where(check_alert.c.serial == bindparam("gone"))
_REMOVE_OF_LOCATION: Final = delete(location_alert).where(location_alert.c.id == bindparam("gone"))


def remove_before(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove the oldest alerts, of checks and locations, that were made before; how many went."""
    gone = 0
    for oldest, remove in ((_OLDEST, _REMOVE), (_OLDEST_OF_LOCATIONS, _REMOVE_OF_LOCATION)):
        # Both are numbered in the order in which they are made.
        found = connection.execute(oldest, {"most": most - gone}).all()
        old = [{"gone": number} for number, created_ms in found if created_ms < before_ms]
        if old:
            connection.execute(remove, old)
        gone += len(old)
    return gone
