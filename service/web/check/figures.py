"""What the runs of a range come to, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import actions as analytics
from service.analytics.actions import AnyTally
from service.analytics.distribution import Aggregation
from service.analytics.measures import RESPONSE_TIME
from service.analytics.reading import is_exact
from service.checks.model import CheckRow
from service.heartbeats import actions as heartbeats
from service.results import actions as results
from service.results.model import Cause, RunStatus
from service.web.check.ranges import Range

_LATENCY: Final = "latencyAvg"
_MOST_RESULTS: Final = 12_000
"""A range with more is summed up from roll-ups."""
CAUSES: Final[Mapping[Cause, str]] = {
    Cause.NO_AGENT: "no agent",
    Cause.QUEUE_EXPIRED: "not taken in time",
    Cause.AGENT_LOST: "agent lost",
    Cause.PAUSED: "paused",
    Cause.OVERLOADED: "agents overloaded",
    Cause.AGENT_ERROR: "agent failed",
    Cause.UNREADABLE: "unreadable secret",
    Cause.SERVICE_DOWN: "service down",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What the runs of a range come to."""

    runs: int
    failed: int
    degraded: int
    missed: int
    causes: list[tuple[str, int]]
    """Why runs were missed, the most frequent cause first."""
    percentiles: list[tuple[str, float | None]]
    """Percentiles of the response time or the latency, each with its name."""
    pings: int | None
    """How often a heartbeat was pinged. None: it is another type."""
    silences: int | None
    """How often a heartbeat became overdue, each time however long. None: it is another type."""
    loss: float | None
    """Mean packet loss in percent. None: it sends no echo requests, or there is no run."""

    @property
    def availability(self) -> float | None:
        """The share of runs that did not fail. None: there were none."""
        return (self.runs - self.failed) / self.runs if self.runs else None


def find_figures(connection: Connection, check: CheckRow, shown: Range) -> Figures:
    """Count the runs of a check in a range."""
    kind = CheckType(check.type)
    found = analytics.tally(
        connection, {check.id: kind}, list(shown.span), shown.span, most_results=_MOST_RESULTS
    )
    tally = found[check.id][0]
    outcomes = results.count_outcomes(connection, check.id, window=shown.span)
    counts = {one: _sum(outcomes, one) for one in RunStatus}
    runs, failed = tally.runs, tally.runs - tally.successes
    if kind is not CheckType.HEARTBEAT and is_exact(connection, shown.span):
        # Roll-ups hold whole hours; the results are all there.
        runs = sum(number for status, number in counts.items() if status.judges_target)
        failed = sum(number for status, number in counts.items() if status.has_failures)
    pings, silences = None, None
    if kind is CheckType.HEARTBEAT:
        pings, silences = heartbeats.count_events(connection, check.id, window=shown.span)
    causes: dict[str, int] = {}
    for (_, cause), number in outcomes.items():
        if cause is not None:
            causes[CAUSES[cause]] = causes.get(CAUSES[cause], 0) + number
    return Figures(
        runs=runs,
        failed=failed,
        degraded=counts[RunStatus.DEGRADED],
        missed=counts[RunStatus.MISSED] + counts[RunStatus.ERROR],
        causes=sorted(causes.items(), key=lambda pair: -pair[1]),
        percentiles=_percentiles(kind, tally),
        pings=pings,
        silences=silences,
        loss=tally.compute("packetLoss", Aggregation.AVG),
    )


def _sum(outcomes: Mapping[tuple[RunStatus, Cause | None], int], status: RunStatus) -> int:
    return sum(number for (one, _), number in outcomes.items() if one is status)


def _percentiles(kind: CheckType, tally: AnyTally) -> list[tuple[str, float | None]]:
    if kind is CheckType.HEARTBEAT:
        return []
    measure = _LATENCY if _LATENCY in tally.numbers else RESPONSE_TIME
    return [
        (one.value, tally.compute(measure, one))
        for one in (Aggregation.P50, Aggregation.P95, Aggregation.P99)
    ]
