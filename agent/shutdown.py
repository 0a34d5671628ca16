"""Stops the agent in three stages: drain, cancel, exit."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import structlog

from agent.lifecycle import Lifecycle
from agent.running import RunningJobs
from contract.agent_api import ReleaseReason

EXIT_AT_ONCE: Final = 1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

log = structlog.get_logger(__name__)


def exit_at_once() -> None:
    """End the process; whatever it held runs out of its lease."""
    os._exit(EXIT_AT_ONCE)


@contextmanager
def on_signals(lifecycle: Lifecycle) -> Iterator[None]:
    """While the block lasts, each SIGTERM and each SIGINT is a request to stop."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, lifecycle.request_stop)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


class Uploading(Protocol):
    """Files on their way."""

    def let_go(self) -> None:
        """Leave what is not uploaded yet."""


async def end_what_outlasts(
    lifecycle: Lifecycle, running: RunningJobs, uploads: Uploading, *, grace_s: float
) -> None:
    """Once draining: stop what still runs after the grace, or at the second request to stop."""
    await lifecycle.draining.wait()
    try:
        await asyncio.wait_for(lifecycle.cancelling.wait(), grace_s)
    except TimeoutError:
        log.warning("agent.grace_is_over", running=len(running), grace_s=grace_s)
    running.stop_all(ReleaseReason.DRAINING)
    uploads.let_go()
