"""The memory that kept bodies share: a body beyond it waits, and its run with it.

A body takes memory once it is longer than what results keep of any body. It then takes all that it
may need at once and never a second time, so that no two runs wait for each other.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

DEFAULT_LIMIT_BYTES: Final = 256 * 1024 * 1024
JUDGING_BYTES: Final = 128 * 1024 * 1024
"""What judging one body of 25 MB takes besides: the process's copy, its text, and the text as RE2
reads it. One body is judged at a time."""
MAX_WAIT_S: Final = 20.0
"""How long a body may wait; a job 30 s past its deadline would count as stuck."""

log = structlog.get_logger(__name__)


class BodyMemoryError(RuntimeError):
    """This agent had no memory for the body in time; never the target's fault."""


class BodyMemory:
    """The shared memory; runs get it in the order in which they asked."""

    def __init__(
        self, limit_bytes: int = DEFAULT_LIMIT_BYTES, *, max_wait_s: float = MAX_WAIT_S
    ) -> None:
        self.limit_bytes = limit_bytes
        self.max_wait_s = max_wait_s
        self.held_bytes = 0
        """How much the bodies hold together."""
        self._room_bytes = max(limit_bytes - JUDGING_BYTES, limit_bytes // 2)
        self._waiting: dict[BodyLease, None] = {}
        self._full_since: float | None = None
        """When the first of the waiting began to wait. None: nobody waits."""

    def __repr__(self) -> str:
        return f"BodyMemory(held_bytes={self.held_bytes}, waiting={self.waiting})"

    @property
    def waiting(self) -> int:
        """How many runs wait."""
        return len(self._waiting)

    def take(self, lease: "BodyLease", size_bytes: int) -> bool:
        """Take the memory for a lease; False: it is in the queue for it."""
        if not self._waiting and self._fits(size_bytes):
            self.held_bytes += size_bytes
            return True
        if self._full_since is None:
            self._full_since = time.monotonic()
            limit_mb = self.limit_bytes >> 20
            log.warning("bodies.wait_for_memory", setting="BODY_MEMORY_MB", limit_mb=limit_mb)
        self._waiting[lease] = None
        return False

    def give_back(self, lease: "BodyLease", size_bytes: int) -> None:
        """Give memory back, or leave the queue with 0, and serve those who wait."""
        self._waiting.pop(lease, None)
        self.held_bytes -= size_bytes
        while self._waiting and self._fits((first := next(iter(self._waiting))).wanted_bytes):
            del self._waiting[first]
            self.held_bytes += first.wanted_bytes
            first.grant()
        if not self._waiting and self._full_since is not None:
            waited_s, self._full_since = time.monotonic() - self._full_since, None
            log.info("bodies.wait_no_more", after_s=round(waited_s, 1))

    def _fits(self, size_bytes: int) -> bool:
        return not self.held_bytes or self.held_bytes + size_bytes <= self._room_bytes


class BodyLease:
    """What one run holds of the memory, for one body at a time."""

    def __init__(self, memory: BodyMemory, *, postpone: Callable[[float], None]) -> None:
        """`postpone` moves the run's time limit, since a wait for memory is no time of the run."""
        self._memory = memory
        self.max_wait_s = memory.max_wait_s
        self._postpone = postpone
        self.wanted_bytes = 0
        self.waited_s = 0.0
        """How long the run has waited so far."""
        self.has_given_up = False
        """Whether the wait was too long, so that the run ends."""
        self._held_bytes = 0
        self._resume: Callable[[], object] | None = None
        """Called when the wait is over. None: it does not wait."""
        self._began_at = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        """When it gives up. None: it does not wait."""

    @property
    def is_held(self) -> bool:
        """Whether the memory for the body is there."""
        return self._held_bytes > 0

    def take(self, size_bytes: int, resume: Callable[[], object]) -> bool:
        """Take this much; False: `resume` is called when it is there, or when it took too long."""
        self.wanted_bytes = size_bytes
        if self._memory.take(self, size_bytes):
            self._held_bytes = size_bytes
            return True
        self._resume, self._began_at = resume, time.monotonic()
        self._postpone(self.max_wait_s + 1)
        self._alarm = asyncio.get_running_loop().call_later(self.max_wait_s, self._give_up)
        return False

    def grant(self) -> None:
        """The memory is there."""
        self._held_bytes = self.wanted_bytes
        self._end_wait()

    def release(self) -> None:
        """Give back what is held, or stop waiting."""
        if self._alarm is not None:
            self._resume = None
            self._end_wait()
        held, self._held_bytes = self._held_bytes, 0
        self._memory.give_back(self, held)

    def _give_up(self) -> None:
        self.has_given_up = True
        self._memory.give_back(self, 0)
        self._end_wait()

    def _end_wait(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        waited_s = time.monotonic() - self._began_at
        self.waited_s += waited_s
        self._postpone(waited_s - self.max_wait_s - 1)
        resume, self._resume = self._resume, None
        if resume is not None:
            # Not at once: another run gives its memory back at this moment.
            asyncio.get_running_loop().call_soon(resume)
