"""Numbers in buckets that grow by two per cent: small, mergeable, and right within one per cent.

The buckets are those of DDSketch (Masson, Rim, Lee: VLDB 2019) with a relative error of 1 %; only
those with numbers in them are kept. Count, sum, extremes and the deviation are exact.
"""

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

import msgspec

ERROR: Final = 0.01
"""How far from a number its bucket's value may be, as a share of the number."""
_GROWTH: Final = (1 + ERROR) / (1 - ERROR)
_PER_BUCKET: Final = 1 / math.log(_GROWTH)
_LEAST: Final = 1e-9
"""Smaller numbers count as zero."""
_ZERO: Final = -1_100
"""The bucket of zero, below that of `_LEAST`."""
MOST: Final = 1e12
"""The largest number; measurements in ms end far below it."""
_VALUES: Final = [
    0.0,
    *(
        2 * _GROWTH**index / (_GROWTH + 1)
        for index in range(_ZERO + 1, math.ceil(math.log(MOST) * _PER_BUCKET) + 2)
    ),
]
"""What stands for the numbers of a bucket, from `_ZERO` on."""


class Packed(msgspec.Struct, array_like=True, frozen=True):
    """A histogram as it is stored."""

    count: int
    total: float
    deviations: float
    least: float
    most: float
    buckets: bytes
    """Numbers of buckets in order, each as a signed short."""
    counts: bytes
    """How many numbers each of them has, as unsigned 32-bit integers."""


class Histogram:
    """Numbers, each rounded to one per cent; none of them negative."""

    __slots__ = ("_counts", "_ranks", "count", "deviations", "least", "most", "total")

    def __init__(self, packed: Packed | None = None) -> None:
        """An empty one, or one that was stored."""
        if packed is None:
            self.count, self.total, self.deviations = 0, 0.0, 0.0
            self.least, self.most = math.inf, 0.0
        else:
            self.count, self.total, self.deviations = packed.count, packed.total, packed.deviations
            self.least, self.most = packed.least, packed.most
        self._counts: Packed | dict[int, int] = packed or {}
        """How many numbers each bucket has, as it was stored until something is added."""
        self._ranks: tuple[Sequence[int], list[int]] | None = None
        """Buckets in order, and how many numbers there are up to each. None: not known."""

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Histogram":
        """A histogram of these numbers, each from 0 to `MOST`."""
        made, values = cls(), list(numbers)
        if not values:
            return made
        made.count, made.total = len(values), math.fsum(values)
        mean = made.total / made.count
        made.deviations = math.fsum((value - mean) ** 2 for value in values)
        made.least, made.most = min(values), max(values)
        made._counts = dict(Counter(map(_bucket, values)))
        return made

    def merge(self, other: Packed) -> None:
        """Take the numbers of another one."""
        if not other.count:
            return
        count = self.count + other.count
        mean = other.total / other.count
        apart = mean - self.total / self.count if self.count else 0
        # Chan, Golub, LeVeque: sums of squares would lose all digits of a small deviation.
        between = apart * apart * self.count * other.count / count
        self.deviations += other.deviations + between
        self.count, self.total = count, self.total + other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        counts = self._own_counts()
        for index, number in _pairs(other):
            counts[index] = counts.get(index, 0) + number
        self._counts, self._ranks = counts, None

    def percentile(self, share: float) -> float:
        """The number below which a share (0 to 1) of them lies; there must be any."""
        buckets, ranks = self._ranks or self._find_ranks()
        rank = share * (self.count - 1)
        below = int(rank)
        value = _VALUES[buckets[bisect_right(ranks, below)] - _ZERO]
        if rest := rank - below:
            above = _VALUES[buckets[bisect_right(ranks, below + 1)] - _ZERO]
            value += (above - value) * rest
        if value < self.least:
            return self.least
        return min(self.most, value)

    def pack(self) -> Packed:
        """What is stored of it."""
        counts = self._own_counts()
        order = sorted(counts)
        return Packed(
            count=self.count,
            total=self.total,
            deviations=self.deviations,
            least=self.least if self.count else 0.0,
            most=self.most,
            buckets=array("h", order).tobytes(),
            counts=array("I", [counts[index] for index in order]).tobytes(),
        )

    def _own_counts(self) -> dict[int, int]:
        return dict(_pairs(self._counts)) if isinstance(self._counts, Packed) else self._counts

    def _find_ranks(self) -> tuple[Sequence[int], list[int]]:
        if isinstance(self._counts, Packed):
            buckets: Sequence[int] = memoryview(self._counts.buckets).cast("h")
            counts: Iterable[int] = memoryview(self._counts.counts).cast("I")
        else:
            buckets = sorted(self._counts)
            counts = map(self._counts.__getitem__, buckets)
        self._ranks = (buckets, list(accumulate(counts)))
        return self._ranks


def _bucket(value: float) -> int:
    return math.ceil(math.log(value) * _PER_BUCKET) if value >= _LEAST else _ZERO


def _pairs(packed: Packed) -> Iterable[tuple[int, int]]:
    """Each bucket with how many numbers it has."""
    if not packed.buckets:
        return ()  # an empty view has no format
    buckets, counts = memoryview(packed.buckets), memoryview(packed.counts)
    return zip(buckets.cast("h"), counts.cast("I"), strict=True)
