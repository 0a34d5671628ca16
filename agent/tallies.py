"""Counters, gauges and histograms that cost almost nothing until somebody reads them.

A counter of prometheus-client takes a lock and 0.5 us for each event, a histogram 1.2 us; a run
needs five. These are plain numbers of the event loop's thread, shown to prometheus-client as
families when it collects; the health port's thread reads them without a lock, which may show a run
in one series and not yet in another.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, Protocol

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

Labels = tuple[str, ...]
UNLABELLED: Final[Labels] = ()


class Tally(Protocol):
    """One metric."""

    def family(self) -> Metric:
        """What it stands at now."""


class Counts:
    """A counter; `counts[labels] += 1` is the whole of it."""

    def __init__(
        self, name: str, text: str, *, labels: Sequence[str] = (), known: Iterable[Labels] = ()
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self.counts: defaultdict[Labels, float] = defaultdict(float, dict.fromkeys(known, 0.0))
        """By label values; those `known` stand at 0 from the start."""
        if not labels:
            self.counts[UNLABELLED] = 0.0

    def family(self) -> Metric:
        """What it stands at now."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in tuple(self.counts.items()):
            family.add_metric(labels, count)
        return family


class Levels:
    """A gauge; `levels[labels] = value` is the whole of it."""

    def __init__(
        self, name: str, text: str, *, labels: Sequence[str] = (), known: Iterable[Labels] = ()
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self.levels: dict[Labels, float] = dict.fromkeys(known, 0.0)
        """By label values; those `known` stand at 0 from the start."""
        if not labels:
            self.levels[UNLABELLED] = 0.0

    def family(self) -> Metric:
        """What it stands at now."""
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for labels, level in tuple(self.levels.items()):
            family.add_metric(labels, level)
        return family


class _Spread:
    """Observations of one series."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Spreads:
    """A histogram."""

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        *,
        labels: Sequence[str] = (),
        known: Iterable[Labels] = (UNLABELLED,),
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = tuple(bounds)
        self._series = {key: _Spread(len(self._bounds) + 1) for key in known}

    def observe(self, value: float, labels: Labels = UNLABELLED) -> None:
        """Count a value; its series is one of those known from the start."""
        series = self._series[labels]
        series.counts[bisect_left(self._bounds, value)] += 1
        series.total += value

    def family(self) -> Metric:
        """What it stands at now."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for labels, series in self._series.items():
            buckets = list(zip(names, map(float, accumulate(series.counts)), strict=True))
            family.add_metric(labels, buckets, series.total)
        return family


class Tallies(Collector):
    """All metrics of a registry."""

    def __init__(self, tallies: Iterable[Tally]) -> None:
        self._tallies = tuple(tallies)

    def collect(self) -> Iterable[Metric]:
        """Every family, as it stands now."""
        return [tally.family() for tally in self._tallies]
