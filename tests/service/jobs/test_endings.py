from sqlalchemy import select, update

from contract.agent_api import ReleaseReason
from contract.checks import AgenticSpec, BrowserSpec, CheckType, Lane
from contract.job import Job
from service.clock import GapWatch
from service.db.tables.checks import check_
from service.db.tables.runs import job
from service.jobs.claims import assign_jobs
from service.jobs.engines import queue_of
from service.jobs.settle import Reaper, Release, expire_jobs, extend_leases_after_gap, release
from service.scheduling.actions import plan
from service.scheduling.tick import tick
from tests.builders.world import World, a_claimant, a_result


async def give_back(
    world: World, held: Job, reason: ReleaseReason = ReleaseReason.DRAINING, **changes: int
) -> None:
    one = Release(int(held.job_id), changes.get("fence", held.fence), reason)
    await world.change(lambda c, now: release(c, [one], location_id=world.location_id, now_ms=now))


async def reap_now(world: World) -> int:
    return await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))


async def ends_of(world: World, check_id: str) -> list[tuple[str, str, str | None]]:
    return [(row.result_type, row.status, row.cause) for row in await world.results(check_id)]


async def renew(world: World, held: Job) -> bool:
    leases = [(int(held.job_id), held.fence)]
    [holds] = await world.change(
        lambda c, now: queue_of(c).renew(c, world.location_id, leases, now_ms=now)
    )
    return holds


async def test_a_released_job_is_claimable_at_once_with_a_higher_fence(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim("claim-1")
    await give_back(world, held)
    [again] = await world.claim("claim-2", agent_id="agent-2")
    assert (again.job_id, again.fence, again.attempt) == (held.job_id, held.fence + 1, 1)


async def test_a_release_under_an_old_fence_changes_nothing(world: World) -> None:
    await world.queue(await world.check())
    [first] = await world.claim("claim-1")
    await give_back(world, first)
    [second] = await world.claim("claim-2")
    await give_back(world, first)
    assert await world.claim("claim-3") == []
    assert await renew(world, second)


async def test_another_location_cannot_release_a_job(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim()
    attic = await world.location("attic")
    one = Release(int(held.job_id), held.fence, ReleaseReason.DRAINING)
    await world.change(lambda c, now: release(c, [one], location_id=attic, now_ms=now))
    assert await renew(world, held)


async def test_draining_agents_do_not_use_up_a_job(world: World) -> None:
    await world.queue(await world.check())
    for turn in range(6):
        [held] = await world.claim(f"claim-{turn}")
        await give_back(world, held, ReleaseReason.DRAINING)
    assert len(await world.claim("last")) == 1


async def test_three_faults_of_agents_end_a_run_as_an_error_of_ours(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    for turn in range(3):
        [held] = await world.claim(f"claim-{turn}", agent_id=f"agent-{turn}")
        await give_back(world, held, ReleaseReason.AGENT_ERROR)
    assert await world.claim("last") == []
    assert await ends_of(world, check_id) == [("FINAL", "ERROR", "agent_error")]


async def test_a_job_that_an_agent_gave_back_goes_to_another_one_first(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim("claim-1")
    await give_back(world, held, ReleaseReason.AGENT_ERROR)
    assert await world.claim("claim-2") == []
    [again] = await world.claim("claim-3", agent_id="agent-2")
    assert again.job_id == held.job_id


async def test_a_job_returns_to_the_agent_that_gave_it_back_when_nobody_else_takes_it(
    world: World,
) -> None:
    await world.queue(await world.check())
    [held] = await world.claim("claim-1")
    await give_back(world, held, ReleaseReason.AGENT_ERROR)
    table, now_ms = world.table(), world.time.now
    dealt = await world.change(lambda c, now: assign_jobs(c, table, [a_claimant()], now_ms=now))
    assert (dealt.has_held_back, dealt.next_due_ms) == (True, now_ms + 5_000)
    world.time.pass_s(5)
    assert len(await world.claim("claim-2")) == 1


async def test_a_job_that_waits_for_another_agent_is_in_nobodys_way(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim("claim-1")
    await give_back(world, held, ReleaseReason.AGENT_ERROR)
    world.time.pass_s(1)
    await world.queue(await world.check())
    [other] = await world.claim("claim-2", slots={Lane.UPTIME: 1})
    assert other.job_id != held.job_id


async def test_an_agent_that_breaks_on_a_job_again_and_again_counts_once(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    for turn in range(5):
        [held] = await world.claim(f"claim-{turn}")
        await give_back(world, held, ReleaseReason.AGENT_ERROR)
        world.time.pass_s(5 * 2**turn - 1)
        assert await world.claim(f"early-{turn}") == []
        world.time.pass_s(1)
    [held] = await world.claim("claim-last", agent_id="agent-2")
    await world.submit(a_result(held))
    assert await ends_of(world, check_id) == [("FINAL", "PASSED", None)]


async def test_a_run_that_only_one_agent_took_and_gave_back_ends_as_an_error_of_ours_in_time(
    world: World,
) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [held] = await world.claim("claim-1")
    await give_back(world, held, ReleaseReason.AGENT_ERROR)
    world.time.pass_s(360)
    await reap_now(world)
    assert await ends_of(world, check_id) == [("FINAL", "ERROR", "agent_error")]


async def test_a_run_that_expired_while_the_service_was_away_says_so(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    await world.agent_seen()
    world.time.pass_s(400)
    await world.change(lambda c, now: Reaper(GapWatch()).reap(c, now_ms=now))
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "service_down")]


async def test_no_run_lacks_an_agent_before_agents_could_come_back(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    world.time.pass_s(350)
    reaper = Reaper(GapWatch())
    for _ in range(12):
        await world.change(lambda c, now: reaper.reap(c, now_ms=now))
        world.time.pass_s(1)
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "service_down")]


async def test_a_clock_that_jumps_costs_no_lease_and_blames_no_agent(world: World) -> None:
    first, second = await world.check(), await world.check()
    reaper = Reaper(GapWatch())
    await world.queue(first)
    [held] = await world.claim()
    await world.queue(second)
    await world.change(lambda c, now: reaper.reap(c, now_ms=now))
    world.time.pass_s(3600)
    await world.change(lambda c, now: reaper.reap(c, now_ms=now))
    assert await renew(world, held)
    assert await ends_of(world, second) == [("FINAL", "MISSED", "service_down")]


async def test_a_job_whose_lease_ran_out_is_run_by_another_agent(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [lost] = await world.claim("claim-1")
    world.time.pass_s(59)
    assert await reap_now(world) == 0
    world.time.pass_s(1)
    assert await reap_now(world) == 1
    [again] = await world.claim("claim-2", agent_id="agent-2")
    assert (again.job_id, again.fence) == (lost.job_id, lost.fence + 1)
    assert await ends_of(world, check_id) == []


async def test_a_renewed_lease_holds_for_another_full_length(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim()
    world.time.pass_s(50)
    assert await renew(world, held)
    world.time.pass_s(59)
    assert await reap_now(world) == 0


async def test_a_lost_lease_cannot_be_renewed(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim()
    world.time.pass_s(60)
    await reap_now(world)
    assert not await renew(world, held)


async def test_the_third_agent_that_dies_on_a_job_ends_the_run(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    for turn in range(3):
        assert len(await world.claim(f"claim-{turn}")) == 1
        world.time.pass_s(60)
        await reap_now(world)
    assert await world.claim("last") == []
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "agent_lost")]


async def test_a_run_that_nobody_claims_in_six_minutes_is_missed(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    world.time.pass_s(359)
    assert await reap_now(world) == 0
    world.time.pass_s(1)
    await reap_now(world)
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "no_agent")]


async def test_a_missed_run_says_when_agents_were_there(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    world.time.pass_s(300)
    await world.agent_seen()
    world.time.pass_s(60)
    await reap_now(world)
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "queue_expired")]


async def test_an_agent_that_does_not_run_its_type_does_not_count_for_a_missed_run(
    world: World,
) -> None:
    check_id = await world.check(BrowserSpec(script=""))
    await world.queue(check_id)
    world.time.pass_s(300)
    await world.agent_seen()
    world.time.pass_s(60)
    await reap_now(world)
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "no_agent")]


async def test_a_run_that_no_agent_can_take_ends_at_once(world: World) -> None:
    check_id = await world.check(AgenticSpec(prompt="Log in."))
    await world.agent_seen(check_types=list(CheckType))
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    await world.change(lambda c, now: tick(c, now_ms=now))
    assert await reap_now(world) == 1
    [(kind, status, _)] = await ends_of(world, check_id)
    assert (kind, status) == ("FINAL", "MISSED")


async def test_a_missed_run_stands_at_the_time_at_which_it_was_due(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    due_ms = world.time.now
    world.time.pass_s(400)
    await reap_now(world)
    [missed] = await world.results(check_id)
    assert (missed.ts, missed.scheduled_ms, missed.created_ms) == (due_ms, due_ms, world.time.now)


async def test_every_scheduled_run_has_a_final_result_even_if_nobody_runs_them(
    world: World,
) -> None:
    check_id = await world.check(frequency=1)
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    for _ in range(5):
        await world.change(lambda c, now: tick(c, now_ms=now))
        world.time.pass_s(60)
        await reap_now(world)
    assert await ends_of(world, check_id) == [("FINAL", "MISSED", "no_agent")] * 5


async def test_agents_get_time_to_renew_after_the_service_was_away(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [held] = await world.claim()
    world.time.pass_s(3600)
    await world.change(lambda c, now: extend_leases_after_gap(c, now_ms=now))
    assert await reap_now(world) == 0
    assert await renew(world, held)


async def test_a_settled_job_leaves_no_row(world: World) -> None:
    await world.queue(await world.check())
    [held] = await world.claim()
    await world.submit(a_result(held))
    assert await world.rows(select(job)) == []


async def test_a_paused_check_runs_no_more_when_its_agent_is_lost_or_gives_back(
    world: World,
) -> None:
    lost, given_back = await world.check(), await world.check()
    for check_id in (lost, given_back):
        await world.change(lambda c, now, one=check_id: plan(c, one, now_ms=now))
    await world.change(lambda c, now: tick(c, now_ms=now))
    held = {job.check_id: job for job in await world.claim()}
    await world.database.write(lambda c: c.execute(update(check_).values(activated=False)))
    await give_back(world, held[given_back])
    world.time.pass_s(61)
    await reap_now(world)
    assert await ends_of(world, lost) == [("FINAL", "MISSED", "paused")]
    assert await ends_of(world, given_back) == [("FINAL", "MISSED", "paused")]
