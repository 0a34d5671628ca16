"""Claims: nothing is lost with a broken connection, one bad job spoils no other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from agent.api_client.client import ServiceClient
from agent.api_client.errors import ServiceAwayError
from agent.jobs.source import ServiceSource
from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.wire import encode
from tests.builders.agents import QUICK, MemoryReleases, a_client, until
from tests.builders.specs import a_job
from tests.fakes.service import FakeService, Fault

FREE = {Lane.UPTIME: 4}


@dataclass
class Introducer:
    hellos: int = 0
    service: FakeService | None = None
    fails: list[Exception] = field(default_factory=list)

    def check_types(self, lanes: Iterable[Lane]) -> tuple[CheckType, ...]:
        return (CheckType.URL,)

    async def say_hello(self) -> None:
        self.hellos += 1
        if self.service is not None:
            self.service.knows_agents = True
        if self.fails:
            raise self.fails.pop()


@dataclass
class Bench:
    service: FakeService
    client: ServiceClient
    source: ServiceSource
    releases: MemoryReleases
    introducer: Introducer


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with FakeService() as service, a_client(service) as client:
        releases, introducer = MemoryReleases(), Introducer(service=service)
        source = ServiceSource(client, releases, introducer, pace=QUICK)
        yield Bench(service, client, source, releases, introducer)


async def test_a_claim_asks_for_the_free_slots_and_what_can_run() -> None:
    async with bench() as it:
        it.service.offer(*(a_job(job_id=f"job-{number}") for number in range(6)))
        jobs = await it.source.claim(FREE)
    assert [job.job_id for job in jobs] == ["job-0", "job-1", "job-2", "job-3"]
    (claim,) = it.service.claims
    assert claim.slots == FREE
    assert claim.check_types == (CheckType.URL,)


async def test_a_claim_waits_for_a_job() -> None:
    async with bench() as it:
        claiming = asyncio.create_task(it.source.claim(FREE))
        await it.service.until(lambda: bool(it.service.claims))
        it.service.offer(a_job(job_id="late"))
        assert [job.job_id for job in await claiming] == ["late"]


async def test_a_lost_answer_costs_no_lease() -> None:
    async with bench() as it:
        it.service.offer(a_job(job_id="one"))
        it.service.fail("claim", Fault(cut="after"))
        (job,) = await it.source.claim(FREE)
    assert (job.job_id, job.fence) == ("one", 1)
    first, second = it.service.claims
    assert first.claim_id == second.claim_id


async def test_each_try_of_a_claim_tells_the_age_of_the_oldest_ping_that_waits_then() -> None:
    ages = iter([7.0, None])
    async with FakeService() as service, a_client(service) as client:
        service.offer(a_job())
        service.fail("claim", Fault(cut="after"))
        source = ServiceSource(
            client,
            MemoryReleases(),
            Introducer(service=service),
            pace=QUICK,
            oldest_ping_s=lambda: next(ages),
        )
        await source.claim(FREE)
    first, second = service.claims
    assert first.claim_id == second.claim_id
    assert (first.oldest_ping_s, second.oldest_ping_s) == (7.0, None)


async def test_each_claim_has_its_own_id() -> None:
    async with bench() as it:
        it.service.offer(a_job(job_id="one"))
        await it.source.claim(FREE)
        it.service.offer(a_job(job_id="two"))
        await it.source.claim(FREE)
    first, second = it.service.claims
    assert first.claim_id != second.claim_id


@pytest.mark.parametrize("status", [500, 503, 429, 401, 426, 400])
async def test_a_service_in_trouble_is_asked_again(status: int) -> None:
    async with bench() as it:
        it.service.offer(a_job())
        it.service.fail("claim", Fault(status=status), Fault(status=status))
        assert len(await it.source.claim(FREE)) == 1


async def test_after_trouble_the_agent_says_hello_again() -> None:
    async with bench() as it:
        it.service.offer(a_job())
        it.service.fail("claim", Fault(status=503))
        await it.source.claim(FREE)
        assert it.introducer.hellos == 1


async def test_hello_is_said_when_the_service_asks_for_it() -> None:
    async with bench() as it:
        it.service.knows_agents = False
        it.service.offer(a_job())
        assert await it.source.claim(FREE) == ()
        assert it.introducer.hellos == 1
        assert len(await it.source.claim(FREE)) == 1


async def test_a_malformed_job_goes_back_with_a_sentence_and_the_others_run() -> None:
    async with bench() as it:
        it.service.offer_raw(
            b'{"jobId":"bad","fence":"@fence","spec":{"type":"URL"}}', job_id="bad"
        )
        it.service.offer(a_job(job_id="good"))
        jobs = await it.source.claim(FREE)
    assert [job.job_id for job in jobs] == ["good"]
    (released,) = it.releases.put_back
    assert (released.job_id, released.fence) == ("bad", 1)
    assert released.reason is ReleaseReason.MALFORMED
    assert "`$.spec`" in released.message


async def test_a_job_of_an_unknown_type_goes_back() -> None:
    raw = encode(a_job(job_id="new")).replace(b'"type":"URL"', b'"type":"GRPC"')
    async with bench() as it:
        it.service.offer_raw(raw, job_id="new")
        assert await it.source.claim(FREE) == ()
    assert [job.reason for job in it.releases.put_back] == [ReleaseReason.MALFORMED]


async def test_a_job_without_a_head_is_passed_over() -> None:
    async with bench() as it:
        it.service.offer_raw(b'["nothing", "of", "a", "job"]', job_id="headless")
        it.service.offer(a_job(job_id="good"))
        jobs = await it.source.claim(FREE)
    assert [job.job_id for job in jobs] == ["good"]
    assert it.releases.put_back == []


async def test_the_service_sets_the_distance_of_claims() -> None:
    async with bench() as it:
        it.service.next_poll_s = 600
        it.service.offer(a_job(job_id="one"), a_job(job_id="two"))
        await it.source.claim({Lane.UPTIME: 1})
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(it.source.claim({Lane.UPTIME: 1}), 0.05)
        assert it.service.calls("claim") == 1
        it.service.offer(a_job(job_id="three"))


async def test_what_a_cut_off_claim_got_is_given_back() -> None:
    async with bench() as it:
        it.service.fail("claim", Fault(delay_s=0.2, cut="after"))
        it.service.offer(a_job(job_id="one"))
        claiming = asyncio.create_task(it.source.claim(FREE))
        await it.service.until(lambda: bool(it.service.book.leased))
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        await it.source.give_back_abandoned()
    assert [(job.job_id, job.reason) for job in it.releases.put_back] == [
        ("one", ReleaseReason.DRAINING)
    ]
    assert it.service.claims[-1].wait_s == 0


async def test_what_a_claim_got_whose_answer_was_lost_is_given_back() -> None:
    async with bench() as it:
        it.service.fail("claim", Fault(cut="after"))
        it.introducer.fails = [ServiceAwayError("away") for _ in range(1000)]
        it.service.offer(a_job(job_id="one"))
        claiming = asyncio.create_task(it.source.claim(FREE))
        await until(lambda: it.introducer.hellos)
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        await it.source.give_back_abandoned()
    assert [job.job_id for job in it.releases.put_back] == ["one"]


async def test_giving_back_is_no_trouble_while_the_service_is_away() -> None:
    async with bench() as it:
        claiming = asyncio.create_task(it.source.claim(FREE))
        await it.service.until(lambda: bool(it.service.claims))
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        it.service.fail_always("claim", Fault(status=503))
        await it.source.give_back_abandoned()
    assert it.releases.put_back == []


async def test_a_release_names_job_fence_and_reason() -> None:
    async with bench() as it:
        it.source.release(a_job(fence=7), ReleaseReason.AGENT_ERROR, message="x" * 9000)
    (released,) = it.releases.put_back
    assert (released.job_id, released.fence) == ("job-1", 7)
    assert len(released.message) == 500
