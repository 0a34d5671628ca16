"""Work in a thread is over when whoever waits for it goes on."""

import asyncio
import threading

import pytest

from runners.scripting.playwright.warm_pool import run_to_completion


async def test_the_answer_comes_back() -> None:
    assert await run_to_completion(divmod, 7, 2) == (3, 1)


async def test_whoever_is_cancelled_goes_on_when_the_thread_has_returned() -> None:
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        may_end.wait()
        ended.set()

    waiting = asyncio.create_task(run_to_completion(work))
    await asyncio.to_thread(began.wait)
    waiting.cancel()
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
