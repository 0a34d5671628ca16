"""What becomes of a job: pure decisions, by the service's clock."""

from dataclasses import dataclass
from typing import Final

from contract.agent_api import ReleaseReason
from contract.checks import AGENT_TYPES, CheckType
from service.jobs.model import MOST_DELIVERIES, QUEUE_MS, HeldJob
from service.results.model import Cause, RunStatus

_SECOND_CHANCE_MS: Final = 30_000
"""A job that is given back stays claimable for this long at least."""
_UNCOUNTED: Final = frozenset({ReleaseReason.DRAINING, ReleaseReason.CANCELLED})
"""Reasons that say nothing against the job or the agent, and so cost no delivery."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """The job can be claimed again."""

    due_ms: int
    expires_ms: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The run ends without a look at the target."""

    status: RunStatus
    cause: Cause


def queued_until(check_type: CheckType, *, now_ms: int, next_run_ms: int | None) -> int:
    """When a run that is queued now is missed: in 6 min, or when the check's next run is due.

    At once where no agent can take it. No next run: the run is not one of a series.
    """
    if check_type not in AGENT_TYPES:
        return now_ms
    latest_ms = now_ms + QUEUE_MS
    return latest_ms if next_run_ms is None else min(latest_ms, next_run_ms)


def after_lost_lease(job: HeldJob, *, now_ms: int) -> Requeue | GiveUp:
    """The lease ran out: its agent died, or cannot reach us."""
    if job.deliveries >= MOST_DELIVERIES:
        return GiveUp(RunStatus.MISSED, Cause.AGENT_LOST)
    # A new time in the queue: the run was claimed in time, and a replica should still do it.
    return Requeue(now_ms, now_ms + QUEUE_MS, job.deliveries)


def after_release(job: HeldJob, reason: ReleaseReason, *, now_ms: int) -> Requeue | GiveUp:
    """An agent gave the job back."""
    if reason in _UNCOUNTED:
        return _requeue_at_once(job, now_ms, deliveries=max(0, job.deliveries - 1))
    if job.deliveries < MOST_DELIVERIES:
        return _requeue_at_once(job, now_ms, deliveries=job.deliveries)
    if reason is ReleaseReason.NO_ROOM:
        return GiveUp(RunStatus.MISSED, Cause.OVERLOADED)
    return GiveUp(RunStatus.ERROR, Cause.AGENT_ERROR)


def after_queue_expired(*, taker_seen: bool) -> GiveUp:
    """Nobody claimed the job in time; `taker_seen`: an agent was there that runs its type."""
    return GiveUp(RunStatus.MISSED, Cause.QUEUE_EXPIRED if taker_seen else Cause.NO_AGENT)


def _requeue_at_once(job: HeldJob, now_ms: int, *, deliveries: int) -> Requeue:
    return Requeue(now_ms, max(job.expires_ms, now_ms + _SECOND_CHANCE_MS), deliveries)
