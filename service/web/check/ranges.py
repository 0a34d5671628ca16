"""The part of the past that a page shows, as its address names it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from service.analytics.windows import DAY_MS, HOUR_MS, MINUTE_MS, Span
from service.http.times import query_time_ms

RANGES: Final[Mapping[str, tuple[str, int]]] = {
    "1h": ("1 h", HOUR_MS),
    "6h": ("6 h", 6 * HOUR_MS),
    "24h": ("24 h", DAY_MS),
    "7d": ("7 d", 7 * DAY_MS),
    "30d": ("30 d", 30 * DAY_MS),
}
USUAL: Final = "24h"
_SHORTEST_MS: Final = 5 * MINUTE_MS
_LONGEST_MS: Final = 400 * DAY_MS


@dataclass(frozen=True, slots=True)
class Range:
    """A part of the past."""

    span: Span
    name: str
    """Which of `RANGES` it is. Empty: its limits were chosen."""

    @property
    def length_ms(self) -> int:
        """How long it is."""
        return self.span[1] - self.span[0]

    @property
    def title(self) -> str:
        """What people call it. Empty: its limits say more."""
        return RANGES[self.name][0] if self.name else ""


def usual_range(created_ms: int, *, now_ms: int) -> str:
    """Which of `RANGES` is shown of what exists since then, where nobody chose one.

    It is the shortest that covers its life, so that no chart is nearly empty, and a day at most.
    """
    age_ms = now_ms - created_ms
    fitting = (name for name, (_, length_ms) in RANGES.items() if age_ms <= length_ms)
    name = next(fitting, USUAL)
    return min(name, USUAL, key=lambda one: RANGES[one][1])


def read_range(query: Mapping[str, str], *, now_ms: int, created_ms: int) -> Range:
    """The range that an address names; without one, the usual one of what exists since then.

    Raises:
        InvalidError: a limit is no time.
    """
    from_ms = query_time_ms("from", query.get("from"))
    to_ms = query_time_ms("to", query.get("to"))
    if from_ms is None and to_ms is None:
        name = query.get("range", "")
        name = name if name in RANGES else usual_range(created_ms, now_ms=now_ms)
        return Range((max(now_ms - RANGES[name][1], 0), now_ms), name)
    latest_ms = now_ms + DAY_MS  # nothing is known of what comes later
    end_ms = now_ms if to_ms is None else min(to_ms, latest_ms)
    begin_ms = end_ms - DAY_MS if from_ms is None else from_ms
    begin_ms, end_ms = sorted((min(max(begin_ms, 0), latest_ms), end_ms))
    end_ms = max(end_ms, begin_ms + _SHORTEST_MS)
    return Range((max(begin_ms, end_ms - _LONGEST_MS), end_ms), "")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a page, of which links change parts."""

    path: str
    query: Mapping[str, str]

    def to(self, **changes: str) -> str:
        """The address with other values; an empty one is left out."""
        changed = {**self.query, **changes}
        kept = {name: value for name, value in changed.items() if value}
        return self.path + (f"?{urlencode(kept)}" if kept else "")

    def below(self, part: str) -> str:
        """The address of a part of the page, for the same range."""
        kept = {name: self.query[name] for name in ("range", "from", "to") if name in self.query}
        return f"{self.path}/{part}" + (f"?{urlencode(kept)}" if kept else "")

    def over(self, name: str) -> str:
        """The address with another range."""
        rest = {name: value for name, value in self.query.items() if name not in _OF_RANGE}
        return f"{self.path}?{urlencode({**rest, 'range': name})}"


_OF_RANGE: Final = frozenset({"range", "from", "to", "page"})
