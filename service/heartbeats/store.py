"""SQL of heartbeats and their pings."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, or_, select, update

from service.db.tables.checks import heartbeat, heartbeat_correction, ping
from service.heartbeats.model import Event, PingState

_WATCHED: Final = select(
    heartbeat.c.check_id,
    heartbeat.c.last_ping_ms,
    heartbeat.c.timer_started_ms,
    heartbeat.c.timer_reset_ms,
).where(heartbeat.c.token == bindparam("of_token"))
_OF_CHECK: Final = select(heartbeat.c.token).where(heartbeat.c.check_id == bindparam("check"))
_ADD: Final = insert(heartbeat)
_SET_TOKEN: Final = (
    update(heartbeat)
    .where(heartbeat.c.check_id == bindparam("check"))
    .values(token=bindparam("new_token"))
)
_SET_TIMER: Final = (
    update(heartbeat)
    .where(heartbeat.c.check_id == bindparam("check"))
    .values(last_ping_ms=bindparam("last_ms"), timer_started_ms=bindparam("started_ms"))
)
_RESET_TIMER: Final = (
    update(heartbeat)
    .where(heartbeat.c.check_id == bindparam("check"))
    .values(last_ping_ms=None, timer_started_ms=None, timer_reset_ms=bindparam("reset_ms"))
)
_NEWEST: Final = (
    select(ping.c.state)
    .where(ping.c.check_id == bindparam("check"))
    .order_by(ping.c.received_ms.desc(), ping.c.id.desc())
    .limit(1)
)
_TIMER: Final = select(heartbeat.c.last_ping_ms).where(heartbeat.c.check_id == bindparam("check"))
_LAST_PINGS: Final = select(heartbeat.c.check_id, heartbeat.c.last_ping_ms).where(
    heartbeat.c.check_id.in_(bindparam("check_ids", expanding=True)),
    heartbeat.c.last_ping_ms.is_not(None),
)
_PINGS: Final = ping.c.state != PingState.FAILING.value
# Since the timer was reset last: what came before has nothing to do with what comes after.
_NEIGHBOUR: Final = (
    select(ping.c.id, ping.c.received_ms)
    .join(heartbeat, heartbeat.c.check_id == ping.c.check_id)
    .where(
        ping.c.check_id == bindparam("check"),
        _PINGS,
        ping.c.id != bindparam("but"),
        ping.c.received_ms >= heartbeat.c.timer_started_ms,
    )
)
_BEFORE: Final = (
    _NEIGHBOUR.where(ping.c.received_ms <= bindparam("at_ms"))
    .order_by(ping.c.received_ms.desc())
    .limit(1)
)
_AFTER: Final = (
    _NEIGHBOUR.where(ping.c.received_ms > bindparam("at_ms")).order_by(ping.c.received_ms).limit(1)
)
_MARKS: Final = select(ping.c.id, ping.c.received_ms).where(
    ping.c.check_id == bindparam("check"),
    ~_PINGS,
    ping.c.received_ms >= bindparam("from_ms"),
    ping.c.received_ms < bindparam("to_ms"),
)
_SET_STATE: Final = (
    update(ping).where(ping.c.id == bindparam("event_id")).values(state=bindparam("new_state"))
)
_DROP: Final = delete(ping).where(ping.c.id == bindparam("event_id"))
_CORRECTED: Final = select(heartbeat_correction.c.result_id).where(
    heartbeat_correction.c.check_id == bindparam("check"),
    heartbeat_correction.c.result_ms >= bindparam("from_ms"),
    heartbeat_correction.c.result_ms < bindparam("to_ms"),
)
_FORGET_CORRECTIONS: Final = delete(heartbeat_correction).where(
    heartbeat_correction.c.check_id == bindparam("check"),
    heartbeat_correction.c.result_ms <= bindparam("last_ms"),
    or_(
        heartbeat_correction.c.result_ms < bindparam("last_ms"),
        heartbeat_correction.c.result_id.in_(bindparam("result_ids", expanding=True)),
    ),
)
_FORGET_CORRECTIONS_BEFORE: Final = delete(heartbeat_correction).where(
    heartbeat_correction.c.result_ms < bindparam("before_ms")
)
_CORRECT: Final = insert(heartbeat_correction)
_KNOWN: Final = select(ping.c.id).where(ping.c.id == bindparam("ping_id"))
_ADD_EVENT: Final = insert(ping)
_FORGET: Final = delete(ping).where(
    ping.c.check_id == bindparam("check"), ping.c.received_ms < bindparam("before_ms")
)


_OF_WINDOW: Final = (
    (ping.c.check_id == bindparam("check"))
    & (ping.c.received_ms >= bindparam("from_ms"))
    & (ping.c.received_ms < bindparam("to_ms"))
)
_EVENTS: Final = (
    select(ping)
    .where(_OF_WINDOW)
    .order_by(ping.c.received_ms.desc(), ping.c.id.desc())
    .limit(bindparam("most"))
)
_EVENT: Final = select(ping).where(
    ping.c.check_id == bindparam("check"), ping.c.id == bindparam("event_id")
)
_COUNTS: Final = (
    select(ping.c.state, func.count().label("number")).where(_OF_WINDOW).group_by(ping.c.state)
)


_GROUP: Final = 1_000
"""How many heartbeats a query covers."""


class EventTime(NamedTuple):
    """When an event was."""

    id: str
    at_ms: int


class Watched(NamedTuple):
    """A heartbeat that a token leads to."""

    check_id: str
    last_ping_ms: int | None
    """None: no ping since the timer was reset."""
    timer_started_ms: int | None
    """None: as above."""
    timer_reset_ms: int | None
    """None: never."""


def find_watched(connection: Connection, token: str) -> Watched | None:
    """The heartbeat of a token. None: there is none."""
    row = connection.execute(_WATCHED, {"of_token": token}).one_or_none()
    return Watched._make(row) if row else None


def find_token(connection: Connection, check_id: str) -> str | None:
    """The token of a check. None: the check is watched by none."""
    token: str | None = connection.execute(_OF_CHECK, {"check": check_id}).scalar_one_or_none()
    return token


def add(connection: Connection, check_id: str, token: str) -> None:
    """Watch for pings with a token."""
    connection.execute(_ADD, {"check_id": check_id, "token": token})


def set_token(connection: Connection, check_id: str, token: str) -> None:
    """Watch for another token; the timer runs on."""
    connection.execute(_SET_TOKEN, {"check": check_id, "new_token": token})


def set_timer(connection: Connection, check_id: str, *, last_ms: int, started_ms: int) -> None:
    """Move the timer."""
    values = {"check": check_id, "last_ms": last_ms, "started_ms": started_ms}
    connection.execute(_SET_TIMER, values)


def reset_timer(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """Let the timer wait for a first ping."""
    connection.execute(_RESET_TIMER, {"check": check_id, "reset_ms": now_ms})


def find_last_ping_ms(connection: Connection, check_id: str) -> int | None:
    """When the newest ping came. None: none did since the timer was reset."""
    at_ms: int | None = connection.execute(_TIMER, {"check": check_id}).scalar_one_or_none()
    return at_ms


def last_pings(connection: Connection, check_ids: Sequence[str]) -> dict[str, int]:
    """When the newest ping of each heartbeat came that has one."""
    found: dict[str, int] = {}
    for start in range(0, len(check_ids), _GROUP):
        some = {"check_ids": check_ids[start : start + _GROUP]}
        found.update(
            (row.check_id, row.last_ping_ms) for row in connection.execute(_LAST_PINGS, some)
        )
    return found


def find_neighbours(
    connection: Connection, check_id: str, event: EventTime
) -> tuple[EventTime | None, EventTime | None]:
    """The pings before and after one. None: there is none."""
    values = {"check": check_id, "but": event.id, "at_ms": event.at_ms}
    before, after = (connection.execute(one, values).first() for one in (_BEFORE, _AFTER))
    return (
        EventTime._make(before) if before else None,
        EventTime._make(after) if after else None,
    )


def list_marks(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> tuple[EventTime, ...]:
    """The FAILING events of a window."""
    values = {"check": check_id, "from_ms": window[0], "to_ms": window[1]}
    return tuple(map(EventTime._make, connection.execute(_MARKS, values)))


def set_state(connection: Connection, event_id: str, state: PingState) -> None:
    """Correct the state of an event."""
    connection.execute(_SET_STATE, {"event_id": event_id, "new_state": state.value})


def drop_event(connection: Connection, event_id: str) -> None:
    """Forget an event that was none."""
    connection.execute(_DROP, {"event_id": event_id})


def list_corrected(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> frozenset[str]:
    """The failed results of a window that pings have disproved."""
    values = {"check": check_id, "from_ms": window[0], "to_ms": window[1]}
    return frozenset(connection.execute(_CORRECTED, values).scalars())


def add_correction(connection: Connection, check_id: str, result_id: str, result_ms: int) -> None:
    """Note that a failed result was disproved."""
    row = {"check_id": check_id, "result_id": result_id, "result_ms": result_ms}
    connection.execute(_CORRECT, row)


def forget_corrections(
    connection: Connection, check_id: str, result_ids: Sequence[str], *, last_ms: int
) -> None:
    """Forget what was noted of these results, and of all that began before `last_ms`."""
    values = {"check": check_id, "result_ids": result_ids, "last_ms": last_ms}
    connection.execute(_FORGET_CORRECTIONS, values)


def forget_corrections_before(connection: Connection, *, before_ms: int) -> None:
    """Forget what was noted of results that began before."""
    connection.execute(_FORGET_CORRECTIONS_BEFORE, {"before_ms": before_ms})


def find_newest_state(connection: Connection, check_id: str) -> str | None:
    """State of the newest event. None: there was none."""
    state: str | None = connection.execute(_NEWEST, {"check": check_id}).scalar_one_or_none()
    return state


def is_known(connection: Connection, ping_id: str) -> bool:
    """Whether this ping was recorded before."""
    return connection.execute(_KNOWN, {"ping_id": ping_id}).first() is not None


def add_event(connection: Connection, event: dict[str, Any], *, keep_after_ms: int) -> None:
    """Record an event of a heartbeat, and forget those that are too old."""
    connection.execute(_ADD_EVENT, event)
    connection.execute(_FORGET, {"check": event["check_id"], "before_ms": keep_after_ms})


def list_events(
    connection: Connection, check_id: str, *, window: tuple[int, int], limit: int
) -> tuple[Event, ...]:
    """The newest events of a window, newest first."""
    values = {"check": check_id, "from_ms": window[0], "to_ms": window[1], "most": limit}
    return tuple(map(_read_event, connection.execute(_EVENTS, values)))


def find_event(connection: Connection, check_id: str, event_id: str) -> Event | None:
    """One event. None: the check has none with this id."""
    row = connection.execute(_EVENT, {"check": check_id, "event_id": event_id}).first()
    return None if row is None else _read_event(row)


def count_events(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> dict[str, int]:
    """How many events of each state a window has."""
    values = {"check": check_id, "from_ms": window[0], "to_ms": window[1]}
    return {row.state: row.number for row in connection.execute(_COUNTS, values)}


def _read_event(row: Row[Any]) -> Event:
    return Event(
        id=row.id,
        state=PingState(row.state),
        at_ms=row.received_ms,
        source=row.source,
        user_agent=row.user_agent,
    )
