"""What happens, in order, when results arrive: settle the job, store, tell sessions and checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from msgspec import structs
from sqlalchemy import Connection

from contract.checks import CheckType
from contract.job import TEST_SOURCES, RunSource
from contract.result import Result
from service.checks import actions as checks
from service.checks.model import CheckTerms
from service.db.engine import need_alone
from service.heartbeats import actions as heartbeats
from service.jobs import actions as jobs
from service.jobs.model import QUEUE_MS, HeldJob, JobState, Priority, RequeuedJob
from service.jobs.rules import RetryStrategy, retry_delay_ms, strategy_of
from service.locations import actions as locations
from service.results.model import Record, ResultType, RunStatus
from service.results.recording import ResultStore, record, store_of
from service.sessions.actions import find_retry_strategy

_LONGEST_S: Final = 86_400
"""No run takes longer, whatever an agent says."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A result as it came in."""

    result: Result
    body: bytes
    """The result's own JSON."""
    run_id: int


class Verdict(Enum):
    """What became of a result that arrived."""

    ACCEPTED = auto()
    DUPLICATE = auto()
    """Known, or too late to count."""
    UNKNOWN_JOB = auto()
    """There is no such job: its check was deleted, or it never was."""
    FOREIGN_JOB = auto()
    """The job is another location's, or the result is not of its check."""
    UNSTORABLE = auto()
    """To store it fails, whatever it is stored with."""


@dataclass(slots=True)
class _Batch:
    """What one submission changes, gathered before it is written."""

    connection: Connection
    now_ms: int
    store: ResultStore
    records: list[Record] = field(default_factory=list)
    returns: list[RequeuedJob] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    late: list[tuple[object, ...]] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    """Runs of which this submission has brought a result that counts."""


def take_results(
    connection: Connection, arrived: Sequence[Arrived], *, location_id: str, now_ms: int
) -> list[Verdict]:
    """Take a submission in one transaction; one verdict per result, in order."""
    batch = _Batch(connection, now_ms, store_of(connection))
    held = dict(jobs.find_held(connection, {one.run_id for one in arrived}))
    _share(batch, held.values())
    verdicts = [_take(batch, one, held, location_id) for one in arrived]
    jobs.finish(connection, done=batch.done, again=batch.returns)
    record(connection, batch.records, now_ms=now_ms)
    if batch.late:
        batch.store.add_late(connection, batch.late)
    return verdicts


def _share(batch: _Batch, held: Iterable[HeldJob]) -> None:
    """Let other processes store results of other checks meanwhile, and of these checks none.

    A session is its checks' together; what a failure leads to needs the database alone, too.
    """
    check_ids = {job.check_id for job in held}
    has_session = any(job.session_id is not None for job in held)
    if has_session or not batch.store.hold(batch.connection, check_ids):
        need_alone(batch.connection)


def _take(batch: _Batch, one: Arrived, held: dict[int, HeldJob], location_id: str) -> Verdict:
    job = held.get(one.run_id)
    if job is None:
        return _after_the_run(batch, one, location_id)
    if one.result.check_id != job.check_id or one.result.fence > job.fence:
        return Verdict.FOREIGN_JOB
    if not _is_awaited(job, one.result):
        # A retry may have moved on, so another location of the account may be late too.
        may_know = _is_of_account(batch, job.check_id, location_id)
        return _late(batch, one) if may_know else Verdict.FOREIGN_JOB
    if job.location_id != location_id:
        return Verdict.FOREIGN_JOB
    del held[one.run_id]  # the same result twice in one submission counts once
    batch.settled.add(one.run_id)
    _settle(batch, one, job)
    return Verdict.ACCEPTED


def _is_awaited(job: HeldJob, result: Result) -> bool:
    """The result of the newest claim, of the attempt that runs.

    A lease that ran out does not matter while nobody else has the job: the result is as good as
    ever, and taking it spares a second run.
    """
    if result.fence != job.fence:
        return False
    return job.state == JobState.LEASED or result.attempt == job.attempt


def _after_the_run(batch: _Batch, one: Arrived, location_id: str) -> Verdict:
    """Runs are counted up, so anyone can guess one: it must be of the check, and the check ours."""
    if one.run_id in batch.settled:
        return Verdict.DUPLICATE
    check_id = one.result.check_id
    if not batch.store.is_settled(batch.connection, check_id, one.run_id):
        return Verdict.UNKNOWN_JOB
    if not _is_of_account(batch, check_id, location_id):
        return Verdict.UNKNOWN_JOB
    return _late(batch, one)


def _is_of_account(batch: _Batch, check_id: str, location_id: str) -> bool:
    """Whether check and location have one owner."""
    check = checks.find_terms(batch.connection, check_id)
    owner = locations.find_account(batch.connection, location_id)
    return check is not None and check.account_id == owner


def _late(batch: _Batch, one: Arrived) -> Verdict:
    """Keep as history what is not stored yet; it never counts."""
    result = one.result
    if not batch.store.is_known(batch.connection, result.check_id, one.run_id, result.fence):
        batch.late.append(
            (one.run_id, result.fence, result.check_id, result.agent_id, batch.now_ms, one.body)
        )
    return Verdict.DUPLICATE


def _settle(batch: _Batch, one: Arrived, job: HeldJob) -> None:
    seen = _record(one, job, now_ms=batch.now_ms)
    retry = _retry(batch, one, job, seen) if seen.status.has_failures else None
    if seen.status.has_failures:
        need_alone(batch.connection)
    if retry is None:
        batch.done.append(job.id)
        batch.records.append(seen)
        _note_heartbeat(batch, job, seen)
    else:
        batch.returns.append(retry)
        batch.records.append(structs.replace(seen, result_type=ResultType.ATTEMPT))


def _record(one: Arrived, job: HeldJob, *, now_ms: int) -> Record:
    """The result by the service's clock: the agent tells durations only."""
    result = one.result
    claimed_ms = job.claimed_ms if job.claimed_ms is not None else now_ms
    started_ms = min(claimed_ms + _ms(result.started_after_s), now_ms)
    return Record(
        check_id=job.check_id,
        run_id=job.id,
        fence=job.fence,
        session_id=job.session_id,
        location_id=job.location_id,
        source=RunSource(job.source),
        result_type=ResultType.FINAL,
        status=RunStatus(result.outcome.status),
        attempt=job.attempt,
        response_time_ms=result.outcome.response_time_ms,
        over_max_response_time=result.outcome.over_max_response_time,
        scheduled_ms=job.scheduled_ms,
        started_ms=started_ms,
        stopped_ms=started_ms + _ms(result.took_s),
        body=one.body,
    )


def _ms(duration_s: float) -> int:
    """One mad number must not keep the rest of a submission out."""
    return round(min(duration_s, _LONGEST_S) * 1000)


def _retry(batch: _Batch, one: Arrived, job: HeldJob, seen: Record) -> RequeuedJob | None:
    """The next attempt of a failed run. None: the failure is final."""
    check = checks.find_terms(batch.connection, job.check_id)
    strategy = _find_strategy(batch, job, check)
    if strategy is None:
        return None
    first_ms = job.first_started_ms if job.first_started_ms is not None else seen.started_ms
    elapsed_ms = seen.stopped_ms - first_ms
    failure = one.result.outcome.failure
    delay_ms = retry_delay_ms(strategy, attempt=job.attempt, elapsed_ms=elapsed_ms, failure=failure)
    if delay_ms is None:
        return None
    # A session has one run per location, and a parallel check looks from everywhere anyway.
    is_parallel = check is not None and check.run_parallel
    may_move = not (strategy.same_region or is_parallel or job.session_id)
    due_ms = batch.now_ms + delay_ms
    return RequeuedJob(
        job_id=job.id,
        location_id=_elsewhere(batch, job) if may_move else job.location_id,
        due_ms=due_ms,
        expires_ms=due_ms + QUEUE_MS,
        priority=Priority.WANTED,
        deliveries=0,
        attempt=job.attempt + 1,
        first_started_ms=first_ms,
        returned_by=None,
    )


def _find_strategy(batch: _Batch, job: HeldJob, check: CheckTerms | None) -> RetryStrategy | None:
    """How the job's failed runs are retried. None: they are final."""
    if job.source in TEST_SOURCES and job.session_id is not None:
        given = find_retry_strategy(batch.connection, job.session_id)
        return strategy_of({"retryStrategy": given}, CheckType(job.check_type))
    return strategy_of(check.doc, check.type) if check and check.activated else None


def _elsewhere(batch: _Batch, job: HeldJob) -> str:
    """The location after this one in the check's list, so that retries see other networks."""
    places = checks.find_locations(batch.connection, job.check_id)
    if job.location_id not in places:
        return job.location_id
    place = places[(places.index(job.location_id) + 1) % len(places)]
    # The check ran in parallel until just now: the same run is under way over there as well.
    return job.location_id if jobs.is_queued_at(batch.connection, job, place) else place


def _note_heartbeat(batch: _Batch, job: HeldJob, seen: Record) -> None:
    if job.check_type == CheckType.HEARTBEAT and seen.status.has_failures:
        heartbeats.mark_failing(batch.connection, job.check_id, now_ms=batch.now_ms)
