"""How a check stands, in words, and what it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import SPEC_TYPES, CheckType
from service.alerting import actions as alerting
from service.alerting.model import Level
from service.checks.model import CheckRow
from service.heartbeats import actions as heartbeats
from service.heartbeats.model import TimerState
from service.overview import actions as overview
from service.overview.model import CheckState
from service.results import actions as results
from service.results.model import Cause, ResultFilter, RunStatus, StoredResult
from service.results.views import explain
from service.web.states import State

AT_LOCATIONS: Final = frozenset(
    {Cause.NO_AGENT, Cause.QUEUE_EXPIRED, Cause.AGENT_LOST, Cause.OVERLOADED, Cause.AGENT_ERROR}
)
"""Causes of which the location's page shows more."""
_BAD: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.DEGRADED})
_STATE_OF_LEVEL: Final = {Level.FAILING: State.FAILING, Level.DEGRADED: State.DEGRADED}
_HOUR_MIN: Final = 60
_OF_TIMER: Final = {
    TimerState.NEVER_PINGED: (State.UNKNOWN, "It waits for its first ping."),
    TimerState.RECEIVED: (State.PASSING, ""),
    TimerState.GRACE: (State.PASSING, "A ping is due, and not too late yet."),
    TimerState.LATE: (State.PASSING, "A ping is overdue; the next look finds it failing."),
    TimerState.FAILING: (State.FAILING, "No ping came in time."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """How a check stands."""

    state: State
    since_ms: int | None
    """Since when it has been in the state. None: nobody knows."""
    sentence: str
    """Why. Empty: all is well, or there is nothing to say."""
    newest: StoredResult | None
    """The newest run. None: none has ended yet."""
    reason: StoredResult | None
    """The run that the sentence is about. None: it is about none."""
    pinged_ms: int | None = None
    """When a heartbeat's newest ping came. None: none did, or it fails."""


def find_heading(connection: Connection, check: CheckRow, *, now_ms: int) -> Heading:
    """How a check stands by its newest runs."""
    kind = CheckType(check.type)
    newest = next(iter(results.list_page(connection, check.id, ResultFilter(), limit=1)), None)
    if not check.effective.get("activated", check.activated):
        return Heading(state=State.PAUSED, since_ms=None, sentence="", newest=newest, reason=None)
    if kind is CheckType.HEARTBEAT and (newest is None or newest.status is RunStatus.PASSED):
        return _head_of_heartbeat(connection, check, newest, now_ms)
    if newest is None:
        sentence = "No run has ended yet: the first one comes by its schedule."
        return Heading(
            state=State.UNKNOWN, since_ms=None, sentence=sentence, newest=None, reason=None
        )
    known = alerting.find_state(connection, check.id)
    state = _STATE_OF_LEVEL.get(known.level)
    if state is not None:
        bad = ResultFilter(statuses=_BAD)
        reason = next(iter(results.list_page(connection, check.id, bad, limit=1)), None)
        return Heading(
            state=state,
            since_ms=known.since_ms or None,
            sentence=(explain(reason, kind) if reason else None) or "",
            newest=newest,
            reason=reason,
        )
    standing, since_ms = overview.find_state(connection, check.id, now_ms=now_ms)
    if standing is CheckState.PASSING:
        return Heading(state=State.PASSING, since_ms=None, sentence="", newest=newest, reason=None)
    # Nobody looked: for long, or yet.
    reason = newest if newest.status.has_errors else None
    return Heading(
        state=State(standing.value),
        since_ms=since_ms,
        sentence=(explain(reason, kind) if reason else None) or "",
        newest=newest,
        reason=reason,
    )


def _head_of_heartbeat(
    connection: Connection, check: CheckRow, newest: StoredResult | None, now_ms: int
) -> Heading:
    """By its timer: it is judged once a minute, and pings come between."""
    timer = heartbeats.judge_now(connection, check.id, now_ms=now_ms)
    state, sentence = _OF_TIMER[timer]
    return Heading(
        state=state,
        since_ms=None,
        sentence=sentence,
        newest=newest,
        reason=None,
        pinged_ms=heartbeats.last_pings(connection, [check.id]).get(check.id),
    )


def describe_type(kind: CheckType) -> str:
    """The type's name, as people say it."""
    noun = SPEC_TYPES[kind].noun if kind in SPEC_TYPES else kind.value.lower()
    return noun[0].upper() + noun[1:]


def describe_schedule(kind: CheckType, settings: Mapping[str, Any]) -> str:
    """When it runs, in words."""
    if kind is CheckType.HEARTBEAT:
        pings = settings["heartbeat"]
        every = _count(pings["period"], pings["periodUnit"])
        late = _count(pings["grace"], pings["graceUnit"])
        return f"expects a ping every {every}, at most {late} late"
    frequency = settings["frequency"]
    if frequency == 0:
        return f"every {settings['frequencyOffset']} s"
    return f"every {describe_minutes(frequency)}"


def explain_runs(kind: CheckType, settings: Mapping[str, Any]) -> str:
    """What counts as a run, where that is no look at a target. Empty: it is one."""
    if kind is not CheckType.HEARTBEAT:
        return ""
    minutes = settings["frequency"]
    often = "once a minute" if minutes == 1 else f"every {describe_minutes(minutes)}"
    looks = _HOUR_MIN // minutes
    example = f": an hour without a ping is overdue once, with {looks} failed runs"
    return (
        f"Picket looks {often} whether a ping is overdue, and each look is a run"
        f"{example if looks > 1 else ''}. Availability is the share of looks that found none"
        " overdue."
    )


def describe_minutes(minutes: float) -> str:
    """A frequency in its largest unit: `5 min`, `2 h`, `1 d`."""
    for size, unit in ((1_440, "d"), (60, "h")):
        if minutes >= size and minutes % size == 0:
            return f"{minutes // size:.0f} {unit}"
    return f"{minutes:g} min"


_SHORT: Final = {"seconds": "s", "minutes": "min", "hours": "h", "days": "d"}


def _count(number: float, unit: str) -> str:
    return f"{number:g} {_SHORT[unit]}"


def describe_target(kind: CheckType, settings: Mapping[str, Any]) -> str:
    """What it looks at: an address, a host or a name. Empty: a script says."""
    request = settings.get("request") or {}
    if kind is CheckType.DNS:
        return " ".join(filter(None, (request.get("recordType"), request.get("query"))))
    if "url" in request:
        method = request.get("method", "GET")
        return request["url"] if method == "GET" else f"{method} {request['url']}"
    host = request.get("hostname") or ""
    port = request.get("port")
    return f"{host}:{port}" if host and port else host
