"""The dispatcher: a slot per job, results handed on, and whose fault a trouble is."""

import asyncio

from agent.api_client.errors import ServiceAwayError
from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.job import Job
from runners.net.http.body_memory import BodyMemoryError
from tests.builders.agents import ids, until
from tests.builders.dispatching import bench, for_ever, jobs
from tests.builders.specs import a_job, a_spec_of, an_api_spec


async def test_each_job_becomes_one_result() -> None:
    async with bench() as it:
        it.source.offer(*jobs(20))
        await until(lambda: len(it.spool.results) == 20)
    assert ids(it.spool.results) == {f"job-{number}" for number in range(20)}
    assert it.source.released == []
    assert it.leases.held == []


async def test_no_more_jobs_run_at_once_than_there_are_slots() -> None:
    async def a_moment(_job: Job) -> None:
        await asyncio.sleep(0.005)

    async with bench(a_moment, uptime=3) as it:
        it.source.offer(*jobs(12))
        await until(lambda: len(it.spool.results) == 12)
    assert it.runner.most_at_once == 3
    assert max(asked[Lane.UPTIME] for asked in it.source.asked) <= 3


async def test_lanes_do_not_wait_for_each_other() -> None:
    async with bench(main=1) as it:
        await until(lambda: {Lane.MAIN: 1} in it.source.asked)
        it.source.offer(a_job(job_id="quick"))
        await until(lambda: it.spool.results)
    assert {Lane.UPTIME: 4} in it.source.asked


async def test_our_own_fault_releases_the_job_and_fails_no_check() -> None:
    async def crash(job: Job) -> None:
        if job.job_id == "job-1":
            raise RuntimeError("a secret of ours")

    async with bench(crash) as it:
        it.source.offer(*jobs(3))
        await until(lambda: len(it.spool.results) == 2)
    assert it.source.released == [("job-1", ReleaseReason.AGENT_ERROR)]
    assert it.source.messages == ["RuntimeError in the agent"]
    assert it.slots.free(Lane.UPTIME) == 4


async def test_a_body_that_got_no_memory_releases_the_job_for_an_agent_with_room() -> None:
    async def lacks_memory(_job: Job) -> None:
        raise BodyMemoryError("A body waited 20.0 s for memory and was lost.")

    async with bench(lacks_memory) as it:
        it.source.offer(*jobs(1))
        await until(lambda: it.source.released)
    assert it.source.released == [("job-0", ReleaseReason.NO_ROOM)]
    assert it.slots.free(Lane.UPTIME) == 4


async def test_a_type_without_a_runner_is_released() -> None:
    async with bench() as it:
        it.source.offer(a_job(check_name="unknown"), a_job(job_id="good"))
        await until(lambda: it.spool.results)
    assert it.source.released == [("job-1", ReleaseReason.UNSUPPORTED)]


async def test_a_job_of_a_lane_that_is_not_served_is_released() -> None:
    async with bench() as it:
        scripted = a_job(an_api_spec(setup_script="1"), job_id="scripted")
        it.dispatcher._start(scripted, None, claimed_at=0)  # type: ignore[arg-type]
    assert it.source.released == [("scripted", ReleaseReason.UNSUPPORTED)]


async def test_a_main_job_starts_only_with_a_good_lease() -> None:
    async with bench(main=1) as it:
        it.leases.good = False
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="lost"))
        await until(lambda: it.leases.confirmed and not it.leases.held)
        it.leases.good = True
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="good"))
        await until(lambda: it.spool.results)
    assert it.runner.ran == ["good"]
    assert it.source.released == []


async def test_a_main_job_whose_lease_nobody_knows_does_not_start_and_is_given_back() -> None:
    async with bench(main=1) as it:
        it.leases.good = ServiceAwayError("away")
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER), job_id="one"))
        await until(lambda: it.leases.confirmed and not it.leases.held)
    assert it.runner.ran == []
    assert it.source.released == [("one", ReleaseReason.UNCONFIRMED)]


async def test_a_job_past_its_deadline_shows() -> None:
    async with bench(for_ever) as it:
        assert it.running.longest_overdue_s() == 0
        it.source.offer(a_job(deadline_s=0.01))
        await until(lambda: it.running.longest_overdue_s() > 0)
        it.running.stop_all(ReleaseReason.DRAINING)


async def test_the_longest_wait_for_a_start_shows() -> None:
    async with bench(main=1) as it:
        it.leases.good = asyncio.Event()
        it.source.offer(a_job(a_spec_of(CheckType.BROWSER)))
        await until(lambda: it.running.oldest_wait_s(Lane.MAIN) > 0)
        assert it.running.oldest_wait_s(Lane.UPTIME) == 0
