"""Runs of a check over time, and the worker that rolls them up."""

from collections.abc import Iterable
from typing import Any

from contract.evidence import HttpEvidence, SeenResponse, SentRequest
from contract.result import Failure, FailureKind, Outcome, Status, Timings
from service.analytics.windows import HOUR_MS
from service.analytics.worker import RollUpWorker
from service.clock import Clock
from service.results.model import Record
from tests.builders.stored_results import a_record, passed, store_all
from tests.servers.public_api import PublicApi

BEGIN_MS = 1_790_035_200_000
"""A midnight in UTC, a Tuesday."""
BEGIN = "2026-09-22T00:00:00.000Z"
MINUTE_MS = 60_000


def http_evidence(status_code: int) -> HttpEvidence:
    """What a run saw of a page that answered."""
    request = SentRequest(method="GET", url="https://shop.example/")
    return HttpEvidence(request=request, response=SeenResponse(status_code=status_code))


def answered(time_ms: float, *, code: int = 200, status: Status = Status.PASSED) -> Outcome:
    """The outcome of an HTTP check whose phases take shares of the time."""
    timings = Timings(
        wait=time_ms / 100, dns=time_ms / 10, tcp=time_ms / 5, tls=1, first_byte=time_ms / 2
    )
    return Outcome(
        status=status, response_time_ms=time_ms, timings=timings, evidence=http_evidence(code)
    )


async def run_each_minute(
    api: PublicApi, check: dict[str, Any], times_ms: Iterable[float], *, from_ms: int = BEGIN_MS
) -> None:
    """Store good results with these response times, a minute apart."""
    await store_outcomes(api, check, map(passed, times_ms), from_ms=from_ms)


async def store_outcomes(
    api: PublicApi, check: dict[str, Any], outcomes: Iterable[Outcome], *, from_ms: int = BEGIN_MS
) -> None:
    """Store these outcomes, a minute apart."""
    records: list[Record] = [
        a_record(
            check,
            location_id=api.alice.secrets.location_id,
            outcome=outcome,
            started_ms=from_ms + number * MINUTE_MS,
        )
        for number, outcome in enumerate(outcomes)
    ]
    await store_all(api, records)


async def roll_up_all(api: PublicApi, *, clock: Clock | None = None) -> None:
    """Have everything rolled up that is over."""
    worker = RollUpWorker(clock or api.backend.clock)
    while await worker.act(api.database):
        pass


def query(**given: str | float) -> str:
    """The query of a series of the hours after `BEGIN_MS`."""
    hours = given.pop("hours", 1)
    window = {"from": BEGIN_MS / 1000, "to": (BEGIN_MS + float(hours) * HOUR_MS) / 1000}
    named = {"quick_range": "quickRange", "interval": "aggregationInterval", "group": "groupBy"}
    return "&".join(f"{named.get(key, key)}={value}" for key, value in {**window, **given}.items())


FAILED_FAST = Outcome(
    status=Status.FAILED,
    response_time_ms=100,
    failure=Failure(kind=FailureKind.HTTP_STATUS, message="The status is 500."),
)
"""A failure after a tenth of a second."""
