"""What becomes of a job: pure decisions, by the service's clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from contract.agent_api import ReleaseReason
from contract.checks import AGENT_TYPES, CheckType
from contract.job import TEST_SOURCES
from contract.result import Failure, FailureKind
from service.jobs.model import MOST_DELIVERIES, QUEUE_MS, HeldJob, agents_of, agents_text
from service.results.model import Cause, RunStatus

SEEN_MS: Final = 90_000
"""An agent that waits for jobs is seen at least this often."""
_SECOND_CHANCE_MS: Final = 30_000
"""A job that is given back stays claimable for this long at least."""
_TEST_QUEUE_MS: Final = 1_200_000
"""Tests of a whole project come at once, and wait for each other while agents work on them."""
_UNCOUNTED: Final = frozenset({ReleaseReason.DRAINING, ReleaseReason.CANCELLED})
"""Reasons that say nothing against the job or the agent, and so cost no delivery."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """The job can be claimed again."""

    due_ms: int
    expires_ms: int
    deliveries: int
    returned_by: str | None
    """The agents that gave this attempt back, as JSON. None: none did."""


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
    return Requeue(now_ms, now_ms + QUEUE_MS, job.deliveries, job.returned_by)


def after_release(job: HeldJob, reason: ReleaseReason, *, now_ms: int) -> Requeue | GiveUp:
    """An agent gave the job back."""
    until_ms = max(job.expires_ms, now_ms + _SECOND_CHANCE_MS)
    if reason in _UNCOUNTED:
        return Requeue(now_ms, until_ms, max(0, job.deliveries - 1), job.returned_by)
    before = agents_of(job.returned_by)
    after = agents_text([*before, job.agent_id or ""])
    if job.agent_id in before:
        # No other agent took it meanwhile: each counts once, and the job waits no longer for it.
        return Requeue(now_ms, job.expires_ms, job.deliveries - 1, after)
    if job.deliveries < MOST_DELIVERIES:
        return Requeue(now_ms, until_ms, job.deliveries, after)
    if reason is ReleaseReason.NO_ROOM:
        return GiveUp(RunStatus.MISSED, Cause.OVERLOADED)
    if reason is ReleaseReason.UNCONFIRMED:
        return GiveUp(RunStatus.MISSED, Cause.AGENT_LOST)
    return GiveUp(RunStatus.ERROR, Cause.AGENT_ERROR)


def after_queue_expired(
    job: HeldJob, *, taker_seen: bool, watched_since_ms: int, now_ms: int
) -> Requeue | GiveUp:
    """Nobody claimed the job in time.

    `taker_seen`: an agent that runs its type was there, since the service watches without a gap.
    """
    if job.check_type not in AGENT_TYPES:
        return GiveUp(RunStatus.MISSED, Cause.NO_AGENT)
    if job.returned_by is not None:
        return GiveUp(RunStatus.ERROR, Cause.AGENT_ERROR)
    if job.source in TEST_SOURCES and taker_seen and now_ms - job.due_ms < _TEST_QUEUE_MS:
        return Requeue(job.due_ms, now_ms + QUEUE_MS, job.deliveries, job.returned_by)
    if job.expires_ms <= watched_since_ms:
        return GiveUp(RunStatus.MISSED, Cause.SERVICE_DOWN)
    if taker_seen:
        return GiveUp(RunStatus.MISSED, Cause.QUEUE_EXPIRED)
    had_chance = now_ms - watched_since_ms >= SEEN_MS
    return GiveUp(RunStatus.MISSED, Cause.NO_AGENT if had_chance else Cause.SERVICE_DOWN)


class RetryType(StrEnum):
    """How the wait grows from retry to retry."""

    FIXED = "FIXED"
    LINEAR = "LINEAR"
    EXPONENTIAL = "EXPONENTIAL"
    SINGLE_RETRY = "SINGLE_RETRY"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStrategy:
    """A check's retry strategy, defaults filled in."""

    type: RetryType
    base_backoff_s: float = 60
    max_retries: int = 2
    max_duration_s: float = 600
    same_region: bool = True
    only_network_errors: bool = False


LONGEST_WAIT_S: Final = 86_400
"""Nobody waits longer for a retry, whatever the strategy says."""
_DOUBLE_CHECK: Final = RetryStrategy(
    type=RetryType.SINGLE_RETRY, base_backoff_s=0, same_region=False
)
"""What the deprecated `doubleCheck` asks for: one more look at once, from elsewhere if possible."""
_NETWORK: Final = frozenset({FailureKind.DNS, FailureKind.CONNECT, FailureKind.TIMEOUT})
_NETWORK_CODES: Final = frozenset(
    {"ECONNRESET", "ECONNREFUSED", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"}
    | {"EHOSTUNREACH", "ENETUNREACH", "SOCKET_TIMEOUT"}
)
_TYPES: Final = frozenset(kind.value for kind in RetryType)
_NEVER: Final = frozenset({CheckType.HEARTBEAT, CheckType.PLAYWRIGHT, CheckType.AGENTIC})


def strategy_of(doc: Mapping[str, Any], check_type: CheckType) -> RetryStrategy | None:
    """The strategy of a check as the API shows it. None: a failed run is final."""
    if check_type in _NEVER:
        return None
    given = doc.get("retryStrategy")
    if not given:
        return _DOUBLE_CHECK if doc.get("doubleCheck") else None
    if not isinstance(given, Mapping) or given.get("type") not in _TYPES:
        return None  # a strategy of a later version must not hold results up
    only_on = given.get("onlyOn") or ()
    return RetryStrategy(
        type=RetryType(given["type"]),
        base_backoff_s=_or(given.get("baseBackoffSeconds"), 60),
        max_retries=int(_or(given.get("maxRetries"), 2)),
        max_duration_s=_or(given.get("maxDurationSeconds"), 600),
        same_region=given.get("sameRegion") is not False,
        only_network_errors="NETWORK_ERROR" in only_on,
    )


def retry_delay_ms(
    strategy: RetryStrategy, *, attempt: int, elapsed_ms: int, failure: Failure | None
) -> int | None:
    """How long to wait before attempt `attempt + 1`. None: there is none.

    `elapsed_ms` counts from the start of the first attempt, running times included.
    """
    if strategy.only_network_errors and not _is_network_error(failure):
        return None
    single = strategy.type is RetryType.SINGLE_RETRY
    if attempt > (1 if single else strategy.max_retries):
        return None
    delay_ms = round(_wait_s(strategy, attempt) * 1000)
    if not single and elapsed_ms + delay_ms > strategy.max_duration_s * 1000:
        return None
    return delay_ms


def _wait_s(strategy: RetryStrategy, retry: int) -> float:
    base_s = min(strategy.base_backoff_s, LONGEST_WAIT_S)  # so that no power of it overflows
    match strategy.type:
        case RetryType.FIXED | RetryType.SINGLE_RETRY:
            return base_s
        case RetryType.LINEAR:
            return min(base_s * retry, LONGEST_WAIT_S)
        case RetryType.EXPONENTIAL:
            return min(float(base_s**retry), LONGEST_WAIT_S)


def _is_network_error(failure: Failure | None) -> bool:
    if failure is None:
        return False
    return failure.kind in _NETWORK or failure.detail.get("code") in _NETWORK_CODES


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
