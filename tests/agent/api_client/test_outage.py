"""Outages: one answer wakes every wait, and the log has one line for the start and the end."""

import asyncio

import pytest
from structlog.testing import capture_logs

from agent.api_client.errors import KeyRefusedError, ServiceAwayError, ServiceError
from agent.api_client.outage import Outage
from agent.api_client.retry import Backoff, Pace
from agent.jobs.releases import Releases
from agent.jobs.source import ServiceSource
from contract.agent_api import ReleaseReason
from contract.checks import Lane
from tests.agent.api_client.test_introduction import HELLO
from tests.agent.jobs.test_source import Introducer
from tests.builders.agents import MemoryReleases, a_client, metrics, until
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job
from tests.fakes.service import FakeService, Fault

GONE = ServiceAwayError("gone", is_unreachable=True)
FULL = ServiceAwayError("full")
PATIENT = Pace(first_s=LONG_S * 10, cap_s=LONG_S * 10, refused_cap_s=LONG_S * 10, linger_s=0.005)


def certain(outage: Outage) -> Backoff:
    return Backoff(PATIENT, outage, chance=lambda: 1.0)


@pytest.mark.parametrize("problem", [GONE, FULL, KeyRefusedError("no")])
async def test_one_answer_wakes_every_wait(problem: ServiceError) -> None:
    outage = Outage()
    outage.failed("claim", GONE)
    outage.failed("results", GONE)
    waits = [asyncio.create_task(certain(outage).wait(problem, LONG_S * 10)) for _ in range(3)]
    await asyncio.sleep(0)
    outage.answered("renew")
    async with asyncio.timeout(LONG_S):
        await asyncio.gather(*waits)


async def test_what_the_service_asked_for_is_waited_out() -> None:
    outage = Outage()
    asked = ServiceAwayError("busy", retry_after_s=LONG_S)
    waiting = asyncio.create_task(certain(outage).wait(asked, LONG_S * 2))
    await asyncio.sleep(0)
    outage.failed("claim", asked)
    outage.failed("claim", asked)
    outage.answered("renew")
    assert (await asyncio.wait({waiting}, timeout=0.05))[1] == {waiting}
    waiting.cancel()


async def test_a_call_that_alone_fails_is_not_woken_by_each_success_of_others() -> None:
    outage = Outage()
    waiting = asyncio.create_task(certain(outage).wait(FULL, LONG_S))
    await asyncio.sleep(0)
    outage.failed("results", FULL)
    outage.answered("claim")
    assert (await asyncio.wait({waiting}, timeout=0.05))[1] == {waiting}
    waiting.cancel()


async def test_a_claim_that_waits_is_asked_again_when_another_call_gets_through() -> None:
    async with FakeService() as service, a_client(service) as client:
        service.fail("claim", Fault(cut="before"))
        source = ServiceSource(client, MemoryReleases(), Introducer(), pace=PATIENT)
        service.offer(a_job(job_id="one"))
        claiming = asyncio.create_task(source.claim({Lane.UPTIME: 1}))
        await until(lambda: client.outage.is_waited_for)
        service.fail("renew", Fault(cut="before"))
        with pytest.raises(ServiceAwayError):
            await client.renew([])
        await client.hello(HELLO)
        async with asyncio.timeout(LONG_S):
            assert [job.job_id for job in await claiming] == ["one"]


async def test_an_outage_is_one_line_at_its_start_and_one_at_its_end() -> None:
    async with FakeService() as service, a_client(service) as client:
        url = service.url
        with capture_logs() as logs:
            await service.down()
            for _ in range(3):
                for call in (client.hello(HELLO), client.renew([]), client.release([])):
                    with pytest.raises(ServiceAwayError):
                        await call
            await service.up()
            await client.hello(HELLO)
    assert [line["event"] for line in logs] == ["service.away", "service.back"]
    assert logs[0]["because"].startswith(f"{url} cannot be reached")
    assert logs[1]["failures"] == 9


async def test_a_service_that_cannot_serve_a_call_has_two_lines_for_it() -> None:
    async with FakeService() as service, a_client(service) as client:
        with capture_logs() as logs:
            service.fail("renew", *[Fault(status=507) for _ in range(3)])
            for _ in range(3):
                with pytest.raises(ServiceAwayError):
                    await client.renew([])
                await client.hello(HELLO)
            await client.renew([])
    assert [(line["event"], line["call"]) for line in logs] == [
        ("service.failing", "renew"),
        ("service.recovered", "renew"),
    ]


async def test_a_key_that_is_refused_is_one_line_until_it_is_accepted() -> None:
    async with FakeService() as service, a_client(service) as client:
        with capture_logs() as logs:
            service.fail("renew", Fault(status=401), Fault(status=401))
            for _ in range(2):
                with pytest.raises(KeyRefusedError):
                    await client.renew([])
            await client.renew([])
    assert [line["event"] for line in logs] == ["agent.refused", "agent.accepted"]


async def test_jobs_go_back_as_soon_as_an_outage_is_over() -> None:
    async with FakeService() as service, a_client(service) as client:
        releases = Releases(client, metrics=metrics(), pace=PATIENT)
        running = asyncio.create_task(releases.run())
        source = ServiceSource(client, releases, Introducer(), pace=PATIENT)
        service.offer(a_job(job_id="one", lease_s=LONG_S * 10))
        (job,) = await source.claim({Lane.UPTIME: 1})
        await service.down()
        source.release(job, ReleaseReason.NO_ROOM)
        await until(lambda: client.outage.is_waited_for)
        with pytest.raises(ServiceAwayError):
            await client.renew([])
        await service.up()
        await client.renew([])
        async with asyncio.timeout(LONG_S):
            await releases.flush(limit_s=LONG_S)
        running.cancel()
        assert service.calls("release") == 1
