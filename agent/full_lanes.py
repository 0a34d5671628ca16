"""Says in the log when a lane is full for long: what is due meanwhile waits, and may be missed."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from agent.running import RunningJobs
from contract.checks import Lane

TELL_AFTER_S: Final = 60.0
"""Most checks are due again after a minute or more; uptime checks never hold a slot for so long."""
_MOST_CHECKS: Final = 10
_SETTINGS: Final = {Lane.MAIN: "JOB_CONCURRENCY", Lane.UPTIME: "UPTIME_CONCURRENCY"}

log = structlog.get_logger(__name__)


@contextmanager
def told_if_full(
    on: Lane, running: RunningJobs, *, after_s: float = TELL_AFTER_S
) -> Iterator[None]:
    """Around the wait for a free slot: two lines, when it is long and when it is over."""
    began_at = time.monotonic()
    timer = asyncio.get_running_loop().call_later(after_s, _tell, on, running, after_s)
    try:
        yield
        took_s = time.monotonic() - began_at
        if took_s >= after_s:
            log.info("slots.free_again", lane=on.value, after_s=round(took_s))
    finally:
        timer.cancel()


def _tell(on: Lane, running: RunningJobs, for_s: float) -> None:
    """Which checks hold the slots, the longest first, and the setting that gives more."""
    held = [run for run in running if run.lane is on]
    log.warning(
        "slots.full",
        lane=on.value,
        slots=len(held),
        for_s=round(for_s),
        checks=[run.job.check_id for run in held[:_MOST_CHECKS]],
        setting=_SETTINGS[on],
    )
