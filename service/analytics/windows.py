"""Windows of time and the buckets that they are cut into; all of it in UTC."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
MOST_MINUTES: Final = 43_200
"""The longest bucket: 30 days."""
MOST_BUCKETS: Final = 100
"""Without an interval, a window has at most so many buckets."""
INTERVALS: Final = (1, 5, 10, 30, 60, 180, 360, 720, 1_440, 10_080, MOST_MINUTES)
"""The intervals in minutes among which one is chosen for a window."""


class QuickRange(StrEnum):
    """A window with a name; weeks begin on Monday."""

    LAST_24_HOURS = "last24Hours"
    LAST_7_DAYS = "last7Days"
    LAST_30_DAYS = "last30Days"
    THIS_WEEK = "thisWeek"
    THIS_MONTH = "thisMonth"
    LAST_WEEK = "lastWeek"
    LAST_MONTH = "lastMonth"


Span = tuple[int, int]
"""A window in ms since 1970: inclusive, exclusive."""


def find_window(
    *, from_ms: int | None, to_ms: int | None, quick_range: QuickRange, now_ms: int
) -> Span:
    """The window of a request: its own limits come before the named one.

    Without an end it ends now; without a beginning it has 24 hours. It ends after it began.
    """
    if from_ms is None and to_ms is None:
        return span_of(quick_range, now_ms=now_ms)
    end_ms = now_ms if to_ms is None else to_ms
    begin_ms = max(end_ms - DAY_MS, 0) if from_ms is None else from_ms
    return begin_ms, max(end_ms, begin_ms)


def span_of(quick_range: QuickRange, *, now_ms: int, zone: tzinfo = UTC) -> Span:
    """The window with this name; days begin at midnight of the zone."""
    back_ms = _BACK_MS.get(quick_range)
    if back_ms is not None:
        return now_ms - back_ms, now_ms
    today = datetime.fromtimestamp(now_ms // 1000, zone).date()
    monday, first = today - timedelta(days=today.weekday()), today.replace(day=1)
    match quick_range:
        case QuickRange.THIS_WEEK:
            return _midnight_ms(monday, zone), now_ms
        case QuickRange.LAST_WEEK:
            return _midnight_ms(monday - timedelta(days=7), zone), _midnight_ms(monday, zone)
        case QuickRange.THIS_MONTH:
            return _midnight_ms(first, zone), now_ms
        case _:
            before = (first - timedelta(days=1)).replace(day=1)
            return _midnight_ms(before, zone), _midnight_ms(first, zone)


_BACK_MS: Final[Mapping[QuickRange, int]] = {
    QuickRange.LAST_24_HOURS: DAY_MS,
    QuickRange.LAST_7_DAYS: 7 * DAY_MS,
    QuickRange.LAST_30_DAYS: 30 * DAY_MS,
}


def _midnight_ms(day: date, zone: tzinfo) -> int:
    return int(datetime.combine(day, time(), zone).timestamp() * 1000)


def usual_interval(span: Span) -> int:
    """The minutes of a bucket where a request names none.

    The shortest of `INTERVALS` with which the window has at most `MOST_BUCKETS`, else the longest.
    """
    return next(
        (minutes for minutes in INTERVALS if Grid(span, minutes * MINUTE_MS).count <= MOST_BUCKETS),
        MOST_MINUTES,
    )


@dataclass(frozen=True, slots=True)
class Grid:
    """A window in buckets of one length, which begin at multiples of it since 1970."""

    span: Span
    interval_ms: int

    @property
    def count(self) -> int:
        """How many buckets there are, those without data included."""
        begin_ms, end_ms = self.span
        return -(-end_ms // self.interval_ms) - begin_ms // self.interval_ms

    def edges(self, first: int, count: int) -> list[int]:
        """Where buckets begin and the last one ends: `count` of them from the one at `first`.

        Fewer, where the window ends before. Empty: there are none.
        """
        last = min(first + count, self.count)
        if first >= last:
            return []
        base = self.span[0] // self.interval_ms
        return [(base + number) * self.interval_ms for number in range(first, last + 1)]


class Granularity(StrEnum):
    """The periods that a report tells apart."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


def period_edges(span: Span, granularity: Granularity, zone: tzinfo) -> list[int]:
    """Where the days, weeks or months of a window begin, and where the last one ends."""
    begin = _FIRSTS[granularity](datetime.fromtimestamp(span[0] // 1000, zone).date())
    edges = [_midnight_ms(begin, zone)]
    while edges[-1] < span[1]:
        begin = _NEXTS[granularity](begin)
        edges.append(_midnight_ms(begin, zone))
    return edges


_FIRSTS: Final[Mapping[Granularity, Callable[[date], date]]] = {
    Granularity.DAY: lambda day: day,
    Granularity.WEEK: lambda day: day - timedelta(days=day.weekday()),
    Granularity.MONTH: lambda day: day.replace(day=1),
}
_NEXTS: Final[Mapping[Granularity, Callable[[date], date]]] = {
    Granularity.DAY: lambda day: day + timedelta(days=1),
    Granularity.WEEK: lambda day: day + timedelta(days=7),
    Granularity.MONTH: lambda day: (day.replace(day=1) + timedelta(days=32)).replace(day=1),
}
