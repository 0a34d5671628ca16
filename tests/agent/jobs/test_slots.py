"""Slots: a bound per lane, and claims that ask for many at once."""

import asyncio
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from agent.jobs.dispatcher import Slots
from contract.checks import Lane
from tests.builders.agents import metrics
from tests.builders.patience import LONG_S


def slots(counts: Mapping[Lane, int], *, linger_s: float = 0.01) -> Slots:
    return Slots(counts, linger_s=linger_s, metrics=metrics())


@given(total=st.integers(1, 20), steps=st.lists(st.booleans(), max_size=100))
def test_no_more_are_taken_than_there_are(total: int, steps: list[bool]) -> None:
    lane_slots = slots({Lane.UPTIME: total})
    taken = 0
    for takes in steps:
        if takes:
            taken += lane_slots.take(Lane.UPTIME)
        elif taken:
            lane_slots.give_back(Lane.UPTIME)
            taken -= 1
        assert taken <= total
        assert lane_slots.free(Lane.UPTIME) == total - taken


def test_a_lane_without_slots_is_not_served() -> None:
    assert slots({Lane.UPTIME: 2, Lane.MAIN: 0}).lanes == (Lane.UPTIME,)


def test_what_is_free_is_shown_before_the_first_job() -> None:
    shown = metrics()
    Slots({Lane.UPTIME: 256, Lane.MAIN: 2}, linger_s=1, metrics=shown)
    told = shown.text().decode()
    assert 'slots_free{lane="uptime"} 256' in told
    assert 'slots_free{lane="main"} 2' in told


async def test_free_slots_are_asked_for_at_once() -> None:
    assert await slots({Lane.UPTIME: 8}).wait_for_free(Lane.UPTIME) == 8


async def test_a_full_lane_waits_for_a_slot() -> None:
    lane_slots = slots({Lane.UPTIME: 1})
    lane_slots.take(Lane.UPTIME)
    waiting = asyncio.create_task(lane_slots.wait_for_free(Lane.UPTIME))
    await asyncio.sleep(0.03)
    assert not waiting.done()
    lane_slots.give_back(Lane.UPTIME)
    assert await waiting == 1


async def test_slots_that_free_up_together_are_asked_for_together() -> None:
    lane_slots = slots({Lane.UPTIME: 100}, linger_s=3600)
    while lane_slots.take(Lane.UPTIME):
        pass
    waiting = asyncio.create_task(lane_slots.wait_for_free(Lane.UPTIME))
    for _ in range(25):
        await asyncio.sleep(0)
        assert not waiting.done()
        lane_slots.give_back(Lane.UPTIME)
    assert await asyncio.wait_for(waiting, LONG_S) == 25


async def test_one_free_slot_does_not_wait_for_ever() -> None:
    lane_slots = slots({Lane.UPTIME: 100}, linger_s=0.01)
    while lane_slots.take(Lane.UPTIME):
        pass
    lane_slots.give_back(Lane.UPTIME)
    assert await asyncio.wait_for(lane_slots.wait_for_free(Lane.UPTIME), LONG_S) == 1


async def test_a_wait_that_is_cancelled_as_slots_come_free_is_cancelled() -> None:
    slots = Slots({Lane.UPTIME: 8}, linger_s=60, metrics=metrics())
    for _ in range(7):
        slots.take(Lane.UPTIME)
    waiting = asyncio.create_task(slots.wait_for_free(Lane.UPTIME))
    await asyncio.sleep(0)
    slots.give_back(Lane.UPTIME)
    waiting.cancel()
    await asyncio.wait({waiting}, timeout=30)
    assert waiting.cancelled()
