"""Notices that a process has ended, and leaves it unasked for, so that its number stays taken."""

import asyncio
import os
import time


class ChildExit:
    """Waits by the process's descriptor; nobody else's children are touched."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)
        self._seen = asyncio.Event()
        self.seen_at = 0.0
        """By the monotonic clock; 0 before."""
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._see)
        except OSError:
            os.close(self._descriptor)
            raise

    @property
    def is_seen(self) -> bool:
        """Whether it has ended."""
        return self._seen.is_set()

    async def within(self, seconds: float) -> bool:
        """Whether it ends in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._seen.wait()
        except TimeoutError:
            return self.is_seen
        return True

    def close(self) -> None:
        """Nobody asks any more."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._note()

    def _see(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        self._note()

    def _note(self) -> None:
        if not self.is_seen:
            self.seen_at = time.monotonic()
            self._seen.set()
