import pytest
from sqlalchemy import delete, select, update
from structlog.testing import capture_logs

from contract.agent_api import ReleaseReason
from service.clock import Gap, GapWatch
from service.db.tables.alerting import check_alert, location_alert
from service.db.tables.checks import check_
from service.db.tables.locations import agent, location_outage, location_sample
from service.db.tables.runs import job
from service.jobs.settle import Release, expire_jobs, release, release_held_by
from service.locations.health import LocationWatch
from service.locations.rules import KEPT_MS
from service.locations.store import begin_outage
from service.scheduling.actions import plan
from service.scheduling.tick import tick
from tests.builders.world import World

TEN_MINUTES_S = 600


class SteadyWatch(GapWatch):
    """Looks all the time, so that it sees no gap."""

    def last_gap(self, now_ms: int) -> Gap:
        if self._gap is not None:
            self._looked_ms = now_ms
        return super().last_gap(now_ms)


@pytest.fixture
async def watch(world: World) -> LocationWatch:
    """It has been running for a while."""
    made = LocationWatch(world.clock, SteadyWatch())
    await world.database.write(made.look)
    world.time.pass_s(200)
    return made


async def planned(world: World, **columns: object) -> str:
    check_id = await world.check(**columns)  # type: ignore[arg-type]  # columns of a check's row
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    return check_id


async def tick_now(world: World) -> None:
    await world.change(lambda c, now: tick(c, now_ms=now))


async def is_out(world: World) -> bool:
    return bool(await world.rows(select(location_outage)))


async def causes(world: World, check_id: str) -> list[tuple[str, str | None]]:
    return [(row.status, row.cause) for row in await world.results(check_id)]


async def test_runs_at_a_location_without_agents_are_missed_at_once_and_pile_up_nowhere(
    world: World, watch: LocationWatch
) -> None:
    await world.agent_seen()
    check_id = await planned(world)
    await tick_now(world)
    world.time.pass_s(TEN_MINUTES_S)
    with capture_logs() as logs:
        await world.database.write(watch.look)
    assert [one["event"] for one in logs] == ["run.given_up", "location.unavailable"]
    assert await causes(world, check_id) == [("MISSED", "no_agent")]
    for missed in (2, 3):
        world.time.pass_s(TEN_MINUTES_S)
        await tick_now(world)
        found = [one for one in await causes(world, check_id) if one[1] != "service_down"]
        assert found == [("MISSED", "no_agent")] * missed
        assert await world.rows(select(job)) == []


async def test_a_location_comes_back_with_its_first_agent(
    world: World, watch: LocationWatch
) -> None:
    await planned(world)
    world.time.pass_s(TEN_MINUTES_S)
    await world.database.write(watch.look)
    assert await is_out(world)
    await world.agent_seen()
    with capture_logs() as logs:
        await world.database.write(watch.look)
    assert [one["event"] for one in logs] == ["location.available"]
    assert not await is_out(world)
    await tick_now(world)
    assert len(await world.claim()) == 1


async def test_what_somebody_asks_for_waits_for_an_agent_even_then(
    world: World, watch: LocationWatch
) -> None:
    check_id = await planned(world)
    world.time.pass_s(TEN_MINUTES_S)
    await world.database.write(watch.look)
    await world.queue(check_id)
    await tick_now(world)
    assert [row.source for row in await world.rows(select(job))] == ["SCHEDULE_NOW"]


async def test_a_location_without_active_checks_needs_no_agent(
    world: World, watch: LocationWatch
) -> None:
    await world.check(activated=False)
    world.time.pass_s(TEN_MINUTES_S)
    await world.database.write(watch.look)
    assert not await is_out(world)


async def test_an_outage_ends_with_the_last_check(world: World, watch: LocationWatch) -> None:
    await planned(world)
    world.time.pass_s(TEN_MINUTES_S)
    await world.database.write(watch.look)
    await world.database.write(lambda c: c.execute(update(check_).values(activated=False)))
    await world.database.write(watch.look)
    assert not await is_out(world)


async def test_after_its_start_the_service_gives_agents_time_to_come_back(world: World) -> None:
    await world.agent_seen()
    await planned(world)
    world.time.pass_s(TEN_MINUTES_S * 2)
    started = LocationWatch(world.clock, SteadyWatch())
    await world.database.write(started.look)
    assert not await is_out(world)
    world.time.pass_s(120)
    await world.database.write(started.look)
    assert await is_out(world)
    again = LocationWatch(world.clock, SteadyWatch())
    await world.database.write(again.look)
    assert await is_out(world)


async def test_the_return_of_one_location_says_nothing_of_another(world: World) -> None:
    attic = await world.location("attic")
    at_both = (world.location_id, attic)
    for location in at_both:
        await planned(world, locations=(location,))
        await world.agent_seen(location=location, agent_id=location)
    world.time.pass_s(TEN_MINUTES_S * 2)
    began_ms = world.time.now
    for gone, other in (at_both, at_both[::-1]):
        await world.database.write(lambda c: c.execute(delete(location_outage)))
        await world.database.write(lambda c, one=gone: begin_outage(c, one, now_ms=began_ms))
        world.time.pass_s(TEN_MINUTES_S)
        started = LocationWatch(world.clock, SteadyWatch())
        await world.agent_seen(location=gone, agent_id=gone)
        assert await world.database.write(started.look) == 1
        assert not await is_out(world), other


async def test_a_clock_that_jumps_makes_no_location_unavailable(world: World) -> None:
    await planned(world)
    watch = LocationWatch(world.clock, GapWatch())
    await world.database.write(watch.look)
    world.time.pass_s(3600)
    await world.database.write(watch.look)
    assert not await is_out(world)


async def test_queues_are_sampled_once_a_minute_and_forgotten_after_fifteen_days(
    world: World, watch: LocationWatch
) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    world.time.pass_s(20)
    await world.queue(check_id)
    world.time.pass_s(40)
    for _ in range(3):
        await world.database.write(watch.look)
    samples = await world.rows(select(location_sample).order_by(location_sample.c.at_ms))
    assert [(row.queue_size, row.oldest_wait_ms) for row in samples] == [(0, 0), (2, 60_000)]
    assert all(row.at_ms % 60_000 == 0 for row in samples)
    world.time.pass_s(KEPT_MS / 1000)
    await world.database.write(watch.look)
    assert len(await world.rows(select(location_sample))) == 1


async def test_samples_go_on_after_the_clock_was_set_back(
    world: World, watch: LocationWatch
) -> None:
    await world.database.write(watch.look)
    world.time.pass_s(-3600)
    await world.database.write(watch.look)
    samples = await world.rows(select(location_sample))
    assert [row.at_ms <= world.time.now for row in samples] == [True]


async def test_what_agents_without_a_key_held_goes_to_others_at_once_and_costs_no_delivery(
    world: World,
) -> None:
    check_id = await world.check()
    for _ in range(2):
        await world.queue(check_id)
    mine = await world.claim("a", agent_id="let-out", slots={"uptime": 1})
    others = await world.claim("b", agent_id="stays", slots={"uptime": 1})
    place = world.location_id
    await world.change(lambda c, now: release_held_by(c, place, ["let-out"], now_ms=now))
    [again] = await world.claim("c", agent_id="stays")
    assert (again.job_id, again.fence) == (mine[0].job_id, mine[0].fence + 1)
    assert again.job_id != others[0].job_id
    [row] = await world.rows(select(job.c.deliveries).where(job.c.id == int(again.job_id)))
    assert row.deliveries == 1


async def test_three_agents_without_room_make_a_run_missed_as_overloaded(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    for turn in range(3):
        [held] = await world.claim(f"claim-{turn}", agent_id=f"agent-{turn}")
        one = Release(int(held.job_id), held.fence, ReleaseReason.NO_ROOM)
        place = world.location_id
        await world.change(lambda c, now: release(c, [one], location_id=place, now_ms=now))  # noqa: B023 - runs within the turn
    assert await causes(world, check_id) == [("MISSED", "overloaded")]


async def test_a_run_whose_agent_died_just_before_the_location_went_is_missed_too(
    world: World, watch: LocationWatch
) -> None:
    await world.agent_seen()
    check_id = await planned(world, frequency=1440)
    await tick_now(world)
    await world.claim()
    await world.database.write(lambda c: c.execute(delete(agent)))
    world.time.pass_s(TEN_MINUTES_S)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    await world.database.write(watch.look)
    assert await causes(world, check_id) == [("MISSED", "no_agent")]


async def test_a_location_without_agents_makes_one_alert_however_many_checks_run_there(
    world: World, watch: LocationWatch
) -> None:
    await world.agent_seen()
    for _ in range(6):
        await planned(world)
    world.time.pass_s(TEN_MINUTES_S)
    out_ms = world.time.now
    await world.database.write(watch.look)
    world.time.pass_s(5)
    await world.database.write(watch.look)
    await world.agent_seen()
    await world.database.write(watch.look)
    rows = await world.rows(select(location_alert).order_by(location_alert.c.created_ms))
    assert [(row.is_recovery, row.since_ms, row.created_ms) for row in rows] == [
        (False, out_ms, out_ms),
        (True, out_ms, out_ms + 5_000),
    ]
    assert (rows[0].location, rows[0].location_name) == ("cellar", "Cellar")
    assert (rows[0].check_count, rows[0].check_names) == (6, ["Front page"] * 4)
    assert await world.rows(select(check_alert)) == []
