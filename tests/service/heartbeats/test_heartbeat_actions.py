from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from contract.result import Failure, FailureKind, Status
from service.db.tables.checks import check_, heartbeat, heartbeat_correction, ping, schedule
from service.heartbeats.actions import (
    ReceivedPing,
    count_corrected,
    judge_now,
    reset_timer,
    take_pings,
    watch,
)
from service.heartbeats.model import TimerState
from tests.builders.world import World, a_result, an_outcome


def a_ping(token: str = "nightly", **changes: Any) -> ReceivedPing:
    fields: dict[str, Any] = {
        "ping_id": None,
        "token": token,
        "age_s": 0,
        "method": "GET",
        "source": "https://cron.example",
        "user_agent": "curl/8",
    }
    return ReceivedPing(**{**fields, **changes})


async def take(world: World, *pings: ReceivedPing) -> int:
    return await world.change(lambda c, now: take_pings(c, pings, now_ms=now))


async def timer(world: World) -> tuple[int | None, int | None]:
    [row] = await world.rows(select(heartbeat))
    return row.timer_started_ms, row.last_ping_ms


async def reset(world: World, check_id: str) -> None:
    await world.change(lambda c, now: reset_timer(c, check_id, now_ms=now))


async def states(world: World) -> list[str]:
    rows = await world.rows(select(ping.c.state).order_by(ping.c.received_ms, ping.c.id))
    return [row.state for row in rows]


async def state_of(world: World, check_id: str) -> TimerState:
    return await world.change(lambda c, now: judge_now(c, check_id, now_ms=now))


async def fail(world: World, check_id: str, claim_id: str) -> None:
    await world.queue(check_id)
    [job] = await world.claim(claim_id)
    overdue = Failure(kind=FailureKind.OVERDUE, message="no ping")
    await world.submit(a_result(job, outcome=an_outcome(Status.FAILED, failure=overdue)))


async def test_the_first_ping_starts_the_timer_and_each_one_resets_it(world: World) -> None:
    await world.heartbeat("nightly")
    assert await timer(world) == (None, None)
    await take(world, a_ping())
    start = world.time.now
    world.time.pass_s(60)
    await take(world, a_ping())
    assert await timer(world) == (start, start + 60_000)


async def test_pings_leave_a_history_with_their_state_and_origin(world: World) -> None:
    await world.heartbeat("nightly", period_s=60, grace_s=30)
    for wait_s in (0, 10, 60, 80, 100):
        world.time.pass_s(wait_s)
        await take(world, a_ping())
    assert await states(world) == ["RECEIVED", "EARLY", "RECEIVED", "GRACE", "LATE"]
    row = (await world.rows(select(ping)))[0]
    assert (row.method, row.source, row.user_agent) == ("GET", "https://cron.example", "curl/8")


async def test_a_relayed_ping_counts_from_when_it_was_received(world: World) -> None:
    await world.heartbeat("nightly")
    await take(world, a_ping(ping_id="p1", age_s=40))
    assert await timer(world) == (world.time.now - 40_000, world.time.now - 40_000)


async def test_a_ping_that_is_relayed_twice_counts_once(world: World) -> None:
    await world.heartbeat("nightly")
    await take(world, a_ping(ping_id="p1", age_s=40))
    before = await timer(world)
    world.time.pass_s(100)
    assert await take(world, a_ping(ping_id="p1", age_s=40)) == 1
    assert await timer(world) == before
    assert len(await states(world)) == 1


async def test_a_ping_that_was_relayed_late_does_not_turn_the_timer_back(world: World) -> None:
    await world.heartbeat("nightly")
    await take(world, a_ping())
    newest = world.time.now
    world.time.pass_s(10)
    await take(world, a_ping(ping_id="old", age_s=500))
    assert await timer(world) == (newest - 490_000, newest)


async def test_a_ping_with_an_unknown_token_changes_nothing(world: World) -> None:
    await world.heartbeat("nightly")
    assert await take(world, a_ping("guessed")) == 0
    assert await states(world) == []


async def test_a_deactivated_check_takes_no_pings(world: World) -> None:
    await world.heartbeat("nightly")
    await world.database.write(lambda c: c.execute(update(check_).values(activated=False)))
    assert await take(world, a_ping()) == 1
    assert await timer(world) == (None, None)


async def test_resetting_the_timer_waits_for_a_first_ping_again(world: World) -> None:
    check_id = await world.heartbeat("nightly")
    await take(world, a_ping())
    await reset(world, check_id)
    assert await timer(world) == (None, None)


async def test_a_ping_from_before_a_reset_does_not_start_the_timer(world: World) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(1_000)
    await reset(world, check_id)
    world.time.pass_s(10)
    planned = await world.rows(select(schedule.c.next_run_ms))
    assert await take(world, a_ping(ping_id="cut-off", age_s=500)) == 1
    assert await timer(world) == (None, None)
    assert await state_of(world, check_id) is TimerState.NEVER_PINGED
    assert await world.rows(select(schedule.c.next_run_ms)) == planned
    assert await states(world) == ["RECEIVED", "RECEIVED"]
    await take(world, a_ping(ping_id="since", age_s=5))
    assert await timer(world) == (world.time.now - 5_000, world.time.now - 5_000)


async def test_a_ping_from_before_a_reset_moves_no_timer_and_corrects_nothing(
    world: World,
) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(1_000)
    await fail(world, check_id, "claim-1")
    world.time.pass_s(10)
    await reset(world, check_id)
    world.time.pass_s(10)
    await take(world, a_ping())
    before = await timer(world)
    await take(world, a_ping(ping_id="cut-off", age_s=25))
    assert await timer(world) == before
    assert await corrected(world, check_id) == 0
    assert await states(world) == ["RECEIVED", "RECEIVED", "FAILING", "RECEIVED"]


async def test_a_silence_is_marked_once_and_ends_with_the_next_ping(world: World) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    for turn in range(2):
        world.time.pass_s(200)
        await fail(world, check_id, f"claim-{turn}")
    world.time.pass_s(5)
    await take(world, a_ping())
    assert await states(world) == ["RECEIVED", "FAILING", "RECEIVED"]


async def test_a_check_is_watched_under_its_newest_token_only(world: World) -> None:
    check_id = await world.heartbeat("nightly")
    await world.change(lambda c, _now: watch(c, check_id, "weekly"))
    assert await take(world, a_ping("nightly"), a_ping("weekly")) == 1


async def test_two_checks_cannot_share_a_token(world: World) -> None:
    await world.heartbeat("nightly")
    other = await world.check()
    with pytest.raises(IntegrityError):
        await world.change(lambda c, _now: watch(c, other, "nightly"))


async def corrected(world: World, check_id: str) -> int:
    window = (0, world.time.now + 1)
    return await world.database.read(lambda c: count_corrected(c, check_id, window=window))


async def test_a_ping_that_was_cut_off_takes_back_the_failure_that_it_disproves(
    world: World,
) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(100)
    await fail(world, check_id, "claim-1")
    world.time.pass_s(10)
    await take(world, a_ping(ping_id="cut-off", age_s=50))
    assert await states(world) == ["RECEIVED", "RECEIVED"]
    assert await corrected(world, check_id) == 1
    assert await timer(world) == (world.time.now - 110_000, world.time.now - 50_000)


async def test_a_failure_that_a_ping_came_too_late_for_stays(world: World) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(100)
    await fail(world, check_id, "claim-1")
    world.time.pass_s(60)
    await take(world, a_ping(ping_id="cut-off", age_s=50))
    assert await states(world) == ["RECEIVED", "FAILING", "RECEIVED"]
    assert await corrected(world, check_id) == 0


async def test_pings_between_others_give_those_after_them_their_state(world: World) -> None:
    await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(120)
    await take(world, a_ping())
    assert await states(world) == ["RECEIVED", "LATE"]
    await take(world, a_ping(ping_id="cut-off", age_s=60))
    assert await states(world) == ["RECEIVED", "RECEIVED", "RECEIVED"]


async def test_a_silence_after_a_ping_that_was_cut_off_is_marked_at_its_first_failure(
    world: World,
) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    for turn, wait_s in enumerate((100, 60)):
        world.time.pass_s(wait_s)
        await fail(world, check_id, f"claim-{turn}")
    noticed_ms = world.time.now
    await take(world, a_ping(ping_id="cut-off", age_s=100))
    assert await states(world) == ["RECEIVED", "RECEIVED", "FAILING"]
    rows = await world.rows(select(ping.c.received_ms).where(ping.c.state == "FAILING"))
    assert [row.received_ms for row in rows] == [noticed_ms]
    assert await corrected(world, check_id) == 1


async def test_a_failure_is_corrected_once_however_many_pings_disprove_it(world: World) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(100)
    await fail(world, check_id, "claim-1")
    for age_s in (20, 40):
        await take(world, a_ping(ping_id=f"cut-off-{age_s}", age_s=age_s))
    assert len(await world.rows(select(heartbeat_correction))) == 1


async def test_a_ping_from_before_the_first_one_is_the_first_then(world: World) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    await take(world, a_ping())
    world.time.pass_s(1_000)
    await reset(world, check_id)
    world.time.pass_s(20)
    await take(world, a_ping())
    await take(world, a_ping(ping_id="cut-off", age_s=10))
    assert await states(world) == ["RECEIVED", "RECEIVED", "EARLY"]


async def test_a_heartbeat_says_how_it_stands(world: World) -> None:
    check_id = await world.heartbeat("nightly", period_s=60, grace_s=30)
    assert await state_of(world, check_id) is TimerState.NEVER_PINGED
    await take(world, a_ping())
    assert await state_of(world, check_id) is TimerState.RECEIVED
    world.time.pass_s(100)
    assert await state_of(world, check_id) is TimerState.LATE
    await fail(world, check_id, "claim-1")
    assert await state_of(world, check_id) is TimerState.FAILING
    await reset(world, check_id)
    assert await state_of(world, check_id) is TimerState.NEVER_PINGED
