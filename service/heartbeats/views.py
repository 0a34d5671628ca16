"""Events of heartbeats as the API shows them; pure."""

from collections.abc import Mapping
from typing import Final

from service.heartbeats.model import Event, PingState
from service.http.strict import Shown
from service.http.times import Moment, moment

_BAD: Final = (PingState.LATE, PingState.FAILING)


class EventShown(Shown):
    """A ping, or that none came."""

    id: str
    state: PingState
    """FAILING: none came in time. All others are pings, by how they stand to the time when one was
    due."""
    timestamp: Moment
    source: str | None
    """The ping's Origin or Referer. Null: it had none, or there was no ping."""
    user_agent: str | None
    """Null likewise."""


class RatioShown(Shown):
    """The percentage of events that are neither LATE nor FAILING. Null: there were no events."""

    previous_period: float | None
    current_period: float | None


class PeriodShown(Shown):
    """Events of a period and of the one before it."""

    success_ratio: RatioShown
    total_entities_current_period: int


class StatsShown(Shown):
    """Events up to now."""

    last24_hours: PeriodShown
    last7_days: PeriodShown


class EventsShown(Shown):
    """What has become of a heartbeat."""

    events: list[EventShown]
    """The newest first."""
    stats: StatsShown


class AvailabilityShown(Shown):
    """How much of a time a heartbeat was well."""

    check_id: str
    start_time: Moment
    end_time: Moment
    availability: float | None
    """Percentage of looks at its pings that passed. Null: nobody looked."""


def event_shown(event: Event) -> EventShown:
    """An event as its answer."""
    return EventShown(
        id=event.id,
        state=event.state,
        timestamp=moment(event.at_ms),
        source=event.source or None,
        user_agent=event.user_agent or None,
    )


def period_shown(now: Mapping[str, int], before: Mapping[str, int]) -> PeriodShown:
    """How many events of each state there were in a period, and in the one before it."""
    return PeriodShown(
        success_ratio=RatioShown(previous_period=_ratio(before), current_period=_ratio(now)),
        total_entities_current_period=sum(now.values()),
    )


def percentage(good: int, of: int) -> float | None:
    """With two digits behind the point. None: of nothing."""
    return round(100 * good / of, 2) if of else None


def _ratio(counts: Mapping[str, int]) -> float | None:
    bad = sum(counts.get(state, 0) for state in _BAD)
    total = sum(counts.values())
    return percentage(total - bad, total)
