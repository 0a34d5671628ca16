from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection

from contract.checks import ApiSpec, BrowserSpec, CheckType, HeartbeatSpec, Lane
from contract.job import Job
from contract.wire import decode
from service.db.engine import Line
from service.db.sqlite_group import driver
from service.heartbeats.actions import ReceivedPing, take_pings
from service.jobs.actions import drop_jobs
from service.jobs.claims import AssignedJobs, assign_jobs
from service.results.ingest import Verdict
from tests.builders.engines import ON_SQLITE
from tests.builders.specs import a_dns_spec, a_spec_of, a_url_spec, an_http_request
from tests.builders.world import UPTIME_TYPES, World, a_claimant, a_result
from tests.fakes.clock import START_MS

ALL_TYPES = frozenset(CheckType)


async def test_a_claimed_job_says_everything_that_an_agent_needs(world: World) -> None:
    spec = a_url_spec("http://10.0.0.1/")
    check_id = await world.check(spec)
    await world.queue(check_id)
    world.time.pass_s(1.5)
    [claimed] = await world.claim()
    assert [claimed] == [
        Job(
            job_id="1",
            fence=claimed.fence,
            lease_s=60,
            run_id="1",
            check_id=check_id,
            check_name="Front page",
            account_id=world.account_id,
            location="cellar",
            run_source="SCHEDULE_NOW",
            attempt=1,
            scheduled_for=datetime.fromtimestamp(START_MS / 1000, UTC),
            lag_s=1.5,
            deadline_s=30,
            spec=spec,
        )
    ]


@pytest.mark.parametrize("kind", CheckType)
async def test_a_spec_of_every_type_arrives_as_it_was_stored(world: World, kind: CheckType) -> None:
    spec = a_spec_of(kind)
    await world.queue(await world.check(spec))
    slots = {Lane.UPTIME: 1, Lane.MAIN: 1}
    [job] = await world.claim(check_types=ALL_TYPES, slots=slots)
    assert job.spec == spec


async def test_a_job_of_the_main_lane_has_a_longer_lease_and_deadline(world: World) -> None:
    await world.queue(await world.check(BrowserSpec(script="")))
    [job] = await world.claim(check_types=ALL_TYPES, slots={Lane.MAIN: 1})
    assert (job.lease_s, job.deadline_s) == (300, 240)


async def test_a_claim_gets_no_more_jobs_than_slots(world: World) -> None:
    check_id = await world.check()
    for _ in range(3):
        await world.queue(check_id)
    assert len(await world.claim("claim-1", slots={Lane.UPTIME: 2})) == 2
    assert len(await world.claim("claim-2", slots={Lane.UPTIME: 2})) == 1


async def test_slots_of_one_lane_are_not_filled_from_another(world: World) -> None:
    scripted = ApiSpec(request=an_http_request(), setup_script="1")
    await world.queue(await world.check(scripted))
    assert await world.claim("claim-1", slots={Lane.UPTIME: 5}) == []
    assert len(await world.claim("claim-2", slots={Lane.MAIN: 1})) == 1


async def test_a_claim_gets_only_the_types_that_the_agent_runs(world: World) -> None:
    await world.queue(await world.check(a_url_spec()))
    await world.queue(await world.check(a_dns_spec()))
    jobs = await world.claim(check_types=frozenset({CheckType.DNS}))
    assert [type(job.spec).__name__ for job in jobs] == ["DnsSpec"]


async def test_an_agent_that_can_run_nothing_gets_nothing(world: World) -> None:
    await world.queue(await world.check())
    assert await world.claim(check_types=frozenset()) == []


async def test_a_claim_gets_only_jobs_of_its_location(world: World) -> None:
    attic = await world.location("attic")
    await world.queue(await world.check())
    assert await world.claim(location=attic) == []


async def test_no_job_is_dealt_twice(world: World) -> None:
    await world.queue(await world.check())
    claimants = [a_claimant("claim-1"), a_claimant("claim-2")]
    dealt = await world.change(lambda c, now: assign_jobs(c, world.table(), claimants, now_ms=now))
    assert [len(jobs) for jobs in dealt.jobs] == [1, 0]
    assert await world.claim("claim-3") == []


async def test_who_came_first_is_served_first(world: World) -> None:
    check_id = await world.check()
    for _ in range(5):
        await world.queue(check_id)
    claimants = [a_claimant(f"claim-{n}", slots={Lane.UPTIME: 2}) for n in range(4)]
    dealt = await world.change(lambda c, now: assign_jobs(c, world.table(), claimants, now_ms=now))
    assert [len(jobs) for jobs in dealt.jobs] == [2, 2, 1, 0]


async def test_a_claimant_with_other_types_is_served_beside_them(world: World) -> None:
    await world.queue(await world.check(a_url_spec()))
    await world.queue(await world.check(a_dns_spec()))
    claimants = [
        a_claimant("claim-1", check_types=frozenset({CheckType.DNS})),
        a_claimant("claim-2", check_types=UPTIME_TYPES),
    ]
    dealt = await world.change(lambda c, now: assign_jobs(c, world.table(), claimants, now_ms=now))
    specs = [type(decode(jobs[0], Job).spec).__name__ for jobs in dealt.jobs]
    assert specs == ["DnsSpec", "UrlSpec"]


async def test_claimants_with_overlapping_types_never_get_one_job_in_a_round(world: World) -> None:
    check_id = await world.check(a_url_spec())
    await world.queue(check_id)
    await world.queue(check_id)
    claimants = [
        a_claimant("claim-1", check_types=frozenset({CheckType.URL})),
        a_claimant("claim-2", check_types=UPTIME_TYPES),
    ]

    def deal(connection: Connection) -> AssignedJobs:
        now_ms = world.clock.now_ms(connection)
        return assign_jobs(connection, world.table(), claimants, now_ms=now_ms)

    dealt = await world.database.write(deal, brief=Line.CLAIMS)
    given = [decode(job, Job) for jobs in dealt.jobs for job in jobs]
    assert sorted(job.job_id for job in given) == ["1", "2"]
    assert await world.submit(*map(a_result, given)) == [Verdict.ACCEPTED, Verdict.ACCEPTED]


async def test_a_repeated_claim_gets_the_same_jobs_and_a_whole_lease(world: World) -> None:
    await world.queue(await world.check())
    await world.queue(await world.check())
    first = await world.claim("claim-1", slots={Lane.UPTIME: 1})
    again = await world.claim("claim-1", slots={Lane.UPTIME: 1}, repeated=True)
    assert again == first


@ON_SQLITE
async def test_claims_that_are_repeated_together_have_the_leases_looked_through_once(
    world: World,
) -> None:
    check_id = await world.check()
    names = ["claim-1", "claim-2", "claim-3"]
    for _ in names:
        await world.queue(check_id)
    first = [await world.claim(name, slots={Lane.UPTIME: 1}) for name in names]
    statements: list[str] = []

    def again(connection: Connection, now_ms: int) -> AssignedJobs:
        claimants = [a_claimant(name, repeated=True) for name in reversed(names)]
        driver(connection).set_trace_callback(statements.append)
        dealt = assign_jobs(connection, world.table(), claimants, now_ms=now_ms)
        driver(connection).set_trace_callback(None)
        return dealt

    dealt = await world.change(again)
    assert [[decode(job, Job) for job in hand] for hand in dealt.jobs] == first[::-1]
    assert sum("ix_job_leased_until" in one for one in statements) == 1


async def test_a_repeated_claim_gets_nothing_back_that_was_settled(world: World) -> None:
    await world.queue(await world.check())
    [job] = await world.claim("claim-1")
    await world.submit(a_result(job))
    assert await world.claim("claim-1", repeated=True) == []


async def test_a_heartbeat_job_says_how_long_it_has_been_silent(world: World) -> None:
    check_id = await world.heartbeat("nightly")
    ping = ReceivedPing(
        ping_id=None, token="nightly", age_s=0, method="GET", source="", user_agent=""
    )
    await world.queue(check_id)
    [before] = await world.claim("claim-1")
    await world.change(lambda c, now: take_pings(c, [ping], now_ms=now))
    world.time.pass_s(45)
    await world.queue(check_id)
    [after] = await world.claim("claim-2")
    assert isinstance(before.spec, HeartbeatSpec)
    assert isinstance(after.spec, HeartbeatSpec)
    assert (before.spec.silent_for_s, after.spec.silent_for_s) == (None, 45)


async def test_jobs_of_a_deleted_check_are_gone(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    await world.change(lambda c, _now: drop_jobs(c, check_id))
    assert await world.claim() == []


async def test_two_wishes_in_one_millisecond_are_two_runs(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    await world.queue(check_id)
    first, second = await world.claim()
    assert (first.check_id, first.run_id != second.run_id) == (second.check_id, True)
    verdicts = await world.submit(a_result(first), a_result(second))
    assert verdicts == [Verdict.ACCEPTED, Verdict.ACCEPTED]
    assert len(await world.results(check_id)) == 2
