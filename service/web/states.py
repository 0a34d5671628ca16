"""The states that pages show, each with a word, a shape and a colour; and strips of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from statistics import median_low
from typing import Final

from service.results.model import RunStatus


class State(StrEnum):
    """How a thing stands, or how a run ended."""

    PASSING = "passing"
    DEGRADED = "degraded"
    FAILING = "failing"
    MISSED = "missed"
    """We did not look."""
    RUNNING = "running"
    PAUSED = "paused"
    UNKNOWN = "unknown"
    """No run has ended yet."""


def name_state(state: str) -> str:
    """The word for a state, the same wherever it is counted, shown and chosen."""
    return "new" if state == State.UNKNOWN else str(state)


_OF_RUN: Final = {
    RunStatus.PASSED: State.PASSING,
    RunStatus.DEGRADED: State.DEGRADED,
    RunStatus.FAILED: State.FAILING,
    RunStatus.TIMED_OUT: State.FAILING,
    RunStatus.MISSED: State.MISSED,
    RunStatus.ERROR: State.MISSED,
}


def state_of_run(status: RunStatus) -> State:
    """The state that a run's end shows."""
    return _OF_RUN[status]


STEP: Final = 4
"""The width of one mark in a strip, its gap included, in the strip's own units."""
HEIGHT: Final = 16
_HEIGHTS: Final = {
    State.FAILING: 16,
    State.DEGRADED: 12,
    State.PASSING: 8,
    State.MISSED: 4,
    State.UNKNOWN: 2,
    State.PAUSED: 2,
    State.RUNNING: 8,
}


@dataclass(frozen=True, slots=True)
class StripPath:
    """All marks of one state in a strip, as one SVG path of dashes."""

    state: State
    d: str
    """Horizontal lines, each a sequence of neighbouring marks; the style sheet dashes them."""
    height: int
    """How tall the marks are: states differ by more than their hue."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Runs, or stretches of time, in their order: the oldest first."""

    width: int
    paths: tuple[StripPath, ...]
    text: str
    """What it shows, in words: `24 h: 142 runs, 2 failed, 1 missed`."""


def draw_strip(states: Sequence[State], *, text: str) -> Strip:
    """Draw states side by side; one path per state, however many there are."""
    lines: dict[State, list[str]] = {}
    at = 0
    for state, same in groupby(states):
        end = at + STEP * len(list(same))
        lines.setdefault(state, []).append(f"M{at} 0H{end}")
        at = end
    paths = tuple(StripPath(one, "".join(d), _HEIGHTS[one]) for one, d in lines.items())
    return Strip(width=at, paths=paths, text=text)


def draw_sparkline(values: Sequence[float | None], *, width: int = 72, height: int = 16) -> str:
    """A line through the values as an SVG path; a long row of None interrupts it. Empty: no value.

    Values that stand apart, as those of a check that runs seldom, are joined all the same.
    """
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if not known:
        return ""
    most = max(value for _, value in known) or 1.0
    step = width / max(len(values) - 1, 1)
    apart = [after - before for (before, _), (after, _) in pairwise(known)]
    furthest = 2 * median_low(apart) if apart else 0
    parts = []
    for (place, value), distance in zip(known, [len(values), *apart], strict=True):
        y = height - 1 - value / most * (height - 2)
        parts.append(f"{'L' if distance <= furthest else 'M'}{place * step:.1f} {y:.1f}")
    return "".join(parts)
