"""What is told of many numbers: their exact values, and how each aggregation is computed.

A percentile is interpolated linearly between closest ranks, as NumPy, PostgreSQL's
`percentile_cont` and Excel do by default; `histogram.py` does the same with its buckets.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

from service.analytics.histogram import Histogram


class Aggregation(StrEnum):
    """How many numbers become one."""

    AVG = "avg"
    MAX = "max"
    MEDIAN = "median"
    MIN = "min"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    STDDEV = "stddev"
    SUM = "sum"


class Values:
    """Numbers as they were measured."""

    __slots__ = ("_is_sorted", "_numbers")

    def __init__(self, numbers: Iterable[float] = ()) -> None:
        self._numbers = list(numbers)
        self._is_sorted = False

    def extend(self, numbers: Iterable[float]) -> None:
        """Take further numbers."""
        self._numbers.extend(numbers)
        self._is_sorted = False

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._numbers)

    @property
    def total(self) -> float:
        """Their sum."""
        return math.fsum(self._numbers)

    @property
    def deviations(self) -> float:
        """The sum of the squares of their distances from their mean."""
        mean = self.total / self.count
        return math.fsum((number - mean) ** 2 for number in self._numbers)

    @property
    def least(self) -> float:
        """The smallest one; there must be any."""
        return self.in_order()[0]

    @property
    def most(self) -> float:
        """The largest one; there must be any."""
        return self.in_order()[-1]

    def percentile(self, share: float) -> float:
        """The number below which a share (0 to 1) of them lies; there must be any."""
        return interpolate(self.in_order(), share)

    def in_order(self) -> list[float]:
        """All of them, the smallest first."""
        if not self._is_sorted:
            self._numbers.sort()
            self._is_sorted = True
        return self._numbers


def interpolate(in_order: list[float], share: float) -> float:
    """The percentile of sorted numbers, linear between closest ranks."""
    rank = share * (len(in_order) - 1)
    below = int(rank)
    low = in_order[below]
    rest = rank - below
    return low + (in_order[below + 1] - low) * rest if rest else low


Distribution = Values | Histogram
"""Numbers, exact or rounded to one per cent."""


def _mean(numbers: Distribution) -> float:
    return numbers.total / numbers.count


def _stddev(numbers: Distribution) -> float:
    return math.sqrt(numbers.deviations / numbers.count)


def _percentile(share: float) -> Callable[[Distribution], float]:
    return lambda numbers: numbers.percentile(share)


_COMPUTED: Final[Mapping[Aggregation, Callable[[Distribution], float]]] = {
    Aggregation.AVG: _mean,
    Aggregation.MAX: lambda numbers: numbers.most,
    Aggregation.MEDIAN: _percentile(0.5),
    Aggregation.MIN: lambda numbers: numbers.least,
    Aggregation.P50: _percentile(0.5),
    Aggregation.P90: _percentile(0.9),
    Aggregation.P95: _percentile(0.95),
    Aggregation.P99: _percentile(0.99),
    Aggregation.STDDEV: _stddev,
    Aggregation.SUM: lambda numbers: numbers.total,
}


def compute(numbers: Distribution, aggregation: Aggregation) -> float | None:
    """One number of many; the standard deviation is the population's. None: there are none."""
    return _COMPUTED[aggregation](numbers) if numbers.count else None
