"""The charts of each check type: what they show, and the columns of numbers that draw them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import actions as analytics
from service.analytics.actions import AnyTally, Series, SeriesRequest
from service.analytics.distribution import Aggregation
from service.analytics.measures import RESPONSE_TIME, GroupBy, Metric
from service.analytics.reading import Buckets, is_exact, is_small
from service.analytics.windows import HOUR_MS, INTERVALS, MINUTE_MS, MOST_MINUTES, Grid, Span
from service.checks.model import CheckRow
from service.heartbeats import actions as heartbeats
from service.heartbeats.model import Event, PingState
from service.web.check.ranges import Range

MOST_POINTS: Final = 1_000
_FINE_MS: Final = 48 * HOUR_MS
"""Longer ranges are drawn from roll-ups, by the hour."""
_MOST_RESULTS: Final = 50_000
"""A range with more is drawn from roll-ups, too."""
_MOST_BUCKETS: Final = 300
_JITTER_BUCKETS: Final = 2
MOST_PLACES: Final = 12
"""Further locations have no chart of their own."""

Columns = list[list[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One of the lines of a chart, or one of its stacked phases."""

    label: str
    color: int
    """Which of the series' colours it has, from 1."""
    measure: str
    aggregation: Aggregation | None = None
    """None: what the phase adds to the mean run."""
    less: str = ""
    """A phase that the measure includes, and that is shown by itself. Empty: none."""
    whole: str = RESPONSE_TIME
    """What the phases add up to; its runs are those that count."""

    def value_of(self, tally: AnyTally) -> float | None:
        """The number of a bucket. None: there is none."""
        if self.aggregation is not None:
            value: float | None = tally.compute(self.measure, self.aggregation)
            return value
        runs = tally.numbers.get(self.whole)
        total = tally.compute(self.measure, Aggregation.SUM)
        if runs is None or not runs.count or total is None:
            return None
        less = tally.compute(self.less, Aggregation.SUM) if self.less else 0
        mean: float = max(total - (less or 0), 0) / runs.count
        return mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What a chart shows."""

    title: str
    unit: str
    """`ms`, `%`, `s` or empty: a score."""
    lines: tuple[Line, ...]
    height: str = "tall"
    """`tall` or `low`: its height is kept free before it is drawn."""

    is_stacked: bool = False
    """Whether its phases stand on each other."""


def _phase(
    label: str, color: int, measure: str, *, less: str = "", whole: str = RESPONSE_TIME
) -> Line:
    return Line(label=label, color=color, measure=measure, less=less, whole=whole)


def _line(label: str, color: int, measure: str, aggregation: Aggregation) -> Line:
    return Line(label=label, color=color, measure=measure, aggregation=aggregation)


_P95: Final = _line("p95", 6, RESPONSE_TIME, Aggregation.P95)
_HTTP: Final = Chart(
    title="Response time by phase",
    unit="ms",
    lines=(
        _phase("DNS", 5, "dns"),
        _phase("Connect", 2, "tcp"),
        _phase("TLS", 3, "tls"),
        _phase("First byte", 1, "firstByte", less="tls"),
        _phase("Download", 4, "download"),
        _P95,
    ),
    is_stacked=True,
)
_DURATION: Final = Chart(
    title="Duration",
    unit="ms",
    lines=(_P95, _line("Median", 1, RESPONSE_TIME, Aggregation.P50)),
)
_TOTAL: Final = "total"
_TOTAL_P95: Final = _line("p95", 6, _TOTAL, Aggregation.P95)
_SOCKET: Final = Chart(
    title="Time by phase",
    unit="ms",
    lines=(
        _phase("DNS", 5, "dns", whole=_TOTAL),
        _phase("Connect", 2, "connection", whole=_TOTAL),
        _phase("Data", 1, "data", whole=_TOTAL),
        _TOTAL_P95,
    ),
    is_stacked=True,
)
_ANSWER: Final = Chart(
    title="Time to the answer",
    unit="ms",
    lines=(_TOTAL_P95, _line("Median", 1, _TOTAL, Aggregation.P50)),
)
_VITALS: Final = Chart(
    title="Web vitals",
    unit="ms",
    lines=(
        _line("LCP", 1, "LCP", Aggregation.P50),
        _line("FCP", 2, "FCP", Aggregation.P50),
        _line("TTFB", 5, "TTFB", Aggregation.P50),
        _line("TBT", 3, "TBT", Aggregation.P50),
    ),
)
_SHIFT: Final = Chart(
    title="Layout shift (CLS)",
    unit="",
    lines=(_line("CLS", 4, "CLS", Aggregation.P50),),
    height="low",
)
_PINGS: Final = (
    Chart(
        title="Latency",
        unit="ms",
        lines=(
            _line("Mean", 1, "latencyAvg", Aggregation.AVG),
            _line("Slowest", 6, "latencyMax", Aggregation.MAX),
        ),
    ),
    Chart(
        title="Packet loss",
        unit="%",
        lines=(_line("Loss", 3, "packetLoss", Aggregation.AVG),),
        height="low",
    ),
)
_GAPS: Final = Chart(
    title="Time between pings",
    unit="s",
    lines=(
        Line(label="Since the ping before", color=1, measure="gap"),
        Line(label="Overdue after", color=6, measure="limit"),
    ),
)
_BY_MEASURE: Final[Mapping[str, tuple[Chart, ...]]] = {
    "firstByte": (_HTTP,),
    "connection": (_SOCKET,),
    "latencyAvg": _PINGS,
    "LCP": (_DURATION, _VITALS, _SHIFT),
    _TOTAL: (_ANSWER,),
    RESPONSE_TIME: (_DURATION,),
}
"""The charts of a type, by what it measures; the first that fits."""


def charts_of(kind: CheckType) -> tuple[Chart, ...]:
    """What the charts of a check type show. Empty: nothing is measured of its runs."""
    if kind is CheckType.HEARTBEAT:
        return (_GAPS,)
    measured = {one.measure.name for one in analytics.list_metrics(kind)}
    return next((charts for name, charts in _BY_MEASURE.items() if name in measured), ())


def main_line_of(charts: Sequence[Chart]) -> Line:
    """The line that stands for the whole run."""
    return charts[0].lines[-1] if charts[0].is_stacked else charts[0].lines[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The numbers of a check's charts over a range."""

    charts: tuple[Chart, ...]
    columns: tuple[Columns, ...]
    """By chart: the times in seconds, and the values of each line. A bucket is at its middle."""
    begins: Sequence[float | None]
    """When each bucket begins, or an event was, in seconds."""
    failing: list[tuple[float, float]]
    """The stretches of time, in seconds, in which runs failed."""
    unseen: list[tuple[float, float]]
    """The stretches between runs in which nobody looked."""
    places: Mapping[str, list[float | None]]
    """The values of each location, at the times of the first chart."""
    step_ms: int
    """The length of a bucket. 0: each point is an event."""


def draw(connection: Connection, check: CheckRow, shown: Range, *, with_places: bool) -> Drawn:
    """Read what the charts of a check show.

    `with_places`: whether it runs at several locations.
    """
    kind = CheckType(check.type)
    charts = charts_of(kind)
    if kind is CheckType.HEARTBEAT:
        return _draw_pings(connection, check, shown)
    if not charts:
        return _NOTHING
    period_ms = int(check.effective["frequency"]) * MINUTE_MS
    buckets, exactly = _cut(connection, check, shown.span, period_ms)
    seconds: list[float | None] = list(_middles(buckets))
    request = SeriesRequest(
        check_id=check.id,
        kind=kind,
        metrics=_metrics_of(kind, (line for chart in charts for line in chart.lines)),
        buckets=buckets,
        is_exact=exactly,
    )
    found = analytics.find_series(connection, request)
    tallies = found[0].tallies if found else ()
    main = main_line_of(charts)
    return Drawn(
        charts=charts,
        columns=tuple([seconds, *_values(chart, tallies)] for chart in charts),
        begins=[edge / 1000 for edge in buckets.edges[:-1]],
        failing=_failing_spans(buckets.edges, tallies),
        unseen=_unseen_spans(buckets.edges, tallies),
        places=_draw_places(connection, request, main) if with_places else {},
        step_ms=buckets.edges[1] - buckets.edges[0],
    )


def _middles(buckets: Buckets) -> Iterator[float]:
    """The middle of each bucket, in seconds; of the first and the last one as far as it counts."""
    begin_ms, end_ms = buckets.span
    for start_ms, stop_ms in pairwise(buckets.edges):
        yield (max(start_ms, begin_ms) + min(stop_ms, end_ms)) / 2_000


def _values(chart: Chart, tallies: Sequence[AnyTally]) -> Columns:
    digits = 1 if chart.unit else 3
    return [[_round(line.value_of(one), digits) for one in tallies] for line in chart.lines]


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _metrics_of(kind: CheckType, lines: Iterable[Line]) -> tuple[Metric, ...]:
    wanted = {name for line in lines for name in (line.measure, line.less, line.whole)}
    return tuple(one for one in analytics.list_metrics(kind) if one.measure.name in wanted)


def _cut(
    connection: Connection, check: CheckRow, span: Span, period_ms: int
) -> tuple[Buckets, bool]:
    """The buckets of a chart, and whether they are computed from results.

    Each is at least as long as the time between runs, so that a line has no holes.
    """
    exactly = (
        span[1] - span[0] <= _FINE_MS
        and is_exact(connection, span)
        and is_small(connection, {check.id: CheckType(check.type)}, span, most=_MOST_RESULTS)
    )
    least_ms = max(period_ms, MINUTE_MS if exactly else HOUR_MS)
    minutes = next(
        (
            one
            for one in INTERVALS
            if one * MINUTE_MS >= least_ms and Grid(span, one * MINUTE_MS).count <= _MOST_BUCKETS
        ),
        MOST_MINUTES,
    )
    grid = Grid(span, minutes * MINUTE_MS)
    return Buckets(grid.edges(0, MOST_POINTS), span), exactly


def _draw_places(
    connection: Connection, request: SeriesRequest, main: Line
) -> dict[str, list[float | None]]:
    wanted = SeriesRequest(
        check_id=request.check_id,
        kind=request.kind,
        metrics=_metrics_of(request.kind, (main,)),
        buckets=request.buckets,
        group_by=GroupBy.RUN_LOCATION,
        is_exact=request.is_exact,
    )
    found: Sequence[Series] = analytics.find_series(connection, wanted)
    return {
        one.group.location: [_round(main.value_of(tally), 1) for tally in one.tallies]
        for one in found[:MOST_PLACES]
    }


def _failing_spans(edges: Sequence[int], tallies: Sequence[AnyTally]) -> list[tuple[float, float]]:
    return _join(
        (edges[number] / 1000, edges[number + 1] / 1000)
        for number, one in enumerate(tallies)
        if one.successes < one.runs
    )


def _unseen_spans(edges: Sequence[int], tallies: Sequence[AnyTally]) -> list[tuple[float, float]]:
    """Holes of several buckets: one alone is the jitter of a schedule."""
    with_runs = [number for number, one in enumerate(tallies) if one.runs]
    return [
        (edges[before + 1] / 1000, edges[after] / 1000)
        for before, after in pairwise(with_runs)
        if after - before > _JITTER_BUCKETS
    ]


def _join(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for begin, end in spans:
        if joined and joined[-1][1] >= begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


def _draw_pings(connection: Connection, check: CheckRow, shown: Range) -> Drawn:
    events = heartbeats.list_events(connection, check.id, window=shown.span, limit=MOST_POINTS + 1)[
        ::-1
    ]
    limit_s = overdue_after_s(check.effective["heartbeat"])
    times: list[float | None] = []
    gaps: list[float | None] = []
    for before, event in pairwise(_pings(events)):
        times.append(event.at_ms / 1000)
        gaps.append((event.at_ms - before.at_ms) / 1000)
    return Drawn(
        charts=(_GAPS,),
        columns=([times, gaps, [limit_s] * len(times)],),
        begins=times,
        failing=_silences(events, shown.span[1]),
        unseen=[],
        places={},
        step_ms=0,
    )


def _pings(events: Sequence[Event]) -> list[Event]:
    return [one for one in events if one.state is not PingState.FAILING]


def _silences(events: Sequence[Event], end_ms: int) -> list[tuple[float, float]]:
    """From each ping that did not come to the next that did."""
    spans = []
    since_ms = None
    for event in events:
        if event.state is PingState.FAILING:
            since_ms = since_ms or event.at_ms
        elif since_ms is not None:
            spans.append((since_ms / 1000, event.at_ms / 1000))
            since_ms = None
    if since_ms is not None:
        spans.append((since_ms / 1000, end_ms / 1000))
    return spans


_UNITS_S: Final = {"seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400}


def overdue_after_s(heartbeat: Mapping[str, Any]) -> float:
    """How long after a ping the next one is overdue: its period with the grace."""
    parts = [heartbeat[name] * _UNITS_S[heartbeat[f"{name}Unit"]] for name in ("period", "grace")]
    return float(sum(parts))


_NOTHING: Final = Drawn(
    charts=(), columns=(), begins=(), failing=[], unseen=[], places={}, step_ms=0
)


def as_json(drawn: Drawn, shown: Range) -> dict[str, Any]:
    """The numbers as the script of the page reads them."""
    return {
        "from": shown.span[0] / 1000,
        "to": shown.span[1] / 1000,
        "step": drawn.step_ms / 1000,
        "failing": drawn.failing,
        "unseen": drawn.unseen,
        "charts": [
            {
                "title": chart.title,
                "unit": chart.unit,
                "isStacked": chart.is_stacked,
                "lines": [
                    {
                        "label": line.label,
                        "color": line.color,
                        "isPhase": chart.is_stacked and line.aggregation is None,
                    }
                    for line in chart.lines
                ],
                "columns": columns,
            }
            for chart, columns in zip(drawn.charts, drawn.columns, strict=True)
        ],
        "places": drawn.places,
    }
