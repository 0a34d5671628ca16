"""Jobs that are cancelled, lost or drained: given back once, and their slots are free."""

import asyncio
import contextlib
from typing import Any

import pytest

from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.job import Job
from tests.builders.agents import ScriptedRunner, ids, until
from tests.builders.dispatching import Bench, bench, for_ever, jobs
from tests.builders.specs import a_job, a_spec_of


async def test_a_main_job_that_is_cancelled_before_its_start_is_given_back() -> None:
    async with bench(main=1) as it:

        def cancelled() -> bool:
            for run in it.running:
                run.cancel()
            return False

        it.leases.good = cancelled
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER)))
        await until(lambda: it.leases.confirmed and not it.leases.held)
    assert it.runner.ran == []
    assert it.source.released == [("job-1", ReleaseReason.CANCELLED)]


async def stubborn(_job: Job) -> None:
    """Cleans up for so long that it ends as if nothing had happened."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def crash_when_stopped(_job: Job) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("a crash while it cleans up")


@pytest.mark.parametrize("act", [for_ever, stubborn, crash_when_stopped])
async def test_whatever_a_stopped_run_ends_with_is_given_back_once(act: Any) -> None:
    async with bench(act) as it:
        it.source.offer(*jobs(2))
        await until(lambda: it.runner.running == 2)
        lost, stopped = it.running
        lost.lose()
        stopped.stop(ReleaseReason.DRAINING)
        await until(lambda: not len(it.running))
    assert it.spool.results == []
    assert it.source.released == [(stopped.job.job_id, ReleaseReason.DRAINING)]


async def test_draining_waits_for_what_runs_and_claims_no_more() -> None:
    go_on = asyncio.Event()

    async def wait(_job: Job) -> None:
        await go_on.wait()

    async with bench(wait) as it:
        it.source.offer(a_job(job_id="running"))
        await until(lambda: it.runner.running == 1)
        it.draining.set()
        await until(lambda: it.source.gave_back_abandoned == 1)
        asked = len(it.source.asked)
        it.source.offer(a_job(job_id="new"))
        go_on.set()
    assert ids(it.spool.results) == {"running"}
    assert len(it.source.asked) == asked


async def test_draining_gives_back_what_has_not_started() -> None:
    async with bench(main=1) as it:
        it.leases.good = asyncio.Event()
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="waiting"))
        await until(lambda: it.leases.confirmed)
    assert it.runner.ran == []
    assert it.source.released == [("waiting", ReleaseReason.DRAINING)]


async def test_stopped_runs_are_given_back_and_free_their_slots() -> None:
    async with bench(for_ever) as it:
        it.source.offer(*jobs(3))
        await until(lambda: it.runner.running == 3)
        it.running.stop_all(ReleaseReason.DRAINING)
        await until(lambda: not len(it.running))
    assert {reason for _, reason in it.source.released} == {ReleaseReason.DRAINING}
    assert len(it.source.released) == 3
    assert it.spool.results == []
    assert it.slots.free(Lane.UPTIME) == 4


async def test_a_run_that_lost_its_lease_sends_nothing() -> None:
    async with bench(for_ever) as it:
        it.source.offer(a_job())
        await until(lambda: it.runner.running == 1)
        for run in it.running:
            run.lose()
        await until(lambda: not len(it.running))
    assert it.source.released == []
    assert it.spool.results == []


async def test_a_job_stopped_before_its_task_began_still_leaves_its_slot() -> None:
    it = Bench(ScriptedRunner(), uptime=1, main=0)
    async with asyncio.TaskGroup() as group:
        it.dispatcher._start(a_job(), group, claimed_at=0)
        it.running.stop_all(ReleaseReason.DRAINING)
    assert it.runner.ran == []
    assert it.source.released == [("job-1", ReleaseReason.DRAINING)]
    assert it.slots.free(Lane.UPTIME) == 1
