"""Heartbeats are judged where all pings are: none fails while an agent may hold a ping of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest

from contract.checks import HeartbeatSpec, Lane
from contract.job import Job
from contract.wire import decode
from service.clock import NO_GAP, Gap, GapWatch
from service.heartbeats.actions import ReceivedPing, take_pings, watch
from service.jobs.claims import ClaimScope, assign_jobs
from service.jobs.long_poll import LocationWaiters, PendingClaim, open_claim_queue
from service.jobs.unrelayed_pings import PingReports
from tests.builders.patience import LONG_S
from tests.builders.world import World, a_claimant

PERIOD_S, GRACE_S = 60, 30
OVERDUE_S = PERIOD_S + GRACE_S + 5
CLAIMS = count()


@dataclass
class Location:
    """Agents and one heartbeat, which was pinged at the start."""

    world: World
    check_id: str
    gap: Gap = NO_GAP
    reports: PingReports = field(init=False)

    def __post_init__(self) -> None:
        self.reports = PingReports(lambda: self.world.time.now / 1000)

    async def ping(self, *, age_s: float = 0) -> None:
        ping = ReceivedPing(
            ping_id=None, token="token", age_s=age_s, method="GET", source="", user_agent=""
        )
        await self.world.change(lambda c, now: take_pings(c, [ping], now_ms=now))

    async def overdue_with_two_agents(self) -> None:
        """A run is queued that would fail, and agent-1 and agent-2 are connected."""
        self.world.time.pass_s(OVERDUE_S)
        await self.world.agent_seen(agent_id="agent-1")
        await self.world.agent_seen(agent_id="agent-2")
        await self.world.queue(self.check_id)

    async def claim(self, agent_id: str, *, oldest_ping_s: float | None = None) -> Sequence[Job]:
        self.reports.note(agent_id, oldest_ping_s)
        scope = ClaimScope(self.world.location_id, self.world.vault, self.reports, gap=self.gap)
        claimant = a_claimant(f"claim-{next(CLAIMS)}", agent_id=agent_id)
        dealt = await self.world.change(
            lambda c, now: assign_jobs(c, scope, [claimant], now_ms=now)
        )
        return [decode(job, Job) for job in dealt.jobs[0]]


@pytest.fixture
async def location(world: World) -> Location:
    spec = HeartbeatSpec(period_s=PERIOD_S, grace_s=GRACE_S, ping_token="token")
    check_id = await world.check(spec)
    await world.change(lambda c, _now: watch(c, check_id, "token"))
    found = Location(world, check_id)
    await found.ping()
    return found


async def test_an_overdue_heartbeat_waits_until_each_connected_agent_has_relayed(
    world: World, location: Location
) -> None:
    await location.overdue_with_two_agents()
    assert await location.claim("agent-1") == []
    assert await location.claim("agent-2", oldest_ping_s=40) == []
    await location.ping(age_s=40)
    (job,) = await location.claim("agent-1")
    assert isinstance(job.spec, HeartbeatSpec)
    assert job.spec.silent_for_s == 40


async def test_a_heartbeat_fails_once_all_agents_say_that_they_hold_no_ping(
    world: World, location: Location
) -> None:
    await location.overdue_with_two_agents()
    assert await location.claim("agent-1") == []
    (job,) = await location.claim("agent-2")
    assert isinstance(job.spec, HeartbeatSpec)
    assert job.spec.silent_for_s == OVERDUE_S


async def test_a_heartbeat_in_time_waits_for_nobody(world: World, location: Location) -> None:
    world.time.pass_s(PERIOD_S)
    await world.agent_seen(agent_id="agent-2")
    await world.queue(location.check_id)
    assert len(await location.claim("agent-1")) == 1


async def test_other_checks_do_not_wait_behind_a_heartbeat(
    world: World, location: Location
) -> None:
    world.time.pass_s(OVERDUE_S)
    await world.agent_seen(agent_id="agent-2")
    await world.queue(location.check_id)
    url = await world.check()
    await world.queue(url)
    location.reports.note("agent-1", None)
    scope = ClaimScope(world.location_id, world.vault, location.reports)
    claimant = a_claimant(slots={Lane.UPTIME: 1})
    dealt = await world.change(lambda c, now: assign_jobs(c, scope, [claimant], now_ms=now))
    assert [decode(job, Job).check_id for job in dealt.jobs[0]] == [url]


async def test_an_agent_that_is_gone_is_awaited_for_a_minute(
    world: World, location: Location
) -> None:
    await world.agent_seen(agent_id="gone")
    world.time.pass_s(OVERDUE_S)
    await world.queue(location.check_id)
    assert len(await location.claim("agent-1")) == 1


async def test_an_agent_that_keeps_its_pings_holds_a_heartbeat_up_for_20_seconds(
    world: World, location: Location
) -> None:
    world.time.pass_s(OVERDUE_S)
    await world.queue(location.check_id)
    for _ in range(20):
        await world.agent_seen(agent_id="agent-2")
        assert await location.claim("agent-2", oldest_ping_s=OVERDUE_S) == []
        world.time.pass_s(1)
    await world.agent_seen(agent_id="agent-2")
    assert len(await location.claim("agent-2", oldest_ping_s=OVERDUE_S)) == 1


async def test_a_heartbeat_that_turned_due_in_an_outage_waits_after_it_too(
    world: World, location: Location
) -> None:
    await location.overdue_with_two_agents()
    world.time.pass_s(45)
    assert await location.claim("agent-1") == []
    await location.ping(age_s=20)
    (job,) = await location.claim("agent-2")
    assert isinstance(job.spec, HeartbeatSpec)
    assert job.spec.silent_for_s == 20


async def test_agents_from_before_a_gap_of_the_service_are_awaited_after_it(
    world: World, location: Location
) -> None:
    await world.agent_seen(agent_id="dead for long")
    world.time.pass_s(120)
    await world.agent_seen(agent_id="agent-1")
    await world.agent_seen(agent_id="agent-2")
    began_ms = world.time.now
    world.time.pass_s(3600)
    location.gap = Gap(began_ms, world.time.now)
    await world.agent_seen(agent_id="agent-1")
    await world.queue(location.check_id)
    world.time.pass_s(10)
    assert await location.claim("agent-1") == []
    assert len(await location.claim("agent-2")) == 1


async def test_agents_that_do_not_come_back_after_a_gap_are_awaited_for_half_a_minute(
    world: World, location: Location
) -> None:
    await world.agent_seen(agent_id="gone")
    began_ms = world.time.now
    world.time.pass_s(3600)
    location.gap = Gap(began_ms, world.time.now)
    world.time.pass_s(29)
    await world.queue(location.check_id)
    assert await location.claim("agent-1") == []
    world.time.pass_s(1)
    assert len(await location.claim("agent-1")) == 1


async def test_held_heartbeats_hide_no_other_job_however_many_they_are(
    world: World, location: Location
) -> None:
    world.time.pass_s(OVERDUE_S)
    await world.agent_seen(agent_id="agent-2")
    for _ in range(30):
        await world.queue(location.check_id)
    urls = [await world.check() for _ in range(12)]
    for url in urls:
        await world.queue(url)
    assert [job.check_id for job in await location.claim("agent-1")] == urls[:10]


async def test_waiting_claims_are_answered_so_that_their_agents_report(
    world: World, location: Location
) -> None:
    """Two agents wait for jobs since before the deadline."""
    claim_queue = await open_claim_queue(world.database, world.clock, world.vault, GapWatch())

    def claim(agent_id: str) -> asyncio.Task[Sequence[bytes]]:
        claimant = a_claimant(f"claim-{next(CLAIMS)}", agent_id=agent_id)
        waiting = claim_queue.claim(world.location_id, claimant, wait_s=LONG_S)
        return asyncio.create_task(waiting, name=agent_id)

    claims = {claim("agent-1"), claim("agent-2")}
    await asyncio.sleep(0.1)
    world.time.pass_s(OVERDUE_S)
    await world.agent_seen(agent_id="agent-1")
    await world.agent_seen(agent_id="agent-2")
    claim_queue_reports = claim_queue._locations[world.location_id].reports
    for agent_id in ("agent-1", "agent-2"):  # they claimed before the deadline
        claim_queue_reports.note(agent_id, OVERDUE_S)
    async with asyncio.timeout(LONG_S):
        await world.queue(location.check_id)
        done, _ = await asyncio.wait(claims)
        assert [task.result() for task in done] == [(), ()]
        (done, waiting) = await asyncio.wait(
            {claim("agent-1"), claim("agent-2")}, return_when=asyncio.FIRST_COMPLETED
        )
    assert [len(task.result()) for task in done] == [1]
    await claim_queue.close()
    await asyncio.wait(waiting)


async def test_a_repeated_claim_is_not_asked_for_a_report(world: World) -> None:
    """It may have got jobs whose answer was lost."""
    location = LocationWaiters()
    answers = [asyncio.get_running_loop().create_future() for _ in range(2)]
    for name, answer in zip(("repeated", "new"), answers, strict=True):
        claimant = a_claimant(name, agent_id=name)
        location.add(PendingClaim(claimant, answer, repeated=name == "repeated"))
    location.ask_for_reports(1, 1)
    assert [answer.done() for answer in answers] == [False, True]


async def test_a_later_round_does_not_put_off_an_earlier_one() -> None:
    loop, began = asyncio.get_running_loop(), asyncio.Event()
    location = LocationWaiters()
    location.set_timer(loop.call_later(0.01, began.set))
    location.set_timer(loop.call_later(3600, began.clear))
    async with asyncio.timeout(LONG_S):
        await began.wait()
    location.close()


def test_the_newest_report_of_an_agent_counts_and_the_longest_unheard_is_forgotten() -> None:
    now = 100.0
    reports = PingReports(lambda: now, most=2)
    for agent_id, oldest_ping_s in (("a", None), ("b", 7.0), ("a", 3.0), ("c", None)):
        reports.note(agent_id, oldest_ping_s)
    assert reports.relayed_until_ms(1_000_000) == {"a": 997_000, "c": 1_000_000}
