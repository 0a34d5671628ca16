"""`/v1/reporting`: availability and response times of all checks over a window."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import Depends, Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response

from contract.checks import CheckType
from contract.targets import format_value
from service.analytics import actions as analytics
from service.analytics.actions import AnyTally
from service.analytics.distribution import Aggregation
from service.analytics.measures import RESPONSE_TIME
from service.analytics.windows import (
    Granularity,
    QuickRange,
    Span,
    find_window,
    period_edges,
    span_of,
)
from service.checks import actions as checks
from service.checks.model import CheckLabels
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError
from service.http.routing import answers, json_fast, keyed_operations
from service.http.schema import ResponseModel, Text
from service.http.times import format_time, query_window_ms

router = keyed_operations("Analytics", prefix="/v1/reporting")

_GROUP: Final = 100
"""How many checks are read at once."""
_MOST_PERIODS: Final = 400


class ReportRange(StrEnum):
    """A window with a name; weeks begin on Monday."""

    LAST_24_HOURS = "last24Hrs"
    LAST_7_DAYS = "last7Days"
    LAST_30_DAYS = "last30Days"
    THIS_WEEK = "thisWeek"
    THIS_MONTH = "thisMonth"
    LAST_WEEK = "lastWeek"
    LAST_MONTH = "lastMonth"


class AggregateShown(ResponseModel):
    """Numbers over a window. Null: no data."""

    success_ratio: float | None
    """Percentage of runs that passed or were degraded."""
    avg: float | None
    """Response time in milliseconds, as all of these."""
    p95: float | None
    p99: float | None


class ReportPeriodShown(ResponseModel):
    """A day, a week or a month of the window."""

    from_: datetime = Field(alias="from")
    """Its beginning, inclusive; the first one may begin before the window."""
    to: datetime
    """Its end, exclusive."""
    aggregate: AggregateShown


class ReportShown(ResponseModel):
    """The numbers of one check."""

    name: str
    check_id: str
    check_type: CheckType
    deactivated: bool
    tags: list[str]
    """Its own and its group's."""
    aggregate: AggregateShown
    periods: list[ReportPeriodShown] | None = None
    """Days, weeks or months of the window; only with `granularity`."""


def _zone(
    timezone: Annotated[
        Text | None, Query(max_length=60, description="IANA name; by default UTC.")
    ] = None,
) -> ZoneInfo:
    try:
        return ZoneInfo(timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidError(
            f'"timezone" is {format_value(timezone)}; use a name such as Europe/Berlin.',
            keys=("timezone",),
            source="query",
        ) from None


class _Wanted:
    """What a report is about."""

    def __init__(  # noqa: PLR0913 - what FastAPI hands in
        self,
        zone: Annotated[ZoneInfo, Depends(_zone)],
        *,
        from_: Annotated[
            str | None,
            Query(alias="from", description="Seconds since 1970, or ISO 8601; inclusive."),
        ] = None,
        to: Annotated[
            str | None, Query(description="Seconds since 1970, or ISO 8601; exclusive.")
        ] = None,
        quick_range: Annotated[
            ReportRange, Query(alias="quickRange", description="Without `from` and `to`.")
        ] = ReportRange.LAST_24_HOURS,
        tags: Annotated[
            list[Text],
            Query(
                alias="filterByTags",
                max_length=50,
                description="Checks with one of these tags, own or their group's.",
            ),
        ] = [],  # noqa: B006 - FastAPI copies defaults
        deactivated: Annotated[
            bool | None, Query(description="Only checks that do not run, or that do.")
        ] = None,
        granularity: Annotated[
            Granularity | None, Query(description="Numbers for each of these as well.")
        ] = None,
    ) -> None:
        self._given = query_window_ms(("from", from_), ("to", to))
        self._range, self._zone = _RANGES[quick_range], zone
        self._tags = frozenset(
            tag.strip() for part in tags for tag in part.split(",") if tag.strip()
        )
        self._deactivated, self._granularity = deactivated, granularity

    def span(self, now_ms: int) -> Span:
        """The window as of now."""
        from_ms, to_ms = self._given
        if from_ms is None and to_ms is None:
            return span_of(self._range, now_ms=now_ms, zone=self._zone)
        return find_window(from_ms=from_ms, to_ms=to_ms, quick_range=self._range, now_ms=now_ms)

    def has(self, check: CheckLabels) -> bool:
        """Whether the report has this check."""
        if self._deactivated is not None and check.activated is self._deactivated:
            return False
        return not self._tags or not self._tags.isdisjoint(check.tags)

    def periods(self, span: Span) -> Sequence[int] | None:
        """Where periods begin and the last one ends. None: there are none.

        Raises:
            InvalidError: there would be too many.
        """
        if self._granularity is None or span[0] >= span[1]:
            return None
        least_days = _LEAST_DAYS[self._granularity]
        if (span[1] - span[0]) / (least_days * _DAY_MS) > _MOST_PERIODS:
            raise InvalidError(
                f'"granularity" is {self._granularity.value}, which makes more than'
                f" {_MOST_PERIODS} periods of this window; use a longer one, or a shorter window.",
                keys=("granularity",),
                source="query",
            )
        return period_edges(span, self._granularity, self._zone)


_RANGES: Final = {one: QuickRange[one.name] for one in ReportRange}
_DAY_MS: Final = 86_400_000
_LEAST_DAYS: Final = {Granularity.DAY: 1, Granularity.WEEK: 7, Granularity.MONTH: 28}
WantedDep = Annotated[_Wanted, Depends(_Wanted)]


@router.get("", responses=answers(200, list[ReportShown], "The checks, the oldest first."))
async def read_report(caller: CallerDep, backend: BackendDep, wanted: WantedDep) -> Response:
    """Report on all checks of the account: availability and response times over a window."""

    def query(connection: Connection) -> tuple[Span, list[CheckLabels]]:
        found = checks.list_labels(connection, caller.account_id)
        span = wanted.span(backend.clock.now_ms(connection))
        return span, [check for check in found if wanted.has(check)]

    span, found = await backend.database.read(query)
    edges = wanted.periods(span)
    # Up to so many a report is exact, as a summary is.
    most = analytics.MOST_SUMMED * min(_GROUP, len(found)) // max(len(found), 1)
    shown: list[dict[str, Any]] = []
    for some in _in_groups(found):
        tally = partial(analytics.tally, most_results=most, archive=backend.archive)
        report = partial(_report, some=some, span=span, edges=edges, tally=tally)
        shown += await backend.database.read(report)
    return json_fast(shown)


def _in_groups(found: Sequence[CheckLabels]) -> Iterator[Sequence[CheckLabels]]:
    return (found[start : start + _GROUP] for start in range(0, len(found), _GROUP))


def _report(
    connection: Connection,
    *,
    some: Sequence[CheckLabels],
    span: Span,
    edges: Sequence[int] | None,
    tally: Callable[..., dict[str, list[AnyTally]]],
) -> list[dict[str, Any]]:
    kinds = {check.id: check.type for check in some}
    whole = tally(connection, kinds, span, span)
    parts = tally(connection, kinds, edges, span) if edges else None
    return [
        _render(check)
        | {"aggregate": _aggregate(whole[check.id][0])}
        | ({"periods": _periods(edges, parts[check.id])} if edges and parts else {})
        for check in some
    ]


def _render(check: CheckLabels) -> dict[str, Any]:
    return {
        "name": check.name,
        "checkId": check.id,
        "checkType": check.type.value,
        "deactivated": not check.activated,
        "tags": list(check.tags),
    }


def _periods(edges: Sequence[int], tallies: Sequence[AnyTally]) -> list[dict[str, Any]]:
    return [
        {
            "from": format_time(edges[number]),
            "to": format_time(edges[number + 1]),
            "aggregate": _aggregate(tally),
        }
        for number, tally in enumerate(tallies)
    ]


def _aggregate(tally: AnyTally) -> dict[str, float | None]:
    return {
        "successRatio": analytics.round_number(analytics.availability(tally)),
        **{
            one.value: analytics.round_number(tally.compute(RESPONSE_TIME, one))
            for one in (Aggregation.AVG, Aggregation.P95, Aggregation.P99)
        },
    }
