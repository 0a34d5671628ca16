"""Blames a test for what it leaves open: sockets, transports, processes, files, and tasks.

Else the garbage collector closes it at a later time, and its warning fails whichever test runs
then. Each test costs about a millisecond for it.
"""

import asyncio
import gc
import sys
from asyncio import runners
from collections.abc import Generator

import pytest

_ENDING_S = 0.1
"""A task that was cancelled needs some turns of the event loop to end."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """After its fixtures have ended: fail the test if the collector finds something open."""
    with pytest.MonkeyPatch.context() as patch:
        left = _note_tasks(patch)
        yield
        left += _collect(item, patch)
    if left:
        pytest.fail("the test left open: " + ", ".join(sorted(left)), pytrace=False)


def _note_tasks(patch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the tasks which a runner has to cancel, as it ends."""
    left: list[str] = []
    cancel = runners._cancel_all_tasks

    def note(loop: asyncio.AbstractEventLoop) -> None:
        if tasks := asyncio.all_tasks(loop):
            _, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=_ENDING_S))
            left.extend(f"task {one.get_coro()!r}" for one in pending)
        cancel(loop)

    patch.setattr(runners, "_cancel_all_tasks", note)
    return left


def _collect(item: pytest.Item, patch: pytest.MonkeyPatch) -> list[str]:
    """Collect garbage, and return the warnings of what was not closed.

    What outlives it belongs to a wider fixture or to the process: later rounds leave it out.
    """
    left: list[str] = []
    patch.setattr(sys, "unraisablehook", lambda found: left.append(str(found.exc_value)))
    if isinstance(item, pytest.Function):
        item.funcargs.clear()
    gc.collect()
    gc.freeze()
    return left
