from service.scheduling.actions import plan
from service.scheduling.tick import ClockWatch, tick
from tests.builders.world import World, a_result

HOUR_S = 3600


async def tick_now(world: World) -> None:
    await world.change(lambda c, now: tick(c, now_ms=now))


async def test_a_clock_that_is_set_back_stops_no_check(world: World) -> None:
    setbacks = ClockWatch(world.clock)
    await world.database.write(setbacks.reschedule_if_set_back)
    check_id = await world.check(frequency=1)
    world.time.pass_s(HOUR_S)
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    await tick_now(world)
    await world.database.write(setbacks.reschedule_if_set_back)
    world.time.pass_s(-HOUR_S)
    assert await world.claim() == []
    assert await world.database.write(setbacks.reschedule_if_set_back) == 2
    [job] = await world.claim("claim-2")
    await world.submit(a_result(job))
    await tick_now(world)
    assert len(await world.claim("claim-3")) == 1


async def test_a_lease_of_the_old_time_runs_out_in_the_new_one(world: World) -> None:
    setbacks = ClockWatch(world.clock)
    await world.database.write(setbacks.reschedule_if_set_back)
    world.time.pass_s(HOUR_S)
    await world.queue(await world.check())
    await world.claim()
    await world.database.write(setbacks.reschedule_if_set_back)
    world.time.pass_s(-HOUR_S)
    assert await world.database.write(setbacks.reschedule_if_set_back) == 1
    assert await world.database.write(setbacks.reschedule_if_set_back) == 0


async def test_a_clock_that_goes_on_moves_nothing(world: World) -> None:
    setbacks = ClockWatch(world.clock)
    check_id = await world.check(frequency=1)
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    for _ in range(3):
        await tick_now(world)
        assert await world.database.write(setbacks.reschedule_if_set_back) == 0
        world.time.pass_s(61)
