"""The service's metrics, and how long requests take."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby, product
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import Metric
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from contract.release import RELEASE
from service.clickhouse.model import CopyState
from service.jobs.model import DueTimesMissed, QueueDepth
from service.results.model import Cause, Kind, ResultType, RunStatus, Stored

NAMESPACE: Final = "picket_service"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_DURATION_BOUNDS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
)  # fmt: skip


class Metrics:
    """All counters and gauges of one service, on a registry of its own; the event loop's alone.

    A series of a closed set stands at 0 before its first event. Labels are closed sets, paths of
    routes and ids of locations: nothing that somebody has typed.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._copies: tuple[Gauge, Gauge, Counter] | None = None
        """None: nothing is copied, and no series says so."""
        self._make_run_metrics()
        self._make_request_metrics()
        known = self._gauge("info", "Always 1; the label says what runs.", "version")
        known.labels(RELEASE).set(1)
        self._queued = self._gauge("queue_runs", "Runs that could be claimed now.", "location")
        self._oldest = self._gauge(
            "queue_oldest_wait_seconds", "How long the oldest of them waits.", "location"
        )

    def render(self, queues: Mapping[str, QueueDepth]) -> bytes:
        """The Prometheus text format, of `CONTENT_TYPE`, with the queue of each location."""
        # A location that was deleted is not shown any more.
        self._queued.clear()
        self._oldest.clear()
        for location_id, queue in queues.items():
            self._queued.labels(location_id).set(queue.runs)
            self._oldest.labels(location_id).set(queue.oldest_wait_ms / 1000)
        return generate_latest(self)

    def collect(self) -> Iterable[Metric]:
        """Every family, without the second series per counter that tells when it began."""
        for family in self._registry.collect():
            family.samples = [one for one in family.samples if not one.name.endswith("_created")]
            yield family

    def count_claim(self, jobs: int) -> None:
        """A claim was answered, with so many jobs."""
        self._claims.inc()
        self._dealt.inc(jobs)

    def count_results(self, notice: Stored) -> None:
        """Results were stored, of agents or of runs that nobody did."""
        for kind, alike in groupby(notice.kinds):
            count = len(tuple(alike))
            for series in self._series_by_kind[kind]:
                series.inc(count)

    def count_due_times_missed(self, notice: DueTimesMissed) -> None:
        """Runs were due while the service was away."""
        self._due_times_missed.inc(notice.count)

    def note_copies(self, state: CopyState) -> None:
        """Results were copied to ClickHouse, or could not be."""
        if self._copies is None:
            self._copies = (
                self._gauge("clickhouse_up", "Whether ClickHouse took what it was sent last."),
                self._gauge("clickhouse_hours_waiting", "Hours of checks that are to be copied."),
                self._counter("clickhouse_results_copied", "Results that were copied."),
            )
        is_up, waiting, copied = self._copies
        is_up.set(state.is_up)
        waiting.set(state.hours_waiting)
        copied.inc(state.rows)

    def count_request(self, method: str, route: str, status: int, *, took_s: float) -> None:
        """A request was answered; a long poll takes as long as it waited."""
        series = self._answers.get((method, route, status))
        if series is None:
            series = self._series_of(method, route, status)
        count, duration = series
        count.inc()
        duration.observe(took_s)

    def _series_of(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        """Find the two series once: looking them up by their labels takes as long as counting."""
        count = self._requests.labels(method, route, str(status))
        series = count, self._durations.labels(method, route)
        self._answers[method, route, status] = series
        return series

    def _make_run_metrics(self) -> None:
        self._claims = self._counter("claims", "Claims that were answered, with jobs or without.")
        self._dealt = self._counter("jobs_dealt", "Jobs that were assigned to agents.")
        self._results = self._counter("results", "Results that were stored.", "type", "status")
        self._missed = self._counter(
            "runs_missed", "Runs that ended without checking the target.", "cause"
        )
        self._due_times_missed = self._counter(
            "due_times_missed", "Runs that were due while the service was away."
        )
        # Made once: finding one by its labels takes as long as the rest of the counting.
        self._series_by_kind: dict[Kind, tuple[Counter, ...]] = {
            kind: self._series_of_kind(*kind)
            for kind in product(ResultType, RunStatus, (None, *Cause))
        }

    def _series_of_kind(
        self, result_type: ResultType, status: RunStatus, cause: Cause | None
    ) -> tuple[Counter, ...]:
        result = self._results.labels(result_type.value, status.value)
        return (result,) if cause is None else (result, self._missed.labels(cause.value))

    def _make_request_metrics(self) -> None:
        self._answers: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._requests = self._counter(
            "requests", "Requests that were answered.", "method", "route", "status"
        )
        self._durations = Histogram(
            "request_duration_seconds",
            "How long answers took, long polls with their wait.",
            ("method", "route"),
            namespace=NAMESPACE,
            buckets=_DURATION_BOUNDS_S,
            registry=self._registry,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, namespace=NAMESPACE, registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, namespace=NAMESPACE, registry=self._registry)


OTHER: Final = "other"
"""The route of a request that none of ours answers."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Middleware around the whole application that counts and times each request."""

    def __init__(self, app: Starlette, metrics: Metrics, *, monotonic: Callable[[], float]) -> None:
        self._app = app
        self._metrics = metrics
        self._monotonic = monotonic
        plain = [route for route in app.routes if isinstance(route, Route)]
        self._paths = {route.path for route in plain}
        # Of several paths to one endpoint, the first names it.
        self._by_endpoint = {route.endpoint: route.path_format for route in reversed(plain)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and count it once it is answered."""
        began_s, status = self._monotonic(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            if status:
                took_s = self._monotonic() - began_s
                self._metrics.count_request(
                    _method(scope), self._route(scope), status, took_s=took_s
                )

    def _route(self, scope: Scope) -> str:
        """The route's path with the names of its parameters."""
        if route := scope.get("route"):
            return str(route.path_format)
        if scope["path"] in self._paths:
            return str(scope["path"])
        endpoint = scope.get("endpoint")
        return self._by_endpoint.get(endpoint, OTHER) if endpoint else OTHER


def _method(scope: Scope) -> str:
    """The method if HTTP has it: clients could invent a million, and each would be a series."""
    method = str(scope["method"])
    return method if method in _METHODS else OTHER
