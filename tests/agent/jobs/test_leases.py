"""Leases: renewed together at each third, and a run ends with its lease."""

import asyncio
import math
from collections.abc import Sequence

import pytest

from agent.api_client.errors import ServiceAwayError
from agent.api_client.outage import Outage
from agent.jobs.leases import Leases
from agent.jobs.running import Run
from contract.agent_api import ReleaseReason, RenewAnswer
from contract.job import Lease
from tests.builders.agents import a_run, metrics, until
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job


class Renewer:
    """Answers renewals as told, and remembers them."""

    def __init__(self) -> None:
        self.outage = Outage()
        self.asked: list[tuple[Lease, ...]] = []
        self.complete: list[bool] = []
        self.answer = RenewAnswer()
        self.problem: ServiceAwayError | None = None
        self.asked_once = asyncio.Event()

    async def renew(self, leases: Sequence[Lease], *, is_complete: bool = False) -> RenewAnswer:
        self.complete.append(is_complete)
        self.asked.append(tuple(leases))
        self.asked_once.set()
        if self.problem is not None:
            raise self.problem
        return self.answer


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.renewer = Renewer()
        self.undelivered = 0
        self.leases = Leases(
            self.renewer,
            metrics=metrics(),
            undelivered=lambda: self.undelivered,
            clock=lambda: self.now,
        )

    def hold(self, job_id: str, *, lease_s: float = 60, claimed_at: float = 0.0) -> Run:
        run = a_run(a_job(job_id=job_id, lease_s=lease_s), claimed_at=claimed_at)
        self.leases.hold(run, claimed_at=claimed_at)
        return run


async def test_all_leases_are_renewed_in_one_call() -> None:
    it = Bench()
    runs = [it.hold(f"job-{number}") for number in range(3)]
    await it.leases.renew_all()
    assert it.renewer.asked == [tuple(run.job.lease for run in runs)]
    assert not any(run.is_stopped for run in runs)


async def test_a_renewal_is_complete_only_when_every_result_was_delivered() -> None:
    it = Bench()
    it.hold("job-1")
    it.undelivered = 1
    await it.leases.renew_all()
    it.undelivered = 0
    await it.leases.renew_all()
    assert it.renewer.complete == [False, True]


async def test_a_dropped_lease_is_not_renewed() -> None:
    it = Bench()
    run = it.hold("job-1")
    it.leases.drop(run.job)
    await it.leases.renew_all()
    assert it.renewer.asked == []


async def test_a_lost_lease_ends_the_run_without_a_word() -> None:
    it = Bench()
    lost, kept = it.hold("lost"), it.hold("kept")
    it.renewer.answer = RenewAnswer(lost=(lost.job.lease,))
    await it.leases.renew_all()
    assert lost.is_stopped
    assert lost.stop_reason is None
    assert not kept.is_stopped
    await it.leases.renew_all()
    assert it.renewer.asked[-1] == (kept.job.lease,)


async def test_a_cancelled_run_is_stopped_and_given_back() -> None:
    it = Bench()
    run = it.hold("job-1")
    it.renewer.answer = RenewAnswer(cancel=(run.job.lease,))
    await it.leases.renew_all()
    assert run.stop_reason is ReleaseReason.CANCELLED


async def test_a_run_goes_on_while_its_lease_may_hold() -> None:
    it = Bench()
    run = it.hold("job-1", lease_s=60)
    it.renewer.problem = ServiceAwayError("away")
    it.now = 59.0
    await it.leases.renew_all()
    assert not run.is_stopped
    it.now = 60.0
    await it.leases.renew_all()
    assert run.is_stopped
    assert run.stop_reason is None


async def test_a_renewal_makes_the_lease_hold_for_another_length() -> None:
    it = Bench()
    run = it.hold("job-1", lease_s=60)
    it.now = 40.0
    await it.leases.renew_all()
    it.renewer.problem = ServiceAwayError("away")
    it.now = 99.0
    await it.leases.renew_all()
    assert not run.is_stopped


async def test_a_renewal_counts_from_when_it_was_asked_for() -> None:
    it = Bench()
    run = it.hold("job-1", lease_s=60)

    class Slow(Renewer):
        async def renew(self, leases: Sequence[Lease], *, is_complete: bool = False) -> RenewAnswer:
            it.now += 15
            return await super().renew(leases, is_complete=is_complete)

    slow = Slow()
    it.leases = Leases(slow, metrics=metrics(), undelivered=lambda: 0, clock=lambda: it.now)
    it.leases.hold(run, claimed_at=0)
    it.now = 20.0
    await it.leases.renew_all()
    slow.problem = ServiceAwayError("away")
    it.now = 65.0
    await it.leases.renew_all()
    assert run.is_stopped


async def test_confirming_tells_whether_the_lease_is_good() -> None:
    it = Bench()
    run = it.hold("job-1")
    assert await it.leases.confirm(run.job)
    it.renewer.answer = RenewAnswer(lost=(run.job.lease,))
    assert not await it.leases.confirm(run.job)
    assert run.is_stopped
    it.renewer.problem = ServiceAwayError("away")
    with pytest.raises(ServiceAwayError):
        await it.leases.confirm(run.job)


async def test_a_renewal_says_whether_it_names_all_leases() -> None:
    it = Bench()
    runs = [it.hold("job-1"), it.hold("job-2")]
    await it.leases.confirm(runs[0].job)
    await it.leases.renew_all()
    assert it.renewer.complete == [False, True]


async def renewed(it: Bench) -> None:
    keeping = asyncio.create_task(it.leases.keep())
    try:
        await asyncio.wait_for(it.renewer.asked_once.wait(), LONG_S)
    finally:
        keeping.cancel()


async def test_a_lease_is_renewed_by_itself_after_a_third() -> None:
    it = Bench()
    it.hold("job-1", lease_s=60)
    it.now = 20.0
    await renewed(it)
    assert len(it.renewer.asked) == 1


async def test_a_short_lease_is_not_held_up_by_a_long_one() -> None:
    it = Bench()
    it.hold("long", lease_s=3000)
    keeping = asyncio.create_task(it.leases.keep())
    await asyncio.sleep(0.01)
    it.hold("short", lease_s=0.03)
    it.now = 0.02
    await asyncio.wait_for(it.renewer.asked_once.wait(), LONG_S)
    keeping.cancel()
    assert len(it.renewer.asked[0]) == 2


async def test_a_loop_that_ends_as_a_lease_comes_ends_all_the_same() -> None:
    it = Bench()
    keeping = asyncio.create_task(it.leases.keep())
    it.hold("patient", lease_s=600)
    await until(lambda: it.leases._wake_at < 600)
    it.hold("hasty", lease_s=3)
    keeping.cancel()
    await asyncio.wait({keeping}, timeout=30)
    assert keeping.cancelled()


async def test_a_renewal_waits_as_long_as_the_service_asked() -> None:
    it = Bench()
    it.hold("job-1", lease_s=60)
    it.renewer.problem = ServiceAwayError("too many", retry_after_s=30)
    it.now = 20.0
    await it.leases.renew_all()
    assert it.leases._next_due_at() == 20 + 30 + 60 / 3 / 4


async def test_a_lease_is_tried_once_more_before_it_ends_however_long_the_service_asked() -> None:
    it = Bench()
    run = it.hold("job-1", lease_s=60)
    it.renewer.problem = ServiceAwayError("restarting", retry_after_s=500)
    it.now = 20.0
    await it.leases.renew_all()
    assert it.leases._next_due_at() == 60 - 60 / 3 / 4
    it.renewer.problem = None
    it.now = 55.0
    await it.leases.renew_all()
    assert len(it.renewer.asked) == 2
    assert it.leases._next_due_at() == 55 + 60 / 3
    assert not run.is_stopped


async def test_runs_that_end_while_a_renewal_fails_leave_nothing_to_try_again() -> None:
    it = Bench()
    run = it.hold("job-1")

    async def fails(leases: Sequence[Lease], *, is_complete: bool) -> RenewAnswer:
        assert is_complete
        assert leases == (run.job.lease,)
        it.leases.drop(run.job)
        raise ServiceAwayError("restarting")

    it.renewer.renew = fails  # type: ignore[method-assign]
    it.now = 20.0
    await it.leases.renew_all()
    assert it.leases._next_due_at() == math.inf


async def test_a_run_ends_with_its_lease_when_the_service_only_asks_to_wait() -> None:
    it = Bench()
    run = it.hold("job-1", lease_s=60)
    it.renewer.problem = ServiceAwayError("too many", retry_after_s=500)
    it.now = 20.0
    await it.leases.renew_all()
    keeping = asyncio.create_task(it.leases.keep())
    it.now = 60.0
    it.leases._sooner.set()
    await until(lambda: run.is_stopped)
    keeping.cancel()


async def test_the_lease_of_a_run_that_is_over_is_kept_until_it_is_let_go() -> None:
    it = Bench()
    run = it.hold("job-1")
    it.leases.hold_for_upload(run.job.lease, lease_s=60)
    it.leases.drop(run.job)
    it.renewer.problem = ServiceAwayError("away")
    it.now = 1000.0
    await it.leases.renew_all()
    await it.leases.renew_all()
    assert it.renewer.asked == [(run.job.lease,)] * 2, "only the service's word ends it"
    assert not run.is_stopped
    it.leases.drop_uploaded(run.job.lease)
    await it.leases.renew_all()
    assert len(it.renewer.asked) == 2


async def test_a_renewal_that_failed_is_tried_again_as_soon_as_an_outage_is_over() -> None:
    it = Bench()
    it.hold("job-1", lease_s=300)
    it.now = 100.0
    it.renewer.problem = ServiceAwayError("away", is_unreachable=True)
    keeping = asyncio.create_task(it.leases.keep())
    await until(lambda: it.renewer.asked)
    it.renewer.problem = None
    it.renewer.outage.failed("renew", ServiceAwayError("away"))
    it.renewer.outage.failed("claim", ServiceAwayError("away"))
    it.renewer.outage.answered("claim")
    await until(lambda: len(it.renewer.asked) == 2)
    keeping.cancel()
