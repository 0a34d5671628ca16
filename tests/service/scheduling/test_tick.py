from typing import Any

from sqlalchemy import Row, select, update
from structlog.testing import capture_logs

from contract.job import RunSource
from service.db.tables.checks import check_, schedule
from service.db.tables.runs import job
from service.heartbeats.actions import ReceivedPing, take_pings
from service.jobs.model import JobsDue
from service.scheduling.actions import plan
from service.scheduling.rules import MOST_SKIPPED
from service.scheduling.tick import GROUP, Scheduler, tick
from tests.builders.world import World

MINUTE_S = 60


async def planned(world: World, **columns: Any) -> str:
    check_id = await world.check(**columns)
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    return check_id


async def tick_now(world: World) -> int:
    return (await world.change(lambda c, now: tick(c, now_ms=now))).checks


async def queued(world: World) -> list[Row[Any]]:
    return await world.rows(select(job).order_by(job.c.id))


async def test_a_new_check_runs_at_once_and_then_by_its_phase(world: World) -> None:
    world.time.pass_s(61)  # off the check's phase, which is the full ten minutes
    check_id = await planned(world, frequency=10, frequency_offset=1)
    await tick_now(world)
    first = (await queued(world))[0]
    assert first.scheduled_ms == world.time.now
    assert first.source == RunSource.SCHEDULER
    schedule = await world.schedule_of(check_id)
    assert schedule is not None
    assert schedule.next_run_ms % 600_000 == 0
    assert 0 < schedule.next_run_ms - world.time.now < 600_000


async def test_nothing_is_queued_before_it_is_due(world: World) -> None:
    await planned(world, frequency=1)
    await tick_now(world)
    world.time.pass_s(59)
    assert await tick_now(world) == 0
    world.time.pass_s(1)
    assert await tick_now(world) == 1
    assert len(await queued(world)) == 2


async def test_a_repeated_tick_queues_nothing_twice(world: World) -> None:
    await planned(world)
    await tick_now(world)
    assert await tick_now(world) == 0
    assert len(await queued(world)) == 1


async def test_a_tick_that_forgot_the_last_one_queues_nothing_twice(world: World) -> None:
    await planned(world)
    await tick_now(world)
    due_ms = world.time.now
    await world.database.write(lambda c: c.execute(update(schedule).values(next_run_ms=due_ms)))
    assert await tick_now(world) == 1
    assert len(await queued(world)) == 1


async def test_due_times_while_the_service_was_away_are_recorded_as_missed(world: World) -> None:
    check_id = await planned(world, frequency=1)
    await tick_now(world)
    first_ms = (await queued(world))[0].scheduled_ms
    world.time.pass_s(4 * MINUTE_S + 7)
    ticked = await world.change(lambda c, now: tick(c, now_ms=now))
    newest = (await queued(world))[1]
    skipped = [first_ms + place * 60_000 for place in (1, 2, 3)]
    assert newest.scheduled_ms == first_ms + 4 * 60_000
    rows = await world.results(check_id)
    assert sorted(row.scheduled_ms for row in rows) == skipped
    assert {(row.status, row.cause, row.due_times) for row in rows} == {
        ("MISSED", "service_down", None)
    }
    assert len({row.run_id for row in rows} | {newest.id}) == 4
    assert (ticked.skipped, ticked.away_ms) == (3, 187_000)
    await tick_now(world)
    assert len(await world.results(check_id)) == 3


async def test_many_skipped_due_times_share_a_record_with_their_count_and_span(
    world: World,
) -> None:
    check_id = await planned(world, frequency=1)
    await tick_now(world)
    first_ms = (await queued(world))[0].scheduled_ms + 60_000
    world.time.pass_s(100 * MINUTE_S)
    await tick_now(world)
    rows = sorted(await world.results(check_id), key=lambda row: row.scheduled_ms)
    assert len(rows) == MOST_SKIPPED + 1
    assert sum(row.due_times or 1 for row in rows) == 99
    older = rows[0]
    assert (older.scheduled_ms, older.due_times) == (first_ms, 99 - MOST_SKIPPED)
    assert older.stopped_ms == rows[1].scheduled_ms - 60_000


async def test_skipped_due_times_take_their_turns_around_the_locations(world: World) -> None:
    attic = await world.location("attic")
    check_id = await planned(world, frequency=1, locations=(world.location_id, attic))
    await tick_now(world)
    world.time.pass_s(3 * MINUTE_S)
    await tick_now(world)
    rows = sorted(await world.results(check_id), key=lambda row: row.scheduled_ms)
    assert [row.location for row in rows] == ["attic", "cellar"]
    assert (await queued(world))[-1].location_id == attic


async def test_a_check_created_just_before_its_phase_has_missed_nothing(world: World) -> None:
    world.time.pass_s(599.9)
    check_id = await planned(world, frequency=10, frequency_offset=1)
    world.time.pass_s(0.2)
    await tick_now(world)
    assert await world.results(check_id) == []


async def test_the_scheduler_logs_once_that_it_caught_up(world: World) -> None:
    for _ in range(GROUP + 5):
        await planned(world, frequency=1)
    scheduler = Scheduler(world.clock)
    while await scheduler.act(world.database):
        pass
    world.time.pass_s(3 * MINUTE_S)
    with capture_logs() as logs:
        while await scheduler.act(world.database):
            pass
    found = [one for one in logs if one["event"] == "schedule.caught_up"]
    assert [(one["skipped"], one["away_s"]) for one in found] == [(2 * (GROUP + 5), 120)]


async def test_after_hours_away_a_check_runs_once(world: World) -> None:
    check_id = await planned(world, frequency=1)
    await tick_now(world)
    world.time.pass_s(3 * 3600 + 7)
    await tick_now(world)
    await tick_now(world)
    jobs = await queued(world)
    assert len(jobs) == 2
    assert jobs[1].scheduled_ms == world.time.now - 7000
    schedule = await world.schedule_of(check_id)
    assert schedule is not None
    assert schedule.next_run_ms == jobs[1].scheduled_ms + 60_000


async def test_runs_take_turns_around_the_locations(world: World) -> None:
    attic = await world.location("attic")
    await planned(world, frequency=1, locations=(world.location_id, attic))
    for _ in range(3):
        await tick_now(world)
        world.time.pass_s(MINUTE_S)
    places = [row.location_id for row in await queued(world)]
    assert places == [world.location_id, attic, world.location_id]


async def test_a_parallel_check_runs_everywhere_for_the_same_time(world: World) -> None:
    attic = await world.location("attic")
    await planned(world, run_parallel=True, locations=(world.location_id, attic))
    await tick_now(world)
    jobs = await queued(world)
    assert [row.location_id for row in jobs] == [world.location_id, attic]
    assert len({row.scheduled_ms for row in jobs}) == 1


async def test_a_run_waits_until_the_next_one_is_due(world: World) -> None:
    await planned(world, frequency=1)
    await tick_now(world)
    assert (await queued(world))[0].expires_ms == world.time.now + 60_000


async def test_a_run_waits_six_minutes_at_most(world: World) -> None:
    await planned(world, frequency=60)
    await tick_now(world)
    assert (await queued(world))[0].expires_ms == world.time.now + 360_000


async def test_a_check_that_is_not_active_is_not_planned(world: World) -> None:
    check_id = await planned(world, activated=False)
    assert await world.schedule_of(check_id) is None


async def test_a_check_that_was_deactivated_runs_no_more_and_its_queued_run_is_missed(
    world: World,
) -> None:
    check_id = await planned(world)
    await tick_now(world)
    off = update(check_).values(activated=False)
    await world.database.write(lambda c: c.execute(off))
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    assert await queued(world) == []
    assert [(row.status, row.cause) for row in await world.results(check_id)] == [
        ("MISSED", "paused")
    ]
    world.time.pass_s(3600)
    assert await tick_now(world) == 0


async def test_a_change_of_frequency_moves_the_next_run_and_adds_none(world: World) -> None:
    check_id = await planned(world, frequency=10)
    await tick_now(world)
    world.time.pass_s(30)
    await world.database.write(lambda c: c.execute(update(check_).values(frequency=1)))
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    assert await tick_now(world) == 0
    schedule = await world.schedule_of(check_id)
    assert schedule is not None
    assert schedule.next_run_ms == world.time.now + 30_000


async def test_a_change_of_something_else_leaves_the_plan_alone(world: World) -> None:
    check_id = await planned(world, frequency=10)
    await tick_now(world)
    before = await world.schedule_of(check_id)
    world.time.pass_s(100)
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    assert await world.schedule_of(check_id) == before


async def test_a_tick_takes_a_bounded_group_and_says_that_there_may_be_more(world: World) -> None:
    for _ in range(GROUP + 5):
        await planned(world)
    assert await tick_now(world) == GROUP
    assert await tick_now(world) == 5
    assert len(await queued(world)) == GROUP + 5


async def test_waiting_agents_hear_of_a_due_run(world: World) -> None:
    heard: list[JobsDue] = []
    world.database.listen(JobsDue, heard.append)
    await planned(world)
    await tick_now(world)
    assert heard == [JobsDue(world.location_id, world.time.now)]


async def test_a_heartbeat_has_no_runs_before_its_first_ping(world: World) -> None:
    check_id = await world.heartbeat("nightly")
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    for _ in range(2):
        assert await tick_now(world) == 1
        world.time.pass_s(3_600)  # nor missed ones, when the service was away
    assert await queued(world) == []
    assert await world.results(check_id) == []
    first = ReceivedPing(
        ping_id=None, token="nightly", age_s=0, method="GET", source="", user_agent=""
    )
    await world.change(lambda c, now: take_pings(c, [first], now_ms=now))
    await tick_now(world)  # at once, though its next run would be due in ten minutes
    assert [one.check_id for one in await queued(world)] == [check_id]
