"""What happens to heartbeats; each is part of the caller's transaction."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from contract.checks import HeartbeatSpec
from contract.wire import decode
from service.checks import actions as checks
from service.db.ids import new_id
from service.heartbeats import store
from service.heartbeats.model import Event, PingState, judge_ping
from service.http.errors import NotFoundError

_KEPT_MS: Final = 30 * 86_400_000
_MOST_TEXT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedPing:
    """A ping, wherever it was received."""

    ping_id: str | None
    """Made by the agent that relays it. None: it came to the service itself."""
    token: str
    age_s: float
    """How long ago it was received; 0 for now."""
    method: str
    source: str
    user_agent: str


def watch(connection: Connection, check_id: str, token: str) -> None:
    """Take pings with this token for a check, and with no other."""
    known = store.find_token(connection, check_id)
    if known is None:
        store.add(connection, check_id, token)
    elif known != token:
        store.set_token(connection, check_id, token)


def reset_timer(connection: Connection, check_id: str) -> None:
    """Start over, as deactivating and activating does: the next ping is the first."""
    store.set_timer(connection, check_id, last_ms=None, started_ms=None)


def is_watched(connection: Connection, token: str) -> bool:
    """Whether a check waits for pings with this token."""
    return store.find_watched(connection, token) is not None


def take_pings(connection: Connection, pings: Iterable[ReceivedPing], *, now_ms: int) -> int:
    """Record pings; how many were known tokens. A ping that was relayed twice counts once."""
    return sum(_take(connection, ping, now_ms) for ping in pings)


def mark_failing(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """No ping came in time: one event per silence."""
    if store.find_newest_state(connection, check_id) == PingState.FAILING:
        return
    nobody = ReceivedPing(ping_id=None, token="", age_s=0, method="", source="", user_agent="")
    _add_event(connection, check_id, PingState.FAILING, nobody, received_ms=now_ms)


def find_event(connection: Connection, check_id: str, event_id: str) -> Event:
    """One event of a check.

    Raises:
        NotFoundError: it has none with this id.
    """
    found = store.find_event(connection, check_id, event_id)
    if found is None:
        raise NotFoundError(f"There is no event {event_id} of this heartbeat.")
    return found


def _take(connection: Connection, ping: ReceivedPing, now_ms: int) -> bool:
    watched = store.find_watched(connection, ping.token)
    if watched is None:
        return False
    if ping.age_s > _KEPT_MS / 1000:
        return True  # it would be forgotten at once, and its age may be beyond all numbers
    terms = checks.find_terms(connection, watched.check_id)
    if terms is None or not terms.activated or _is_known(connection, ping):
        return True
    received_ms = now_ms - round(ping.age_s * 1000)
    _add_event(
        connection,
        watched.check_id,
        _judge(connection, watched, terms.spec, received_ms),
        ping,
        received_ms=received_ms,
    )
    _move_timer(connection, watched, received_ms)
    return True


def _is_known(connection: Connection, ping: ReceivedPing) -> bool:
    return ping.ping_id is not None and store.is_known(connection, ping.ping_id)


def _judge(
    connection: Connection, watched: store.Watched, spec_json: bytes, received_ms: int
) -> PingState:
    last_ms = watched.last_ping_ms
    spec = decode(spec_json, HeartbeatSpec)
    return judge_ping(
        None if last_ms is None else max(0, received_ms - last_ms) / 1000,
        period_s=spec.period_s,
        grace_s=spec.grace_s,
        is_failing=store.find_newest_state(connection, watched.check_id) == PingState.FAILING,
    )


def _move_timer(connection: Connection, watched: store.Watched, received_ms: int) -> None:
    """A ping that was relayed late may be older than the newest one."""
    started_ms = watched.timer_started_ms
    store.set_timer(
        connection,
        watched.check_id,
        last_ms=max(received_ms, watched.last_ping_ms or received_ms),
        started_ms=received_ms if started_ms is None else min(started_ms, received_ms),
    )


def _add_event(
    connection: Connection,
    check_id: str,
    state: PingState,
    ping: ReceivedPing,
    *,
    received_ms: int,
) -> None:
    store.add_event(
        connection,
        {
            "id": ping.ping_id or new_id(received_ms),
            "check_id": check_id,
            "received_ms": received_ms,
            "state": state.value,
            "method": ping.method[:_MOST_TEXT],
            "source": ping.source[:_MOST_TEXT],
            "user_agent": ping.user_agent[:_MOST_TEXT],
        },
        keep_after_ms=received_ms - _KEPT_MS,
    )
