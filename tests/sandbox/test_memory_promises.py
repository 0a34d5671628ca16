"""Memory is promised once, and what is used is promised no more."""

import asyncio

import pytest

from sandbox.memory import MemoryReservations, TooLittleMemoryError
from tests.builders.patience import LONG_S


async def test_what_is_promised_to_one_is_not_there_for_another() -> None:
    promises = MemoryReservations(lambda: 500.0)
    await promises.reserve(300, wait_s=0)
    with pytest.raises(TooLittleMemoryError, match=r"200 MB of memory free .* may need 300"):
        await promises.reserve(300, wait_s=0)


async def test_of_two_that_look_at_once_one_gets_it() -> None:
    promises = MemoryReservations(lambda: 500.0)
    both = (promises.reserve(300, wait_s=0) for _ in range(2))
    got = await asyncio.gather(*both, return_exceptions=True)
    assert [isinstance(one, TooLittleMemoryError) for one in got] == [False, True]


async def test_what_is_used_is_not_counted_twice() -> None:
    free = [500.0]
    promises = MemoryReservations(lambda: free[0])
    promise = await promises.reserve(300, wait_s=0)
    free[0] -= 250
    promise.record_use(250)
    assert promises.free_mb == 200
    promise.record_use(100)
    assert promises.free_mb == 200, "it may come back to what it used before"
    promise.record_use(900)
    assert promises.free_mb == 250


async def test_an_ended_promise_holds_nothing() -> None:
    promises = MemoryReservations(lambda: 500.0)
    promise = await promises.reserve(300, wait_s=0)
    for _ in range(2):
        promise.release()
    assert promises.free_mb == 500


async def test_whoever_waits_gets_what_comes_free() -> None:
    promises = MemoryReservations(lambda: 500.0)
    first = await promises.reserve(300, wait_s=0)
    second = asyncio.create_task(promises.reserve(300, wait_s=LONG_S))
    await asyncio.sleep(0)
    first.release()
    await second
    assert promises.free_mb == 200


async def test_nothing_is_always_there() -> None:
    promises = MemoryReservations(lambda: -5.0)
    await promises.reserve(0, wait_s=0)


async def test_what_waits_holds_nothing_until_its_job_comes() -> None:
    free = [500.0]
    promises = MemoryReservations(lambda: free[0])
    waiting = await promises.reserve(0, wait_s=0)
    assert promises.free_mb == 500
    free[0] -= 100
    waiting.record_use(100)
    await waiting.grow(300, wait_s=0)
    assert promises.free_mb == 200, "it uses 100, and 200 are promised beside these"


async def test_what_waited_is_refused_when_there_is_no_room_for_its_job() -> None:
    promises = MemoryReservations(lambda: 150.0)
    waiting = await promises.reserve(0, wait_s=0)
    waiting.record_use(100)
    with pytest.raises(TooLittleMemoryError, match=r"150 MB .* may need 200"):
        await waiting.grow(300, wait_s=0)
    assert promises.free_mb == 150
