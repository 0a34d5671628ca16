"""The memory that kept bodies share: a run whose body does not fit waits.

A body takes memory once it is longer than what results keep of any body. It then takes all that it
may need at once, and never a second time, so that no two runs wait for each other.
"""

import asyncio
import time
from typing import Final

import structlog

from runners.net.deadlines import Deadlines

DEFAULT_LIMIT_BYTES: Final = 256 << 20
JUDGING_BYTES: Final = 128 << 20
"""What judging one body of 25 MB takes besides: the copy in the process that judges, its text, and
the text as RE2 reads it. One large body is judged at a time."""
MAX_WAIT_S: Final = 20.0
"""How long a run may wait; a job 30 s past its deadline would count as stuck."""

log = structlog.get_logger(__name__)


class BodyMemoryError(RuntimeError):
    """This agent had no memory for a body in time; never the target's fault."""


class BodyMemory:
    """The shared memory; runs get it in the order in which they asked."""

    def __init__(
        self, limit_bytes: int = DEFAULT_LIMIT_BYTES, *, max_wait_s: float = MAX_WAIT_S
    ) -> None:
        self.max_wait_s = max_wait_s
        self.held_bytes = 0
        """How much the bodies hold together."""
        self._limit_bytes = limit_bytes
        self._waiting: dict[asyncio.Future[None], int] = {}
        """How much each of those who wait needs."""
        self._short_since: float | None = None
        """When the first of those who wait came. None: nobody waits."""

    def __repr__(self) -> str:
        return f"BodyMemory(held_bytes={self.held_bytes}, waiting={self.waiting})"

    @property
    def waiting(self) -> int:
        """How many runs wait."""
        return len(self._waiting)

    def take(self, size_bytes: int) -> bool:
        """Take this much; False: it is not there, or others wait for it."""
        if self._waiting or not self._fits(size_bytes):
            return False
        self.held_bytes += size_bytes
        return True

    async def wait(self, size_bytes: int, *, within_s: float) -> None:
        """Take this much as soon as it is there.

        Raises:
            BodyMemoryError: it was not there in time.
        """
        if self.take(size_bytes):
            return
        granted = asyncio.get_running_loop().create_future()
        self._waiting[granted] = size_bytes
        self._note_shortage()
        try:
            async with asyncio.timeout(within_s):
                await granted
        except BaseException as problem:
            if granted.cancelled():
                self._waiting.pop(granted, None)
                self._serve()
            else:
                self.give_back(size_bytes)
            if isinstance(problem, TimeoutError):
                raise BodyMemoryError("There was no memory for a body in time.") from None
            raise

    def give_back(self, size_bytes: int) -> None:
        """Give this much back, and serve those who wait."""
        self.held_bytes -= size_bytes
        self._serve()

    def _fits(self, size_bytes: int) -> bool:
        return self.held_bytes + size_bytes <= self._limit_bytes - JUDGING_BYTES

    def _serve(self) -> None:
        for granted, size_bytes in tuple(self._waiting.items()):
            if not granted.cancelled():
                if not self._fits(size_bytes):
                    return
                self.held_bytes += size_bytes
                granted.set_result(None)
            del self._waiting[granted]
        if self._short_since is not None:
            after_s = round(time.monotonic() - self._short_since, 1)
            self._short_since = None
            log.info("bodies.wait_no_more", after_s=after_s)

    def _note_shortage(self) -> None:
        if self._short_since is None:
            self._short_since = time.monotonic()
            limit_mb = self._limit_bytes >> 20
            log.warning("bodies.wait_for_memory", setting="BODY_MEMORY_MB", limit_mb=limit_mb)


class BodyLease:
    """What one run holds of the memory, for one body at a time."""

    def __init__(self, memory: BodyMemory, deadlines: Deadlines) -> None:
        self._memory = memory
        self._deadlines = deadlines
        self._wanted_bytes = 0
        self.held_bytes = 0
        self.waited_s = 0.0
        """How long the run has waited so far, which is no time of the run."""

    def __del__(self) -> None:
        # The run ended without a verdict, and the body is gone with it.
        self.release()

    def take(self, size_bytes: int) -> bool:
        """Take this much; False: it is not there, and `wait` waits for it."""
        self._wanted_bytes = size_bytes
        if self._memory.take(size_bytes):
            self.held_bytes = size_bytes
        return self.held_bytes > 0

    async def wait(self) -> None:
        """Take what was wanted as soon as it is there; the limits of this task move by the wait.

        Raises:
            BodyMemoryError: the run has waited for too long.
        """
        within_s, began_at = self._memory.max_wait_s - self.waited_s, time.monotonic()
        self._deadlines.postpone(within_s + 1)
        try:
            await self._memory.wait(self._wanted_bytes, within_s=within_s)
            self.held_bytes = self._wanted_bytes
        finally:
            waited_s = time.monotonic() - began_at
            self.waited_s += waited_s
            self._deadlines.postpone(waited_s - within_s - 1)

    def release(self) -> None:
        """Give back what is held."""
        held_bytes, self.held_bytes = self.held_bytes, 0
        if held_bytes:
            self._memory.give_back(held_bytes)
