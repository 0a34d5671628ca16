"""`/v1/analytics`: time series of a check, what can be asked for, and summaries of many checks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Depends, Query
from sqlalchemy import Connection
from starlette.responses import Response

from contract.checks import SPEC_TYPES, CheckType
from contract.targets import format_value
from service.analytics import actions
from service.analytics.actions import Series, SeriesRequest
from service.analytics.measures import PING_STATES, Analytics, GroupBy, Metric
from service.analytics.reading import Buckets, can_be_exact, is_exact, is_small
from service.analytics.schemas import MetricShown, SeriesShown, SummaryShown, SummaryWrite
from service.analytics.windows import (
    MINUTE_MS,
    MOST_MINUTES,
    Grid,
    QuickRange,
    Span,
    find_window,
    span_of,
    usual_interval,
)
from service.checks import actions as checks
from service.checks.model import CheckKind, CheckRow
from service.checks.types.registry import DEFINITIONS
from service.clickhouse.copies import ClickHouse
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.responses import Page, PageDep, page_of
from service.http.routing import CheckId, answers, json, json_fast, keyed_operations
from service.http.schema import Text
from service.http.times import format_time, query_window_ms

router = keyed_operations("Analytics", prefix="/v1/analytics")

_WHEN: Final = "Seconds since 1970, or ISO 8601"
_HOUR_MINUTES: Final = 60
MOST_RESULTS: Final = 300_000
"""A series of more is not computed exactly: they take 70 MB, and more for several metrics."""

_SUMMARY_RANGES: Final = tuple(
    one.value for one in QuickRange if one not in {QuickRange.LAST_30_DAYS, QuickRange.THIS_MONTH}
)
if TYPE_CHECKING:
    SummaryRange = str
else:
    SummaryRange = Literal[_SUMMARY_RANGES]


@dataclass(frozen=True, slots=True)
class _Window:
    """The window of a request, until the time is known."""

    from_ms: int | None
    to_ms: int | None
    quick_range: QuickRange
    minutes: int | None
    """The length of a bucket. None: one that fits the window."""

    def span(self, now_ms: int) -> Span:
        """The window as of now."""
        return find_window(
            from_ms=self.from_ms, to_ms=self.to_ms, quick_range=self.quick_range, now_ms=now_ms
        )


def _window(
    from_: Annotated[
        str | None,
        Query(alias="from", description=f"{_WHEN}; inclusive. It overrides `quickRange`."),
    ] = None,
    to: Annotated[
        str | None, Query(description=f"{_WHEN}; exclusive. It overrides `quickRange`.")
    ] = None,
    quick_range: Annotated[
        QuickRange, Query(alias="quickRange", description="In UTC; weeks begin on Monday.")
    ] = QuickRange.LAST_24_HOURS,
    minutes: Annotated[
        int | None,
        Query(
            alias="aggregationInterval",
            ge=1,
            le=MOST_MINUTES,
            description="Minutes of a bucket; by default such that there are at most 100.",
        ),
    ] = None,
) -> _Window:
    from_ms, to_ms = query_window_ms(("from", from_), ("to", to))
    return _Window(from_ms, to_ms, quick_range, minutes)


_WindowDep = Annotated[_Window, Depends(_window)]


def _items(choices: Sequence[str]) -> dict[str, Any]:
    return {"items": {"type": "string", "enum": list(choices)}}


def _split(name: str, given: Iterable[str], choices: Iterable[str]) -> tuple[str, ...]:
    """What a list in a query names, in commas or by repetition."""
    known = tuple(choices)
    names = tuple(dict.fromkeys(one.strip() for part in given for one in part.split(",")))
    for one in names:
        if one not in known:
            raise InvalidError(
                f'"{name}" names {format_value(one)}; use {", ".join(known)}.',
                keys=(name,),
                source="query",
            )
    return names


def _metrics_of(analytics: Analytics) -> Callable[..., tuple[Metric, ...]]:
    """How a request for a type names metrics."""

    def read(
        metrics: Annotated[
            list[Text],
            Query(
                min_length=1,
                max_length=200,
                description="Several may be one text with commas.",
                json_schema_extra=_items(tuple(analytics.public_metrics)),
            ),
        ],
    ) -> tuple[Metric, ...]:
        return tuple(
            analytics.public_metrics[name]
            for name in _split("metrics", metrics, analytics.public_metrics)
        )

    return read


@dataclass(frozen=True, slots=True)
class _Filter:
    """Which runs count."""

    succeeded: bool | None = None
    """None: either."""
    states: frozenset[int] | None = None
    """None: any."""


def _filter_of(analytics: Analytics) -> Callable[..., _Filter]:
    """How a request for a type names the runs that count."""
    states = tuple(one.value for one in PING_STATES)
    choices = states if analytics.has_ping_states else ("success", "failure")

    def read(
        statuses: Annotated[
            list[Text],
            Query(
                alias="filterByStatus",
                max_length=20,
                description="Only runs that ended like this; by default all.",
                json_schema_extra=_items(choices),
            ),
        ] = [],  # noqa: B006 - FastAPI copies defaults
    ) -> _Filter:
        named = _split("filterByStatus", statuses, choices)
        if not named or set(named) == set(choices):
            return _Filter()
        if analytics.has_ping_states:
            return _Filter(states=frozenset(states.index(one) + 1 for one in named))
        return _Filter(succeeded=named == ("success",))

    return read


def _group_of(analytics: Analytics) -> Callable[..., GroupBy | None]:
    """How a request for a type splits the series."""
    if not analytics.groups:
        return _no_group
    kind: Any = Literal[tuple(one.value for one in analytics.groups)]

    def read(
        group_by: Annotated[
            kind | None,
            Query(alias="groupBy", description="One series for each; this takes longer."),
        ] = None,
    ) -> GroupBy | None:
        return GroupBy(group_by) if group_by else None

    return read


def _no_group() -> None:
    return None


class _Cut:
    """The buckets of a window that a page shows."""

    def __init__(
        self,
        connection: Connection,
        check: CheckRow,
        window: _Window,
        page: Page,
        *,
        backend: Backend,
    ) -> None:
        """Cut the window of a check.

        Raises:
            InvalidError: the buckets are finer than what is kept of the window, or than what can
                be read at once.
            ArchiveError: the archive does not answer any more.
        """
        self.span: Span = window.span(backend.clock.now_ms(connection))
        self.archive: ClickHouse | None = backend.archive
        self.is_exact: bool = is_exact(connection, self.span, self.archive)
        self.page: Page = page
        is_fine = window.minutes is not None and window.minutes % _HOUR_MINUTES != 0
        if is_fine and not self.is_exact:
            raise _too_fine(
                f"{window.minutes}, and older results are kept by the hour", 'a later "from"'
            )
        if not is_fine:
            # All pages are of one kind, so the whole window decides.
            self.is_exact = can_be_exact(
                connection,
                {check.id: CheckType(check.type)},
                self.span,
                most=MOST_RESULTS,
                archive=self.archive,
            )
        self.minutes: int = window.minutes or self._usual_minutes()
        grid = Grid(self.span, self.minutes * MINUTE_MS)
        self.edges: Sequence[int] = grid.edges(page.offset, page.limit)
        self.has_next: bool = grid.count > page.offset + page.limit
        if is_fine and self.edges and not self._is_page_small(connection, check):
            raise _too_fine(
                f"{window.minutes}, and the page is computed from more than"
                f" {MOST_RESULTS:,} results",
                'a smaller "limit"',
            )

    def _usual_minutes(self) -> int:
        usual = usual_interval(self.span)
        return usual if self.is_exact else max(usual, _HOUR_MINUTES)

    def _is_page_small(self, connection: Connection, check: CheckRow) -> bool:
        shown = Buckets(self.edges, self.span).window
        kinds = {check.id: CheckType(check.type)}
        return is_small(connection, kinds, shown, most=MOST_RESULTS, archive=self.archive)


def _too_fine(what: str, way_out: str) -> InvalidError:
    return InvalidError(
        f'"aggregationInterval" is {what}; use a multiple of 60, or {way_out}.',
        keys=("aggregationInterval",),
        source="query",
    )


def _add_series(kind: CheckType, analytics: Analytics) -> None:
    """The operation of a check type."""
    noun = SPEC_TYPES[kind].noun
    words = noun.lower().replace("-", "_").replace(" ", "_")
    metrics_of, filter_of = _metrics_of(analytics), _filter_of(analytics)
    group_of = _group_of(analytics)

    async def read_series(  # noqa: PLR0913 - what FastAPI hands in
        check_id: CheckId,
        *,
        caller: CallerDep,
        backend: BackendDep,
        window: _WindowDep,
        page: PageDep,
        metrics: Annotated[tuple[Metric, ...], Depends(metrics_of)],
        wanted: Annotated[_Filter, Depends(filter_of)],
        group_by: Annotated[GroupBy | None, Depends(group_of)],
    ) -> Response:
        def query(connection: Connection) -> Response:
            check = checks.find(connection, caller.account_id, check_id)
            if check.type != kind:
                raise NotFoundError(f"There is no {noun} {check_id}.")
            cut = _Cut(connection, check, window, page, backend=backend)
            request = SeriesRequest(
                check_id=check_id,
                kind=kind,
                metrics=metrics,
                buckets=Buckets(cut.edges, cut.span),
                group_by=group_by,
                succeeded=wanted.succeeded,
                states=wanted.states,
                is_exact=cut.is_exact,
                archive=cut.archive,
            )
            return _answer(check, cut, request, actions.find_series(connection, request))

        return await backend.database.read(query)

    article = "an" if noun[0] in "AI" else "a"
    router.add_api_route(
        f"/{analytics.path}/{{id}}",
        read_series,
        methods=["GET"],
        name=f"read_{words}_analytics",
        description=f"Read a time series of {article} {noun}.",
        responses=page_of(SeriesShown, "A page of buckets, the oldest first.", 404),
    )


def _answer(
    check: CheckRow, cut: _Cut, request: SeriesRequest, found: Sequence[Series]
) -> Response:
    settings = check.effective
    shown = {
        "checkId": check.id,
        "name": check.name,
        "checkType": check.type,
        "activated": check.activated,
        "muted": settings["muted"],
        "frequency": settings["frequency"],
        "from": format_time(cut.span[0]),
        "to": format_time(cut.span[1]),
        "tags": settings["tags"],
        "aggregationInterval": cut.minutes,
        "source": "results" if cut.is_exact else "rollups",
        "series": [_line(one, request) for one in found],
        "pagination": {"page": cut.page.number, "limit": cut.page.limit},
        "metadata": {one.name: _metadata(one) for one in request.metrics},
    }
    response = json_fast(shown)
    if cut.has_next:
        response.headers["link"] = f'<{cut.page.next_url}>; rel="next"'
    return response


def _metadata(metric: Metric) -> Mapping[str, str]:
    measure = metric.measure
    return {
        "unit": measure.unit.value,
        "label": measure.label,
        "aggregation": metric.aggregation.value,
    }


def _line(series: Series, request: SeriesRequest) -> dict[str, Any]:
    """A line of the chart, with the name of its group."""
    edges = request.buckets.edges
    of_group = _name_group(series, request.group_by)
    in_rows = of_group if request.group_by is GroupBy.PAGE_INDEX else {}
    rows = [
        {
            "time": format_time(edges[number]),
            **{one.name: actions.round_number(tally.value_of(one)) for one in request.metrics},
            **in_rows,
        }
        for number, tally in enumerate(series.tallies)
    ]
    return {**of_group, "data": rows}


def _name_group(series: Series, group_by: GroupBy | None) -> dict[str, Any]:
    match group_by:
        case None:
            return {}
        case GroupBy.RUN_LOCATION:
            return {"runLocation": series.group.location}
        case GroupBy.STATUS_CODE:
            return {"statusCode": series.group.dimension or None}
        case GroupBy.PAGE_INDEX:
            urls = [one.page_url for one in series.tallies if one.page_url]
            return {"pageIndex": series.group.page, "pageUrl": urls[-1] if urls else None}


@router.get("/metrics", responses=answers(200, list[MetricShown], "The metrics, by name."))
async def list_analytics_metrics(
    caller: CallerDep,  # noqa: ARG001 - it needs a key, whosever
    check_type: Annotated[CheckKind, Query(alias="checkType")],
) -> Response:
    """List the metrics that a series of a check type can have."""
    found = actions.list_metrics(CheckType(check_type))
    return json([{"name": one.name, **_metadata(one)} for one in found if one.measure.is_public])


@router.post(
    "/checks", responses=answers(200, list[SummaryShown], "The checks in the order of the request.")
)
async def summarize_checks(
    body: SummaryWrite,
    caller: CallerDep,
    backend: BackendDep,
    quick_range: Annotated[
        SummaryRange, Query(alias="quickRange", description="In UTC; weeks begin on Monday.")
    ] = QuickRange.LAST_24_HOURS.value,
) -> Response:
    """Summarize up to 100 checks: availability, response times, latency and packet loss."""

    def query(connection: Connection) -> Response:
        now_ms = backend.clock.now_ms(connection)
        span = span_of(QuickRange(quick_range), now_ms=now_ms)
        kinds = checks.find_own_types(connection, caller.account_id, body.check_ids)
        found = actions.summarize(connection, kinds, span, backend.archive)
        return json_fast(
            [
                {
                    "checkId": check_id,
                    "checkType": kinds[check_id].value,
                    **{name: actions.round_number(value) for name, value in numbers.items()},
                }
                for check_id, numbers in found.items()
            ]
        )

    return await backend.database.read(query)


for _definition in DEFINITIONS:
    if _definition.analytics is not None:
        _add_series(_definition.kind, _definition.analytics)
