"""Jobs on their way back to the service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.jobs.releases import Releases
from contract.agent_api import Released, ReleaseReason
from tests.builders.agents import QUICK, a_client, metrics
from tests.builders.patience import LONG_S
from tests.fakes.service import FakeService, Fault


def a_release(number: int = 1) -> Released:
    return Released(job_id=f"job-{number}", fence=1, reason=ReleaseReason.DRAINING)


@asynccontextmanager
async def running(service: FakeService, **changes: object) -> AsyncIterator[Releases]:
    async with a_client(service) as client:
        releases = Releases(client, metrics=metrics(), pace=QUICK, **changes)  # type: ignore[arg-type]
        task = asyncio.create_task(releases.run())
        try:
            yield releases
        finally:
            task.cancel()


async def test_jobs_of_one_moment_go_back_together() -> None:
    async with FakeService() as service, running(service) as releases:
        for number in range(5):
            releases.put(a_release(number), lease_s=60)
        await releases.flush(limit_s=LONG_S)
    assert len(service.released) == 5
    assert service.calls("release") == 1


async def test_a_release_waits_for_a_service_that_is_away() -> None:
    async with FakeService() as service, running(service) as releases:
        service.fail("release", Fault(status=503), Fault(cut="before"))
        releases.put(a_release(1), lease_s=60)
        await releases.flush(limit_s=LONG_S)
    assert [job.job_id for job in service.released] == ["job-1"]


async def test_a_job_whose_lease_ran_out_is_not_given_back() -> None:
    now = [0.0]
    async with (
        FakeService() as service,
        running(service, clock=lambda: now[0]) as releases,
    ):
        service.fail_always("release", Fault(status=503))
        releases.put(a_release(1), lease_s=60)
        await service.until(lambda: service.calls("release") > 0)
        now[0] = 61.0
        await releases.flush(limit_s=LONG_S)
        assert service.released == []


async def test_a_refused_release_holds_up_no_others() -> None:
    async with FakeService() as service, running(service) as releases:
        service.fail("release", Fault(status=400))
        releases.put(a_release(1), lease_s=60)
        await releases.flush(limit_s=LONG_S)
        releases.put(a_release(2), lease_s=60)
        await releases.flush(limit_s=LONG_S)
    assert [job.job_id for job in service.released] == ["job-2"]


async def test_a_flush_ends_at_its_limit() -> None:
    async with FakeService() as service, running(service) as releases:
        service.fail_always("release", Fault(status=503))
        releases.put(a_release(1), lease_s=60)
        await releases.flush(limit_s=0.05)
    assert service.released == []
