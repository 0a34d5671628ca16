"""Heavy work beside the event loop."""

import asyncio
import threading

import pytest

from runners.execute import ThreadWorkers


async def test_the_loop_goes_on_while_the_work_is_done() -> None:
    aside = ThreadWorkers()
    may_end = threading.Event()
    work = asyncio.create_task(aside.run(lambda: may_end.wait(60)))
    await asyncio.sleep(0)  # the loop turns: the work does not hold it
    assert not work.done()
    may_end.set()
    assert await work
    aside.close()


async def test_what_the_work_raises_is_raised_here() -> None:
    aside = ThreadWorkers()
    with pytest.raises(ValueError, match="'x'"):
        await aside.run(lambda: int("x"))
    aside.close()
