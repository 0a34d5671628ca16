"""The agent's metrics: counters, gauges and histograms that cost little until they are read.

A counter of prometheus-client takes a lock and 0.5 us for each event, a histogram 1.2 us; a run
needs five. These are plain numbers of the event loop's thread, shown to prometheus-client as
families when it collects; the health port's thread reads them without a lock, which may show a run
in one series and not yet in another.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.result import Status
from redaction.clean import MemberKind
from runners.net.http.body_memory import BodyMemory

Labels = tuple[str, ...]
UNLABELLED: Final[Labels] = ()


class MetricSource(Protocol):
    """One metric."""

    def family(self) -> Metric:
        """What it stands at now."""


class Counter:
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


class Gauge:
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


class ReadGauge:
    """A gauge whose level is read when it is shown."""

    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self._name = name
        self._text = text
        self.read = read

    def family(self) -> Metric:
        """What it stands at now."""
        return GaugeMetricFamily(self._name, self._text, value=self.read())


class _Series:
    """Observations of one series."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histogram:
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
        self._series = {key: _Series(len(self._bounds) + 1) for key in known}

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


class MetricsCollector(Collector):
    """All metrics of a registry."""

    def __init__(self, tallies: Iterable[MetricSource]) -> None:
        self._tallies = tuple(tallies)

    def collect(self) -> Iterable[Metric]:
        """Every family, as it stands now."""
        return [tally.family() for tally in self._tallies]


NAMESPACE: Final = "picket_agent_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_DURATION_BOUNDS_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 240, 1800,
)  # fmt: skip
_LAG_BOUNDS_S: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 360)
_TYPES: Final = {kind: (kind.value,) for kind in CheckType}
_VERDICTS: Final = {
    (kind, status): (kind.value, status.value) for kind in CheckType for status in Status
}
_REASONS: Final = {reason: (reason.value,) for reason in ReleaseReason}
_MEMBERS: Final = {kind: (kind.value,) for kind in MemberKind}
_LANES: Final = {lane: (lane.value,) for lane in Lane}


class Metrics:
    """All counters and gauges of one agent, on a registry of its own.

    A series of a closed set stands at 0 before its first event. Written by the event loop's thread,
    read by any.
    """

    def __init__(self, *, version: str, runtime: str) -> None:
        self._make_job_metrics()
        self._make_state_metrics()
        self._make_delivery_metrics()
        self._make_body_metrics()
        known = _make_gauge("info", "Always 1; the labels say what runs.", "version", "runtime")
        known.levels[version, runtime] = 1
        self._registry = CollectorRegistry()
        self._registry.register(
            MetricsCollector([*self._list_job_metrics(), *self._list_delivery_metrics(), known])
        )

    def _list_job_metrics(self) -> tuple[MetricSource, ...]:
        return (self._jobs, self._duration, self._lag, self._released, self._free, self._oldest)

    def _list_delivery_metrics(self) -> tuple[MetricSource, ...]:
        counted = (self._renew_failures, self._dropped, self._replacements, self._refusals)
        files = (self._leaks, self._files_dropped, self._files_spooled)
        bodies = (self._bodies_held, self._bodies_waiting)
        return (
            *counted, self._requests, self._spooled, *files, self._loop_lag, self._tasks, *bodies
        )  # fmt: skip

    def text(self) -> bytes:
        """The Prometheus text format, of `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def job_started(self, *, lag_s: float) -> None:
        """A run began this long after it was due."""
        self._lag.observe(lag_s)

    def job_finished(self, check_type: CheckType, status: Status, *, took_s: float) -> None:
        """A run came to a verdict."""
        self._jobs.counts[_VERDICTS[check_type, status]] += 1
        self._duration.observe(took_s, _TYPES[check_type])

    def job_released(self, reason: ReleaseReason) -> None:
        """A job was given back without a result."""
        self._released.counts[_REASONS[reason]] += 1

    def slots_free(self, lane: Lane, count: int) -> None:
        """This many more jobs may start in the lane."""
        self._free.levels[_LANES[lane]] = count

    def oldest_wait(self, lane: Lane, *, wait_s: float) -> None:
        """The claimed job that waits longest for its start has waited this long; 0: none waits."""
        self._oldest.levels[_LANES[lane]] = wait_s

    def renew_failed(self) -> None:
        """A renewal of the leases did not reach the service."""
        self._renew_failures.counts[UNLABELLED] += 1

    def results_spooled(self, count: int) -> None:
        """This many results wait for delivery."""
        self._spooled.levels[UNLABELLED] = count

    def results_dropped(self, count: int) -> None:
        """This many results were given up: too old, no room, or refused for good."""
        self._dropped.counts[UNLABELLED] += count

    def artifacts_spooled(self, count: int) -> None:
        """This many files wait for delivery."""
        self._files_spooled.levels[UNLABELLED] = count

    def artifacts_dropped(self, count: int) -> None:
        """This many files were given up: too old, no room, not clean, or refused for good."""
        self._files_dropped.counts[UNLABELLED] += count

    def scrubbed(self, replacements: int) -> None:
        """The scrubber took out this many secrets."""
        self._replacements.counts[UNLABELLED] += replacements

    def scrub_refused(self) -> None:
        """The scrubber could not make a result clean, so it was not sent."""
        self._refusals.counts[UNLABELLED] += 1

    def leak_withheld(self, member: MemberKind) -> None:
        """The scanner found a secret in what had been scrubbed; it was not sent."""
        self._leaks.counts[_MEMBERS[member]] += 1

    def service_request(self, call: str, status: str) -> None:
        """The service was asked; `status` is the HTTP code, or a word when there was no answer."""
        self._requests.counts[call, status] += 1

    def loop_lag(self, lag_s: float) -> None:
        """The event loop came this much too late to a task that was due."""
        self._loop_lag.levels[UNLABELLED] = lag_s

    def tasks(self, count: int) -> None:
        """This many tasks are alive; one that grows without end is a leak."""
        self._tasks.levels[UNLABELLED] = count

    def watch_bodies(self, bodies: BodyMemory) -> None:
        """Show how much memory bodies hold, and how many runs wait for some."""
        self._bodies_held.read = lambda: bodies.held_bytes
        self._bodies_waiting.read = lambda: bodies.waiting

    def _make_body_metrics(self) -> None:
        self._bodies_held = ReadGauge(
            f"{NAMESPACE}body_memory_bytes", "Memory that bodies hold.", lambda: 0
        )
        self._bodies_waiting = ReadGauge(
            f"{NAMESPACE}body_memory_waiting", "Runs whose body waits for memory.", lambda: 0
        )

    def _make_job_metrics(self) -> None:
        self._jobs = Counter(
            f"{NAMESPACE}jobs",
            "Runs that ended with a verdict.",
            labels=("type", "status"),
            known=_VERDICTS.values(),
        )
        self._duration = Histogram(
            f"{NAMESPACE}job_duration_seconds",
            "How long runs took.",
            _DURATION_BOUNDS_S,
            labels=("type",),
            known=_TYPES.values(),
        )
        self._lag = Histogram(
            f"{NAMESPACE}job_lag_seconds", "Time from a run's due time to its start.", _LAG_BOUNDS_S
        )
        self._released = Counter(
            f"{NAMESPACE}released",
            "Jobs given back without a result.",
            labels=("reason",),
            known=_REASONS.values(),
        )

    def _make_state_metrics(self) -> None:
        lanes = tuple(_LANES.values())
        self._free = _make_gauge("slots_free", "Free slots.", "lane", known=lanes)
        self._oldest = _make_gauge(
            "oldest_wait_seconds",
            "Age of the claimed job that waits longest.",
            "lane",
            known=lanes,
        )
        self._spooled = _make_gauge("results_spooled", "Results that wait for delivery.")
        self._files_spooled = _make_gauge("artifacts_spooled", "Files that wait for delivery.")
        self._loop_lag = _make_gauge(
            "event_loop_lag_seconds", "How late the event loop ran a task that was due."
        )

        self._tasks = _make_gauge("tasks", "Tasks of the event loop that are alive.")

    def _make_delivery_metrics(self) -> None:
        self._renew_failures = _make_counter(
            "lease_renew_failures", "Renewals of leases that did not reach the service."
        )
        self._dropped = _make_counter("results_dropped", "Results that were dropped.")
        self._files_dropped = _make_counter("artifacts_dropped", "Files of runs that were dropped.")
        self._replacements = _make_counter("scrub_replacements", "Secrets redacted in results.")
        self._refusals = _make_counter(
            "scrub_refusals", "Results that could not be redacted and were not sent."
        )
        self._leaks = Counter(
            f"{NAMESPACE}leaks_withheld",
            "Results and artifacts not sent, because the scanner found a secret after redaction.",
            labels=("member",),
            known=_MEMBERS.values(),
        )
        self._requests = _make_counter(
            "service_requests", "Requests to the service.", "call", "status"
        )


def _make_counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(f"{NAMESPACE}{name}", text, labels=labels)


def _make_gauge(name: str, text: str, *labels: str, known: tuple[tuple[str], ...] = ()) -> Gauge:
    return Gauge(f"{NAMESPACE}{name}", text, labels=labels, known=known)
