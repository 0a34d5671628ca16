from typing import Any

import pytest

from contract.agent_api import ReleaseReason
from contract.checks import CheckType
from service.jobs.model import MOST_DELIVERIES, QUEUE_MS, HeldJob, JobState
from service.jobs.rules import (
    SEEN_MS,
    GiveUp,
    Requeue,
    after_lost_lease,
    after_queue_expired,
    after_release,
    queued_until,
)
from service.results.model import Cause, RunStatus

NOW = 1_000_000


def a_held_job(**changes: Any) -> HeldJob:
    fields: dict[str, Any] = {
        "id": 1,
        "state": JobState.LEASED,
        "fence": 1,
        "deliveries": 1,
        "attempt": 1,
        "check_id": "check-1",
        "check_type": "URL",
        "lane": "uptime",
        "location_id": "location-1",
        "source": "SCHEDULER",
        "session_id": None,
        "scheduled_ms": NOW - 5000,
        "due_ms": NOW - 5000,
        "expires_ms": NOW + 60_000,
        "priority": 1,
        "first_started_ms": None,
        "claimed_ms": NOW - 4000,
        "agent_id": "agent-1",
        "returned_by": None,
    }
    return HeldJob(**{**fields, **changes})


def test_a_run_that_is_not_in_a_series_waits_six_minutes() -> None:
    assert queued_until(CheckType.URL, now_ms=NOW, next_run_ms=None) == NOW + QUEUE_MS


def test_a_run_waits_no_longer_than_until_the_next_one() -> None:
    assert queued_until(CheckType.URL, now_ms=NOW, next_run_ms=NOW + 10_000) == NOW + 10_000
    assert queued_until(CheckType.URL, now_ms=NOW, next_run_ms=NOW + QUEUE_MS + 1) == NOW + QUEUE_MS


def test_a_run_that_no_agent_can_take_waits_for_none() -> None:
    for next_run_ms in (None, NOW + 10_000):
        assert queued_until(CheckType.AGENTIC, now_ms=NOW, next_run_ms=next_run_ms) == NOW


def test_a_lost_lease_puts_the_job_back_with_time_to_be_claimed() -> None:
    fate = after_lost_lease(a_held_job(expires_ms=NOW - 1), now_ms=NOW)
    assert fate == Requeue(NOW, NOW + QUEUE_MS, 1, None)


def test_the_third_lost_agent_ends_the_run() -> None:
    fate = after_lost_lease(a_held_job(deliveries=MOST_DELIVERIES), now_ms=NOW)
    assert fate == GiveUp(RunStatus.MISSED, Cause.AGENT_LOST)


@pytest.mark.parametrize("reason", [ReleaseReason.DRAINING, ReleaseReason.CANCELLED])
def test_a_polite_release_costs_no_delivery(reason: ReleaseReason) -> None:
    fate = after_release(a_held_job(deliveries=MOST_DELIVERIES), reason, now_ms=NOW)
    assert fate == Requeue(NOW, NOW + 60_000, MOST_DELIVERIES - 1, None)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (ReleaseReason.AGENT_ERROR, GiveUp(RunStatus.ERROR, Cause.AGENT_ERROR)),
        (ReleaseReason.MALFORMED, GiveUp(RunStatus.ERROR, Cause.AGENT_ERROR)),
        (ReleaseReason.UNSUPPORTED, GiveUp(RunStatus.ERROR, Cause.AGENT_ERROR)),
        (ReleaseReason.NO_ROOM, GiveUp(RunStatus.MISSED, Cause.OVERLOADED)),
        (ReleaseReason.UNCONFIRMED, GiveUp(RunStatus.MISSED, Cause.AGENT_LOST)),
    ],
)
def test_every_other_release_counts_and_the_third_ends_the_run(
    reason: ReleaseReason, end: GiveUp
) -> None:
    assert after_release(a_held_job(deliveries=2), reason, now_ms=NOW) == Requeue(
        NOW, NOW + 60_000, 2, '["agent-1"]'
    )
    assert after_release(a_held_job(deliveries=3), reason, now_ms=NOW) == end


def test_a_released_job_can_be_claimed_for_a_while_although_its_time_was_over() -> None:
    fate = after_release(a_held_job(expires_ms=NOW - 1), ReleaseReason.DRAINING, now_ms=NOW)
    assert isinstance(fate, Requeue)
    assert fate.expires_ms == NOW + 30_000


def test_an_agent_that_gives_a_job_back_again_counts_once_and_gets_no_more_time() -> None:
    again = a_held_job(deliveries=3, returned_by='["agent-1"]', expires_ms=NOW + 1)
    fate = after_release(again, ReleaseReason.AGENT_ERROR, now_ms=NOW)
    assert fate == Requeue(NOW, NOW + 1, 2, '["agent-1","agent-1"]')


def cause_of(*, taker_seen: bool, watched_since_ms: int = 0, **changes: Any) -> Cause:
    job = a_held_job(**{"expires_ms": NOW, **changes})
    watched = {"watched_since_ms": watched_since_ms, "now_ms": NOW}
    return after_queue_expired(job, taker_seen=taker_seen, **watched).cause


def test_an_unclaimed_run_is_missed_and_says_whether_anybody_was_there() -> None:
    assert cause_of(taker_seen=True) is Cause.QUEUE_EXPIRED
    assert cause_of(taker_seen=False) is Cause.NO_AGENT


def test_an_unclaimed_run_blames_nobody_for_the_absence_of_the_service() -> None:
    just_back = NOW - 1_000
    assert cause_of(taker_seen=False, watched_since_ms=just_back) is Cause.SERVICE_DOWN
    assert cause_of(taker_seen=True, watched_since_ms=just_back) is Cause.QUEUE_EXPIRED
    expired_before = {"watched_since_ms": just_back, "expires_ms": NOW - 2_000}
    assert cause_of(taker_seen=True, **expired_before) is Cause.SERVICE_DOWN
    assert cause_of(taker_seen=False, watched_since_ms=NOW - SEEN_MS) is Cause.NO_AGENT


def test_an_unclaimed_run_that_an_agent_gave_back_is_an_error_of_ours() -> None:
    assert cause_of(taker_seen=True, returned_by='["agent-1"]') is Cause.AGENT_ERROR
