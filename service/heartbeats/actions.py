"""What happens to heartbeats; each is part of the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from contract.checks import HeartbeatSpec
from contract.wire import decode
from service.analytics.marking import mark_times
from service.checks import actions as checks
from service.db.ids import new_id
from service.heartbeats import store
from service.heartbeats.model import Event, PingState, TimerState, judge_ping
from service.heartbeats.rules import Terms, disproved, judge_timer, rejudge
from service.http.errors import NotFoundError
from service.results import actions as results
from service.scheduling import actions as scheduling

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


_NOBODY: Final = ReceivedPing(ping_id=None, token="", age_s=0, method="", source="", user_agent="")


def watch(connection: Connection, check_id: str, token: str) -> None:
    """Take pings with this token for a check, and with no other."""
    known = store.find_token(connection, check_id)
    if known is None:
        store.add(connection, check_id, token)
    elif known != token:
        store.set_token(connection, check_id, token)


def reset_timer(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """Start over, as deactivating and activating does: the next ping is the first.

    A ping that was received before, and is relayed later, is not that one.
    """
    store.reset_timer(connection, check_id, now_ms=now_ms)


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
    _add_event(connection, check_id, PingState.FAILING, _NOBODY, received_ms=now_ms)


def judge_now(connection: Connection, check_id: str, *, now_ms: int) -> TimerState:
    """How a heartbeat stands."""
    last_ms = store.find_last_ping_ms(connection, check_id)
    checked = checks.find_terms(connection, check_id)
    if last_ms is None or checked is None:
        return TimerState.NEVER_PINGED
    is_failing = store.find_newest_state(connection, check_id) == PingState.FAILING
    return judge_timer(max(0, now_ms - last_ms), _read_terms(checked.spec), is_failing=is_failing)


def last_pings(connection: Connection, check_ids: Sequence[str]) -> Mapping[str, int]:
    """When the newest ping of each heartbeat came that has one since its timer was reset."""
    return store.last_pings(connection, check_ids)


def list_corrected(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> frozenset[str]:
    """The failed results of a window that were disproved by pings that were relayed later."""
    return store.list_corrected(connection, check_id, window=window)


def count_corrected(connection: Connection, check_id: str, *, window: tuple[int, int]) -> int:
    """How many failed results of a window were disproved by pings that were relayed later.

    Only results that are still there count.
    """
    corrected = store.list_corrected(connection, check_id, window=window)
    if not corrected:
        return 0
    return len(corrected & results.list_failures(connection, check_id, window=window).keys())


def forget_corrections(
    connection: Connection, check_id: str, result_ids: Sequence[str], *, last_ms: int
) -> None:
    """Forget the corrections of results that were removed; all from before `last_ms` were."""
    store.forget_corrections(connection, check_id, result_ids, last_ms=last_ms)


def forget_corrections_before(connection: Connection, *, before_ms: int) -> None:
    """Forget the corrections of results that began before: all of these were removed."""
    store.forget_corrections_before(connection, before_ms=before_ms)


def list_events(
    connection: Connection, check_id: str, *, window: tuple[int, int], limit: int
) -> Sequence[Event]:
    """The newest pings of a window, and missing ones, newest first."""
    return store.list_events(connection, check_id, window=window, limit=limit)


def count_events(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> tuple[int, int]:
    """How many pings of a window are on record, and how many silences that a run found too long."""
    found = store.count_events(connection, check_id, window=window)
    silences = found.get(PingState.FAILING, 0)
    return sum(found.values()) - silences, silences


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
    if watched.timer_reset_ms is not None and received_ms < watched.timer_reset_ms:
        _add_event(connection, watched.check_id, PingState.RECEIVED, ping, received_ms=received_ms)
        return True
    state = _judge(connection, watched, terms.spec, received_ms)
    event_id = _add_event(connection, watched.check_id, state, ping, received_ms=received_ms)
    _move_timer(connection, watched, received_ms)
    if watched.timer_started_ms is None:
        # It had no runs so far, and its next one may be due tomorrow.
        scheduling.run_now(connection, watched.check_id, now_ms=now_ms)
    if ping.age_s:
        late = store.EventTime(event_id, received_ms)
        _correct(connection, watched.check_id, late, _read_terms(terms.spec), now_ms=now_ms)
    return True


def _correct(
    connection: Connection, check_id: str, late: store.EventTime, terms: Terms, *, now_ms: int
) -> None:
    """Make the record around a ping that was relayed what it would be had it come at once."""
    before, after = store.find_neighbours(connection, check_id, late)
    end_ms = after.at_ms if after else now_ms + 1
    window = (before.at_ms if before else late.at_ms, end_ms)
    marks = store.list_marks(connection, check_id, window=window)
    failures = _list_failures(connection, check_id, (late.at_ms, end_ms), terms)
    if after is None and not marks and not failures:
        return
    pings = [one for one in (before, late, after) if one is not None]
    judged = rejudge(
        [one.at_ms for one in pings],
        marks=[one.at_ms for one in marks],
        failures=tuple(failures.values()),
        terms=terms,
        # What follows the next ping stays as it is.
        now_ms=end_ms if after else now_ms,
    )
    if before is None:
        store.set_state(connection, late.id, PingState.RECEIVED)
    for one, state in zip(pings[1:], judged.states, strict=True):
        store.set_state(connection, one.id, state)
    for mark in marks:
        if mark.at_ms not in judged.kept_marks:
            store.drop_event(connection, mark.id)
    for at_ms in judged.new_marks:
        _add_event(connection, check_id, PingState.FAILING, _NOBODY, received_ms=at_ms)
    wrong = disproved(failures, ping_ms=late.at_ms, terms=terms)
    new = wrong.keys() - store.list_corrected(connection, check_id, window=window)
    for result_id in new:
        store.add_correction(connection, check_id, result_id, wrong[result_id])
    mark_times(connection, check_id, [wrong[result_id] for result_id in new])


def _list_failures(
    connection: Connection, check_id: str, window: tuple[int, int], terms: Terms
) -> Mapping[str, int]:
    """The failed results that a ping at the window's begin may disprove, and the first after them.

    The agent may have been cut off for a month and relay a ping for each minute of it: the rest of
    the window is not read anew for each.
    """
    from_ms, end_ms = window
    safe_until_ms = min(from_ms + terms.limit_ms + 1, end_ms)
    within = results.list_failures(connection, check_id, window=(from_ms, safe_until_ms))
    later = (safe_until_ms, end_ms)
    return {**within, **results.list_failures(connection, check_id, window=later, limit=1)}


def _read_terms(spec_json: bytes) -> Terms:
    spec = decode(spec_json, HeartbeatSpec)
    return Terms(period_ms=round(spec.period_s * 1000), grace_ms=round(spec.grace_s * 1000))


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
) -> str:
    """Record an event; its id."""
    event_id = ping.ping_id or new_id(received_ms)
    store.add_event(
        connection,
        {
            "id": event_id,
            "check_id": check_id,
            "received_ms": received_ms,
            "state": state.value,
            "method": ping.method[:_MOST_TEXT],
            "source": ping.source[:_MOST_TEXT],
            "user_agent": ping.user_agent[:_MOST_TEXT],
        },
        keep_after_ms=received_ms - _KEPT_MS,
    )
    return event_id
