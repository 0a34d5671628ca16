"""What is measured of each check type: one table, by which requests are read and series computed.

The table's rows stand in the types' own modules (`service/checks/types/`), made of these parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from service.analytics.distribution import Aggregation
from service.heartbeats.model import PingState


class Unit(StrEnum):
    """What a metric's numbers count."""

    MILLISECONDS = "milliseconds"
    SCORE = "score"
    COUNT = "count"
    PERCENTAGE = "percentage"


class GroupBy(StrEnum):
    """By what a series may be split."""

    RUN_LOCATION = "runLocation"
    STATUS_CODE = "statusCode"
    PAGE_INDEX = "pageIndex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Something that is measured of each run."""

    name: str
    label: str
    unit: Unit
    source: str = ""
    """Where a run has it, from its `hours.Facts` on. Empty: the run itself has none."""
    page_source: str = ""
    """Where a page has it, from its `hours.Page` on. Empty: pages have none."""
    usual: Aggregation = Aggregation.AVG
    """What the name without a suffix means."""
    has_suffixes: bool = True
    is_public: bool = True
    """False: pages alone show it; the specification's list has no such name."""


RESPONSE_TIME: Final = "responseTime"
"""Known of each run without a look into what its agent sent."""
AVAILABILITY: Final = Measure(
    name="availability", label="Availability", unit=Unit.PERCENTAGE, has_suffixes=False
)
RETRIES: Final = Measure(
    name="retries",
    label="Retries",
    unit=Unit.COUNT,
    usual=Aggregation.SUM,
    has_suffixes=False,
)
_OF_ALL: Final = (AVAILABILITY, RETRIES)
PING_STATES: Final = tuple(PingState)
"""What `filterByStatus` may name of a heartbeat; a run keeps the position in this list, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that can be asked for."""

    name: str
    measure: Measure
    aggregation: Aggregation

    @property
    def label(self) -> str:
        """What people call it."""
        return self.measure.label


@dataclass(frozen=True, kw_only=True)
class Analytics:
    """The analytics of a check type."""

    path: str
    """The part of the URL that names the type."""
    measures: tuple[Measure, ...] = ()
    """What runs of the type measure, but for what runs of all types do."""
    groups: tuple[GroupBy, ...] = (GroupBy.RUN_LOCATION,)
    """By what a series can be split. Empty: by nothing."""
    dimension: str = ""
    """Where a run has its status code or state, from its `hours.Facts` on. Empty: it has none."""
    has_response_time: bool = True
    """Whether summaries tell of response times."""
    has_ping_states: bool = False
    """Whether `filterByStatus` names the states of a heartbeat."""

    @cached_property
    def all_measures(self) -> tuple[Measure, ...]:
        """With what runs of all types have."""
        return (*self.measures, *_OF_ALL)

    @cached_property
    def stored(self) -> tuple[Measure, ...]:
        """What is kept of each run as numbers."""
        own = tuple(one for one in self.measures if one.name != RESPONSE_TIME)
        return (_TIME, *own) if self.has_response_time else own

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """All that can be asked for, by name."""
        return {one.name: one for measure in self.all_measures for one in _metrics_of(measure)}

    @cached_property
    def public_metrics(self) -> Mapping[str, Metric]:
        """Those of the API."""
        return {name: one for name, one in self.metrics.items() if one.measure.is_public}


def _metrics_of(measure: Measure) -> tuple[Metric, ...]:
    bare = Metric(name=measure.name, measure=measure, aggregation=measure.usual)
    if not measure.has_suffixes:
        return (bare,)
    return (
        bare,
        *(
            Metric(name=f"{measure.name}_{one.value}", measure=measure, aggregation=one)
            for one in Aggregation
        ),
    )


def _ms(name: str, label: str, source: str = "", *, page_source: str = "") -> Measure:
    return Measure(
        name=name, label=label, unit=Unit.MILLISECONDS, source=source, page_source=page_source
    )


def _errors(name: str, label: str, source: str, *, page_source: str = "") -> Measure:
    return Measure(
        name=name,
        label=label,
        unit=Unit.COUNT,
        source=source,
        page_source=page_source,
        usual=Aggregation.SUM,
    )


STATUS_CODE: Final = "status_code"
PING_STATE: Final = "ping_state"
BY_STATUS_CODE: Final = (GroupBy.RUN_LOCATION, GroupBy.STATUS_CODE)
BY_PAGE: Final = (GroupBy.RUN_LOCATION, GroupBy.PAGE_INDEX)
_TIME: Final = _ms(RESPONSE_TIME, "Response Time", "response_time_ms")
SCRIPT: Final = (_TIME,)
HTTP: Final = (
    _TIME,
    _ms("wait", "Wait", "timings.wait"),
    _ms("dns", "DNS", "timings.dns"),
    _ms("tcp", "TCP", "timings.tcp"),
    replace(_ms("tls", "TLS", "timings.tls"), is_public=False),
    _ms("firstByte", "First Byte", "first_byte_ms"),
    _ms("download", "Download", "timings.download"),
)
TOTAL: Final = _ms("total", "Total", "timings.total")
SOCKET: Final = (
    TOTAL,
    _ms("dns", "DNS", "timings.dns"),
    _ms("connection", "Connection", "connection_ms"),
    _ms("data", "Data", "timings.data"),
)
PINGS: Final = (
    Measure(
        name="packetLoss",
        label="Packet Loss",
        unit=Unit.PERCENTAGE,
        source="evidence.packet_loss",
    ),
    _ms("latencyMin", "Minimum Latency", "evidence.latency.min"),
    _ms("latencyMax", "Maximum Latency", "evidence.latency.max"),
    _ms("latencyAvg", "Average Latency", "evidence.latency.avg"),
    _ms("latencyStdDev", "Latency Standard Deviation", "evidence.latency.std_dev"),
)
BROWSER_MEASURES: Final = (
    _TIME,
    _ms("TTFB", "Time To First Byte", page_source="metrics.ttfb_ms"),
    _ms("FCP", "First Contentful Paint", page_source="metrics.fcp_ms"),
    _ms("LCP", "Largest Contentful Paint", page_source="metrics.lcp_ms"),
    Measure(
        name="CLS",
        label="Cumulative Layout Shift",
        unit=Unit.SCORE,
        page_source="metrics.cls",
    ),
    _ms("TBT", "Total Blocking Time", page_source="metrics.tbt_ms"),
    _errors("consoleErrors", "Console Errors", "console_errors", page_source="console_errors"),
    _errors("networkErrors", "Network Errors", "network_errors", page_source="network_errors"),
    _errors("userScriptErrors", "User Script Errors", "evidence.user_script_errors"),
    _errors("documentErrors", "Document Errors", "document_errors", page_source="document_errors"),
)
