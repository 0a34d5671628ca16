"""Settles jobs that come back, or end, without a result."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import structlog
from sqlalchemy import Connection

from contract.agent_api import ReleaseReason
from contract.job import RunSource
from service.agents import actions as agents
from service.checks import actions as checks
from service.clock import GapWatch
from service.db.engine import announce, need_alone
from service.jobs import store
from service.jobs.engines import queue_of
from service.jobs.model import DueTimesMissed, HeldJob, JobState, MissedRun, RequeuedJob
from service.jobs.rules import (
    SEEN_MS,
    GiveUp,
    Requeue,
    after_lost_lease,
    after_queue_expired,
    after_release,
)
from service.results.model import OF_NO_CLAIM, Cause, Record, ResultType, RunStatus
from service.results.recording import record

log = structlog.get_logger()

GROUP: Final = 200
"""How many lost jobs, and how many expired ones, a transaction settles."""
_RESTART_GRACE_MS: Final = 30_000


class Release(NamedTuple):
    """A lease that an agent ends without a result."""

    job_id: int
    fence: int
    reason: ReleaseReason


def release(
    connection: Connection, given_back: Iterable[Release], *, location_id: str, now_ms: int
) -> None:
    """Settle jobs that agents give back; a lease that is not the newest changes nothing."""
    given = list(given_back)
    held = queue_of(connection).find_held(connection, {one.job_id for one in given})
    decisions = []
    for one in given:
        job = held.get(one.job_id)
        if job and job.location_id == location_id and _is_newest_lease(job, one.fence):
            decision = after_release(job, one.reason, now_ms=now_ms)
            decisions.append((job, _give_up_if_paused(connection, job, decision)))
    _settle(connection, decisions, now_ms=now_ms)


def expire_jobs(connection: Connection, *, watched_since_ms: int, now_ms: int) -> int:
    """Requeue or end jobs whose lease or time in the queue has run out; how many there were.

    `watched_since_ms`: since when the service has run without a gap.
    """
    queue = queue_of(connection)
    lost = queue.find_lost(connection, now_ms=now_ms, limit=GROUP)
    decisions = [
        (job, _give_up_if_paused(connection, job, after_lost_lease(job, now_ms=now_ms)))
        for job in lost
    ]
    expired = queue.find_expired(connection, now_ms=now_ms, limit=GROUP)
    taken = agents.types_seen_at(
        connection,
        {job.location_id for job in expired},
        since_ms=max(watched_since_ms, now_ms - SEEN_MS),
    )
    over = []
    for job in expired:
        taker_seen = job.check_type in taken.get(job.location_id, ())
        watched = {"watched_since_ms": watched_since_ms, "now_ms": now_ms}
        over.append((job, after_queue_expired(job, taker_seen=taker_seen, **watched)))
    _settle(connection, [*decisions, *over], now_ms=now_ms)
    return len(decisions) + len(over)


def extend_leases_after_gap(connection: Connection, *, now_ms: int) -> None:
    """Give agents time to renew: they could not while the service was away."""
    store.extend_leases(connection, until_ms=now_ms + _RESTART_GRACE_MS)


class Reaper:
    """Expires jobs, after each gap not before agents could renew their leases."""

    def __init__(self, watch: GapWatch) -> None:
        self._watch = watch
        self._since_ms: int | None = None
        """The end of the last gap. None: this process has not looked since it started."""

    def reap(self, connection: Connection, *, now_ms: int) -> int:
        """Requeue or end jobs whose lease or time in the queue has run out; how many there were."""
        since_ms = self._watch.since_ms(now_ms)
        if self._since_ms not in (None, since_ms):
            extend_leases_after_gap(connection, now_ms=now_ms)
        self._since_ms = since_ms
        return expire_jobs(connection, watched_since_ms=since_ms, now_ms=now_ms)


def record_missed(connection: Connection, missed: Sequence[MissedRun], *, now_ms: int) -> None:
    """Record runs that were never queued, because the service was away when they were due."""
    if not missed:
        return
    ids = queue_of(connection).reserve_ids(connection, len(missed))
    records = [_record_missed(one, run_id) for one, run_id in zip(missed, ids, strict=True)]
    record(connection, records, now_ms=now_ms)
    announce(connection, DueTimesMissed(sum(one.due_times for one in missed)))


def end_queued(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """End a paused check's scheduled runs that nobody has claimed."""
    ids = store.find_queued(connection, check_id)
    paused = GiveUp(RunStatus.MISSED, Cause.PAUSED)
    jobs = queue_of(connection).find_held(connection, ids).values()
    _settle(connection, [(job, paused) for job in jobs], now_ms=now_ms)


def end_unreadable(connection: Connection, job_ids: Sequence[int], *, now_ms: int) -> None:
    """End runs whose secrets cannot be decrypted: no agent can do them."""
    if job_ids:
        need_alone(connection)
        unreadable = GiveUp(RunStatus.ERROR, Cause.UNREADABLE)
        jobs = queue_of(connection).find_held(connection, job_ids).values()
        _settle(connection, [(job, unreadable) for job in jobs], now_ms=now_ms)


def end_queued_at(connection: Connection, location_id: str, *, now_ms: int) -> None:
    """End a location's scheduled runs that wait, because no agent is there."""
    ids = store.find_queued_at(connection, location_id)
    missed = GiveUp(RunStatus.MISSED, Cause.NO_AGENT)
    jobs = queue_of(connection).find_held(connection, ids).values()
    _settle(connection, [(job, missed) for job in jobs], now_ms=now_ms)


def release_held_by(
    connection: Connection, location_id: str, agent_ids: Iterable[str], *, now_ms: int
) -> None:
    """Requeue what agents hold whose key has ended, so that others can claim it at once."""
    ids = store.find_held_by(connection, location_id, agent_ids)
    decisions = []
    for job in queue_of(connection).find_held(connection, ids).values():
        decision = after_release(job, ReleaseReason.DRAINING, now_ms=now_ms)
        decisions.append((job, _give_up_if_paused(connection, job, decision)))
    _settle(connection, decisions, now_ms=now_ms)


def end_all_at(connection: Connection, location_id: str, *, now_ms: int) -> None:
    """End all runs of a location that is being deleted."""
    ids = store.find_all_at(connection, location_id)
    gone = GiveUp(RunStatus.MISSED, Cause.NO_AGENT)
    jobs = queue_of(connection).find_held(connection, ids).values()
    _settle(connection, [(job, gone) for job in jobs], now_ms=now_ms)


def _give_up_if_paused(
    connection: Connection, job: HeldJob, decision: Requeue | GiveUp
) -> Requeue | GiveUp:
    """Give up a run that would be requeued although its check was paused meanwhile."""
    if isinstance(decision, GiveUp) or job.source != RunSource.SCHEDULER:
        return decision
    check = checks.find_terms(connection, job.check_id)
    is_paused = check is not None and not check.activated
    return GiveUp(RunStatus.MISSED, Cause.PAUSED) if is_paused else decision


def _is_newest_lease(job: HeldJob, fence: int) -> bool:
    return job.state == JobState.LEASED and job.fence == fence


def _settle(
    connection: Connection,
    decisions: Sequence[tuple[HeldJob, Requeue | GiveUp]],
    *,
    now_ms: int,
) -> None:
    queue = queue_of(connection)
    back = [_requeue(job, decision) for job, decision in decisions if isinstance(decision, Requeue)]
    over = [(job, decision) for job, decision in decisions if isinstance(decision, GiveUp)]
    if back:
        queue.requeue(connection, back)
    queue.remove(connection, [job.id for job, _ in over])
    for ended, decision in over:
        log.info("run.given_up", run=ended.id, check_id=ended.check_id, cause=decision.cause.value)
    record(
        connection, [_build_record(job, decision, now_ms) for job, decision in over], now_ms=now_ms
    )


def _requeue(job: HeldJob, decision: Requeue) -> RequeuedJob:
    return RequeuedJob(
        job_id=job.id,
        location_id=job.location_id,
        due_ms=decision.due_ms,
        expires_ms=decision.expires_ms,
        priority=job.priority,
        deliveries=decision.deliveries,
        attempt=job.attempt,
        first_started_ms=job.first_started_ms,
        returned_by=decision.returned_by,
    )


def _record_missed(missed: MissedRun, run_id: int) -> Record:
    return Record(
        check_id=missed.check_id,
        run_id=run_id,
        fence=OF_NO_CLAIM,
        session_id=None,
        location_id=missed.location_id,
        source=RunSource.SCHEDULER,
        result_type=ResultType.FINAL,
        status=RunStatus.MISSED,
        cause=Cause.SERVICE_DOWN,
        attempt=1,
        scheduled_ms=missed.first_ms,
        started_ms=missed.first_ms,
        stopped_ms=missed.last_ms,
        due_times=missed.due_times if missed.due_times > 1 else None,
    )


def _build_record(job: HeldJob, decision: GiveUp, now_ms: int) -> Record:
    """The result of a run that nobody did, at the time at which it was due."""
    return Record(
        check_id=job.check_id,
        run_id=job.id,
        fence=OF_NO_CLAIM,
        session_id=job.session_id,
        location_id=job.location_id,
        source=RunSource(job.source),
        result_type=ResultType.FINAL,
        status=decision.status,
        cause=decision.cause,
        attempt=job.attempt,
        scheduled_ms=job.scheduled_ms,
        started_ms=job.scheduled_ms,
        stopped_ms=now_ms,
    )
