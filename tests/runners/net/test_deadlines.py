"""A time limit ends its own block, in time, and nothing else."""

import asyncio

import pytest

from runners.net.deadlines import Deadlines, TimeLimit


@pytest.fixture
def deadlines() -> Deadlines:
    return Deadlines()


async def test_a_block_that_takes_too_long_ends_with_a_timeout(deadlines: Deadlines) -> None:
    limit = deadlines.within(0.01)
    with pytest.raises(TimeoutError), limit:
        await asyncio.sleep(3600)
    assert limit.expired


async def test_a_block_that_is_quick_enough_is_left_alone(deadlines: Deadlines) -> None:
    with deadlines.within(3600) as limit:
        await asyncio.sleep(0)
    assert not limit.expired
    assert repr(deadlines) == "Deadlines(0 open)"


async def test_the_task_goes_on_after_its_limit(deadlines: Deadlines) -> None:
    with pytest.raises(TimeoutError), deadlines.within(0):
        await asyncio.sleep(3600)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_shorter_limit_is_kept_while_longer_ones_run(deadlines: Deadlines) -> None:
    async def wait(timeout_s: float) -> None:
        with deadlines.within(timeout_s):
            await asyncio.sleep(3600)

    longer = [asyncio.create_task(wait(timeout_s)) for timeout_s in (3600, 1800)]
    for timeout_s in (0.05, 0.01, 0.02):
        with pytest.raises(TimeoutError):
            await wait(timeout_s)
    assert repr(deadlines) == "Deadlines(2 open)"
    for task in longer:
        task.cancel()
    await asyncio.wait(longer)


async def test_the_inner_of_two_limits_ends_the_inner_block_only(deadlines: Deadlines) -> None:
    with deadlines.within(3600) as outer:
        with pytest.raises(TimeoutError), deadlines.within(0.01):
            await asyncio.sleep(3600)
        await asyncio.sleep(0)
    assert not outer.expired


async def test_the_outer_of_two_limits_ends_both_blocks(deadlines: Deadlines) -> None:
    inner = deadlines.within(3600)
    with pytest.raises(TimeoutError), deadlines.within(0.01), inner:
        await asyncio.sleep(3600)
    assert not inner.expired


async def test_a_cancellation_from_outside_stays_one(deadlines: Deadlines) -> None:
    limits: list[TimeLimit] = []

    async def wait() -> None:
        with deadlines.within(3600) as limit:
            limits.append(limit)
            await asyncio.sleep(3600)

    task = asyncio.create_task(wait(), name="wait")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not limits[0].expired
    assert repr(deadlines) == "Deadlines(0 open)"


async def test_a_cancellation_that_meets_the_limit_wins(deadlines: Deadlines) -> None:
    async def wait() -> None:
        with deadlines.within(3600) as limit:
            try:
                await asyncio.sleep(3600)
            finally:
                limit.expire()
                deadlines.forget(limit)

    task = asyncio.create_task(wait(), name="wait")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_block_passes(deadlines: Deadlines) -> None:
    with pytest.raises(ZeroDivisionError), deadlines.within(3600):
        raise ZeroDivisionError
