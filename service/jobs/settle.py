"""Jobs that come back, or end, without a result."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import structlog
from sqlalchemy import Connection

from contract.agent_api import ReleaseReason
from contract.job import RunSource
from service.agents import actions as agents
from service.checks import actions as checks
from service.jobs import store
from service.jobs.engines import queue_of
from service.jobs.model import HeldJob, JobState, Return
from service.jobs.rules import (
    GiveUp,
    Requeue,
    after_lost_lease,
    after_queue_expired,
    after_release,
)
from service.results.model import OF_NO_CLAIM, Cause, Record, ResultType, RunStatus
from service.results.recording import record

log = structlog.get_logger()

_SEEN_MS: Final = 90_000
"""An agent that waits for work is seen at least this often."""
GROUP: Final = 200
"""Jobs of a kind per transaction."""
_FORGIVEN_MS: Final = 30_000


class Release(NamedTuple):
    """A lease that an agent ends without a result."""

    job_id: int
    fence: int
    reason: ReleaseReason


def release(
    connection: Connection, given_back: Iterable[Release], *, location_id: str, now_ms: int
) -> None:
    """Agents give jobs back; a lease that is not the newest one changes nothing."""
    given = list(given_back)
    held = queue_of(connection).held(connection, {one.job_id for one in given})
    fates = []
    for one in given:
        job = held.get(one.job_id)
        if job and job.location_id == location_id and _holds(job, one.fence):
            fate = after_release(job, one.reason, now_ms=now_ms)
            fates.append((job, _unless_paused(connection, job, fate)))
    _settle(connection, fates, now_ms=now_ms)


def expire_jobs(connection: Connection, *, now_ms: int) -> int:
    """Requeue or end jobs whose lease or time in the queue has run out; how many there were."""
    queue = queue_of(connection)
    lost = queue.lost(connection, now_ms=now_ms, limit=GROUP)
    fates = [
        (job, _unless_paused(connection, job, after_lost_lease(job, now_ms=now_ms))) for job in lost
    ]
    expired = queue.expired(connection, now_ms=now_ms, limit=GROUP)
    taken = agents.types_seen_at(
        connection, {job.location_id for job in expired}, since_ms=now_ms - _SEEN_MS
    )
    over = [
        (job, after_queue_expired(taker_seen=job.check_type in taken.get(job.location_id, ())))
        for job in expired
    ]
    _settle(connection, [*fates, *over], now_ms=now_ms)
    return len(fates) + len(over)


def extend_leases_after_restart(connection: Connection, *, now_ms: int) -> None:
    """After a start: agents could not renew while the service was away, so they get some time."""
    store.extend_leases(connection, until_ms=now_ms + _FORGIVEN_MS)


def end_queued(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """The check was paused: its scheduled runs that nobody has claimed end here."""
    ids = store.queued(connection, check_id)
    paused = GiveUp(RunStatus.MISSED, Cause.PAUSED)
    jobs = queue_of(connection).held(connection, ids).values()
    _settle(connection, [(job, paused) for job in jobs], now_ms=now_ms)


def end_unreadable(connection: Connection, job_ids: Sequence[int], *, now_ms: int) -> None:
    """What these runs need does not open: no agent can do them."""
    if job_ids:
        unreadable = GiveUp(RunStatus.ERROR, Cause.UNREADABLE)
        jobs = queue_of(connection).held(connection, job_ids).values()
        _settle(connection, [(job, unreadable) for job in jobs], now_ms=now_ms)


def end_queued_at(connection: Connection, location_id: str, *, now_ms: int) -> None:
    """Nobody is there to do a location's scheduled runs: those that wait end here."""
    ids = store.queued_at(connection, location_id)
    missed = GiveUp(RunStatus.MISSED, Cause.NO_AGENT)
    jobs = queue_of(connection).held(connection, ids).values()
    _settle(connection, [(job, missed) for job in jobs], now_ms=now_ms)


def release_held_by(
    connection: Connection, location_id: str, agent_ids: Iterable[str], *, now_ms: int
) -> None:
    """These agents are let in no more: what they hold can be claimed by others at once."""
    ids = store.held_by(connection, location_id, agent_ids)
    fates = []
    for job in queue_of(connection).held(connection, ids).values():
        fate = after_release(job, ReleaseReason.DRAINING, now_ms=now_ms)
        fates.append((job, _unless_paused(connection, job, fate)))
    _settle(connection, fates, now_ms=now_ms)


def end_at(connection: Connection, location_id: str, *, now_ms: int) -> None:
    """The location goes: no agent will ever do its runs."""
    ids = store.at(connection, location_id)
    gone = GiveUp(RunStatus.MISSED, Cause.NO_AGENT)
    jobs = queue_of(connection).held(connection, ids).values()
    _settle(connection, [(job, gone) for job in jobs], now_ms=now_ms)


def _unless_paused(
    connection: Connection, job: HeldJob, fate: Requeue | GiveUp
) -> Requeue | GiveUp:
    """A run that comes back after its check was paused is not started again."""
    if isinstance(fate, GiveUp) or job.source != RunSource.SCHEDULER:
        return fate
    check = checks.find_terms(connection, job.check_id)
    is_paused = check is not None and not check.activated
    return GiveUp(RunStatus.MISSED, Cause.PAUSED) if is_paused else fate


def _holds(job: HeldJob, fence: int) -> bool:
    return job.state == JobState.LEASED and job.fence == fence


def _settle(
    connection: Connection,
    fates: Sequence[tuple[HeldJob, Requeue | GiveUp]],
    *,
    now_ms: int,
) -> None:
    queue = queue_of(connection)
    back = [_return(job, fate) for job, fate in fates if isinstance(fate, Requeue)]
    over = [(job, fate) for job, fate in fates if isinstance(fate, GiveUp)]
    if back:
        queue.give_back(connection, back)
    queue.remove(connection, [job.id for job, _ in over])
    for ended, fate in over:
        log.info("run.given_up", run=ended.id, check_id=ended.check_id, cause=fate.cause.value)
    record(connection, [_record(job, fate, now_ms) for job, fate in over], now_ms=now_ms)


def _return(job: HeldJob, fate: Requeue) -> Return:
    return Return(
        job_id=job.id,
        location_id=job.location_id,
        due_ms=fate.due_ms,
        expires_ms=fate.expires_ms,
        priority=job.priority,
        deliveries=fate.deliveries,
        attempt=job.attempt,
        first_started_ms=job.first_started_ms,
    )


def _record(job: HeldJob, fate: GiveUp, now_ms: int) -> Record:
    """A result that stands at the time at which the run was due, where the series has its hole."""
    return Record(
        check_id=job.check_id,
        run_id=job.id,
        fence=OF_NO_CLAIM,
        session_id=job.session_id,
        location_id=job.location_id,
        source=RunSource(job.source),
        result_type=ResultType.FINAL,
        status=fate.status,
        cause=fate.cause,
        attempt=job.attempt,
        scheduled_ms=job.scheduled_ms,
        started_ms=job.scheduled_ms,
        stopped_ms=now_ms,
    )
