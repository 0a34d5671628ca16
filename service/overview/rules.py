"""What the runs of a check over a stretch of time come to. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from service.analytics.distribution import Aggregation, Values, compute
from service.analytics.windows import MINUTE_MS
from service.overview.model import Recent
from service.results.model import Ending, RunStatus

_PASSED: Final = RunStatus.PASSED
_SLOTS_MS: Final = tuple(minutes * MINUTE_MS for minutes in (1, 5, 15, 60, 120, 480, 1_440))
"""How long a slot of a strip may be."""
_MOST_SLOTS: Final = 96
POINTS: Final = 24
"""Points of a line of response times."""
_WEIGHTS: Final = {
    RunStatus.FAILED: 4,
    RunStatus.TIMED_OUT: 4,
    RunStatus.DEGRADED: 3,
    RunStatus.ERROR: 2,
    RunStatus.MISSED: 2,
    RunStatus.PASSED: 1,
}
"""A slot shows the heaviest of its runs."""


def find_slot_ms(window: tuple[int, int]) -> int:
    """How long each slot of a strip is: the shortest with which there are `_MOST_SLOTS` at most."""
    length_ms = window[1] - window[0]
    return next((one for one in _SLOTS_MS if length_ms <= one * _MOST_SLOTS), _SLOTS_MS[-1])


def empty_slots(window: tuple[int, int]) -> list[RunStatus | None]:
    """The slots of a strip, in none of which a run ended."""
    return [None] * max(-(-(window[1] - window[0]) // find_slot_ms(window)), 1)


def summarize(endings: Sequence[Ending], *, window: tuple[int, int]) -> Recent:
    """What runs come to of which each is known, in the order of time."""
    # Nearly all passed, and to compare a status is quicker than to ask it.
    looks = [one for one in endings if one.status is _PASSED or one.status.judges_target]
    others = [one for one in endings if one.status is not _PASSED]
    times = [one.response_time_ms for one in looks if one.response_time_ms is not None]
    return Recent(
        marks=close_gaps(mark_slots(endings, empty_slots(window), window=window)),
        runs=len(looks),
        failed=sum(one.status.has_failures for one in others),
        missed=sum(one.due_times or 1 for one in others if not one.status.judges_target),
        p95_ms=compute(Values(times), Aggregation.P95) if times else None,
        line=_draw_line(looks, window),
    )


def mark_slots(
    endings: Iterable[Ending], marks: Sequence[RunStatus | None], *, window: tuple[int, int]
) -> list[RunStatus | None]:
    """The heaviest ending of each slot, or what was there before."""
    found = list(marks)
    for one in endings:
        first = _slot(one.started_ms, window, len(found))
        last = _slot(one.until_ms or one.started_ms, window, len(found))
        for place in range(first, last + 1):
            before = found[place]
            if before is None or _WEIGHTS[one.status] > _WEIGHTS[before]:
                found[place] = one.status
    return found


def close_gaps(marks: Sequence[RunStatus | None]) -> list[RunStatus | None]:
    """Fill single empty slots between others with the lighter of their neighbours.

    Runs that come once a slot begin a little before its end or after it: nothing was missed there,
    since what is missed is a run of its own.
    """
    found = list(marks)
    for at, (before, here, after) in enumerate(zip(marks, marks[1:], marks[2:], strict=False), 1):
        if here is None and before is not None and after is not None:
            found[at] = min(before, after, key=_WEIGHTS.__getitem__)
    return found


def _slot(at_ms: int, window: tuple[int, int], count: int) -> int:
    place = (at_ms - window[0]) * count // (window[1] - window[0])
    return min(max(place, 0), count - 1)


def _draw_line(looks: Iterable[Ending], window: tuple[int, int]) -> list[float | None]:
    sums, counts = [0.0] * POINTS, [0] * POINTS
    begin_ms, length_ms = window[0], window[1] - window[0]
    for one in looks:
        if one.response_time_ms is not None:
            place = (one.started_ms - begin_ms) * POINTS // length_ms
            sums[place] += one.response_time_ms
            counts[place] += 1
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]
