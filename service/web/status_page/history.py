"""The last 90 days of a service, a bar for each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from service.incidents.model import Incident, Severity
from service.incidents.rules import find_course
from service.web.states import State
from service.web.status_page.visitor_text import format_day
from service.web.words import format_duration, format_plural

DAYS: Final = 90
_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000
_WORST_FIRST: Final = tuple(Severity)
_MOST_NAMED: Final = 5
"""How many days with incidents the text of a history names."""

STATE_OF: Final = {
    None: State.PASSING,
    Severity.MINOR: State.DEGRADED,
    Severity.MEDIUM: State.DEGRADED,
    Severity.MAJOR: State.FAILING,
    Severity.CRITICAL: State.FAILING,
}
"""How a service is shown by the worst incident that affects it. None: there is none."""
WORD_OF: Final = {
    None: "Works",
    Severity.MINOR: "Minor problems",
    Severity.MEDIUM: "Degraded",
    Severity.MAJOR: "Partly down",
    Severity.CRITICAL: "Down",
}


@dataclass(frozen=True, slots=True)
class Affected:
    """A stretch of time in which an incident affected services."""

    severity: Severity
    began_ms: int
    ended_ms: int
    """The end of the incident, or now while it is open."""
    is_open: bool
    service_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class DayBar:
    """One day."""

    state: State
    text: str
    """What is said of it: `3 Nov: partly down for 20 min`."""


@dataclass(frozen=True, slots=True)
class History:
    """The days of a service, the oldest first."""

    bars: tuple[DayBar, ...]
    text: str
    """What the bars show, in words."""
    summary: str
    """How many incidents there were, and how long they lasted: `2 incidents, 1 h 20 min`.
    Empty: there were none."""
    uptime: float | None
    """The share of the time in which it was neither down nor partly down. None: it is known for
    less than a day."""


def list_affected(incidents: Iterable[Incident], *, now_ms: int) -> list[Affected]:
    """When incidents affected services."""
    found = []
    for one in incidents:
        course = find_course(one.updates, now_ms=now_ms)
        if course is not None:
            is_open = course.ended_ms is None
            ended_ms = now_ms if course.ended_ms is None else course.ended_ms
            span = (course.began_ms, ended_ms)
            found.append(Affected(one.severity, *span, is_open, frozenset(one.service_ids)))
    return found


def draw_history(affected: Sequence[Affected], *, created_ms: int, now_ms: int) -> History:
    """The history of a service that was created at a time."""
    first_ms = now_ms // _DAY_MS * _DAY_MS - (DAYS - 1) * _DAY_MS
    starts = [first_ms + day * _DAY_MS for day in range(DAYS)]
    known_ms = min([created_ms, *(one.began_ms for one in affected)])
    bars = tuple(_draw_day(affected, start, known_ms=known_ms, now_ms=now_ms) for start in starts)
    clipped = [
        (max(one.began_ms, first_ms), one.ended_ms) for one in affected if one.ended_ms >= first_ms
    ]
    uptime = _find_uptime(affected, began_ms=max(first_ms, known_ms), now_ms=now_ms)
    return History(bars, _describe(bars), _summarize(clipped), uptime)


def _find_uptime(affected: Sequence[Affected], *, began_ms: int, now_ms: int) -> float | None:
    """The share of the time since it began without an incident that says down or partly down."""
    known_ms = now_ms - began_ms
    if known_ms < _DAY_MS:
        return None
    down = [
        (max(one.began_ms, began_ms), one.ended_ms)
        for one in affected
        if STATE_OF[one.severity] is State.FAILING and one.ended_ms > began_ms
    ]
    return 1 - merge_ms(down) / known_ms


def _draw_day(affected: Sequence[Affected], start_ms: int, *, known_ms: int, now_ms: int) -> DayBar:
    end_ms = start_ms + _DAY_MS
    day = format_day(start_ms)
    hits = [one for one in affected if one.began_ms < end_ms and one.ended_ms >= start_ms]
    if not hits:
        if end_ms <= known_ms:
            return DayBar(State.UNKNOWN, f"{day}: no records yet")
        return DayBar(State.PASSING, f"{day}: no incidents")
    worst = min((one.severity for one in hits), key=_WORST_FIRST.index)
    spans = [(max(one.began_ms, start_ms), min(one.ended_ms, end_ms, now_ms)) for one in hits]
    lasted = _format_lasting(merge_ms(spans))
    return DayBar(STATE_OF[worst], f"{day}: {WORD_OF[worst].lower()} for {lasted}")


def merge_ms(spans: Sequence[tuple[int, int]]) -> int:
    """How long spans last together, where several overlap counted once."""
    total, until_ms = 0, 0
    for began_ms, ended_ms in sorted(spans):
        total += max(0, ended_ms - max(began_ms, until_ms))
        until_ms = max(until_ms, ended_ms)
    return total


def _format_lasting(lasted_ms: int) -> str:
    """Whole minutes: a page that changed each second would never be the one that is cached."""
    minutes = max(1, round(lasted_ms / _MINUTE_MS))
    return format_duration(minutes * _MINUTE_MS)


def _describe(bars: Sequence[DayBar]) -> str:
    bad = [bar.text for bar in reversed(bars) if bar.state in (State.DEGRADED, State.FAILING)]
    if not bad:
        return f"Last {DAYS} days: no incidents"
    more = f"; and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
    count = format_plural(len(bad), "day")
    return f"Last {DAYS} days: {count} with incidents. {'; '.join(bad[:_MOST_NAMED])}{more}"


def _summarize(spans: Sequence[tuple[int, int]]) -> str:
    if not spans:
        return ""
    return f"{format_plural(len(spans), 'incident')}, {_format_lasting(merge_ms(spans))}"


def month_of(at_ms: int) -> tuple[int, int]:
    """The year and month of a time."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.year, at.month
