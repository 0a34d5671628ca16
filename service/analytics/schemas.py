"""Analytics as the public API takes and shows them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from contract.checks import CheckType
from service.analytics.distribution import Aggregation
from service.analytics.measures import Unit
from service.http.schema import RequestModel, ResponseModel, Text


class MetricShown(ResponseModel):
    """A metric that can be asked for."""

    name: str
    label: str
    """What people call it."""
    unit: Unit
    aggregation: Aggregation
    """How the numbers of a bucket become one."""


class MetadataShown(ResponseModel):
    """What a metric's numbers are."""

    unit: Unit
    label: str
    """What people call it."""
    aggregation: Aggregation
    """How the numbers of a bucket become one."""


class LineShown(ResponseModel):
    """The buckets of one group."""

    run_location: str | None = None
    """Slug of the location; with `groupBy=runLocation` only."""
    status_code: int | None = None
    """HTTP status, null for runs without an answer; with `groupBy=statusCode` only."""
    page_index: int | None = None
    """Position of the page in its run, from 0; with `groupBy=pageIndex` only."""
    page_url: str | None = None
    """The page's last URL; with `groupBy=pageIndex` only."""
    data: list[dict[str, Any]]
    """Buckets in the order of time, each with its beginning as `time` and a number, or null where
    there is no data, per metric."""


class PaginationShown(ResponseModel):
    """The page of buckets."""

    page: int
    limit: int


class SeriesShown(ResponseModel):
    """A time series of one check."""

    check_id: str
    name: str
    check_type: CheckType
    activated: bool
    muted: bool
    frequency: float
    """Minutes between runs."""
    from_: datetime = Field(alias="from")
    """Beginning of the window, inclusive."""
    to: datetime
    """End of the window, exclusive."""
    tags: list[str]
    """Its own and its group's."""
    aggregation_interval: int
    """Minutes of a bucket."""
    source: Literal["results", "rollups"]
    """Whether numbers are exact, from results, or within 1 % of it, from hourly roll-ups."""
    series: list[LineShown]
    """One item, or with `groupBy` one per group."""
    pagination: PaginationShown
    metadata: dict[str, MetadataShown]
    """By the names of the requested metrics."""


class SummaryWrite(RequestModel):
    """The checks to summarize."""

    check_ids: Annotated[
        list[Annotated[Text, Field(max_length=200)]], Field(min_length=1, max_length=100)
    ]
    """Ids; those that the account has no check with are passed over."""


class SummaryShown(ResponseModel):
    """Numbers of a check over a window. Null: no data; a number that its type lacks is absent."""

    check_id: str
    check_type: CheckType
    availability: float | None = None
    """Percentage of runs that passed or were degraded."""
    response_time_avg: float | None = Field(default=None, alias="responseTime_avg")
    """Milliseconds, as all of these."""
    response_time_p50: float | None = Field(default=None, alias="responseTime_p50")
    response_time_p95: float | None = Field(default=None, alias="responseTime_p95")
    response_time_p99: float | None = Field(default=None, alias="responseTime_p99")
    latency_avg: float | None = Field(default=None, alias="latency_avg")
    """Milliseconds, as all of these: of the average round trip of each run."""
    latency_p50: float | None = Field(default=None, alias="latency_p50")
    latency_p95: float | None = Field(default=None, alias="latency_p95")
    latency_p99: float | None = Field(default=None, alias="latency_p99")
    packet_loss_avg: float | None = Field(default=None, alias="packetLoss_avg")
    """Percentage, as all of these."""
    packet_loss_p95: float | None = Field(default=None, alias="packetLoss_p95")
    packet_loss_p99: float | None = Field(default=None, alias="packetLoss_p99")
