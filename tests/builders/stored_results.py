"""Results as they lie in the database, put there by the one way that there is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from contract.checks import CheckType
from contract.job import RunSource
from contract.result import Failure, FailureKind, Outcome, Result, Status
from contract.wire import encode
from service.results.model import Cause, Record, ResultType, RunStatus
from service.results.recording import record
from tests.servers.public_api import PublicApi

_RUNS = count(1_000)
START_MS = 1_790_000_000_000


async def store(
    api: PublicApi,
    check: dict[str, Any],
    outcome: Outcome | None = None,
    **fields: Any,
) -> int:
    """Store the result of a run of the check, or that nobody ran it; tells the run's id."""
    made = a_record(check, location_id=api.alice.secrets.location_id, outcome=outcome, **fields)
    await store_all(api, [made])
    return made.run_id


async def store_all(api: PublicApi, records: Sequence[Record]) -> None:
    """Store results in one transaction."""
    await api.database.write(lambda c: record(c, records, now_ms=api.backend.clock.now_ms(c)))


def a_record(
    check: dict[str, Any], *, location_id: str, outcome: Outcome | None = None, **fields: Any
) -> Record:
    """A result on its way into the database."""
    run_id = fields.pop("run_id", None) or next(_RUNS)
    started_ms = fields.pop("started_ms", START_MS)
    seen = _result(check, run_id, outcome) if outcome else None
    values: dict[str, Any] = {
        "check_id": check["id"],
        "run_id": run_id,
        "fence": 1,
        "session_id": None,
        "location_id": location_id,
        "source": RunSource.SCHEDULER,
        "result_type": ResultType.FINAL,
        "status": RunStatus(outcome.status) if outcome else RunStatus.MISSED,
        "cause": None if outcome else Cause.NO_AGENT,
        "attempt": 1,
        "response_time_ms": outcome.response_time_ms if outcome else None,
        "over_max_response_time": bool(outcome and outcome.over_max_response_time),
        "scheduled_ms": started_ms - 5,
        "started_ms": started_ms,
        "stopped_ms": started_ms + 250,
        "body": encode(seen) if seen else None,
    }
    return Record(**{**values, **fields})


def passed(response_time_ms: float = 12.5, **fields: Any) -> Outcome:
    """A good outcome."""
    return Outcome(status=Status.PASSED, response_time_ms=response_time_ms, **fields)


def failed(message: str = "Nothing listens on 127.0.0.1:1 (connection refused).") -> Outcome:
    """A bad outcome."""
    failure = Failure(kind=FailureKind.CONNECT, message=message)
    return Outcome(status=Status.FAILED, failure=failure)


def _result(check: dict[str, Any], run_id: int, outcome: Outcome) -> Result:
    return Result(
        job_id=str(run_id),
        fence=1,
        run_id=str(run_id),
        check_id=check["id"],
        check_type=CheckType(check["checkType"]),
        agent_id="agent-1",
        started_at=datetime(2026, 11, 21, tzinfo=UTC),
        started_after_s=0.01,
        took_s=0.25,
        outcome=outcome,
    )
