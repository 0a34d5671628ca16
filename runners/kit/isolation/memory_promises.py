"""Memory that was promised to programs which have not used it yet.

To look whether there is enough is no use when two look at once: both see the same memory.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from runners.kit.isolation.memory import available_mb

_LOOK_EVERY_S: Final = 0.25


class TooLittleMemoryError(OSError):
    """The machine, or our container, has no room for a program: that is no check's fault."""


class Promise:
    """So much memory for one program; what it uses by now shows as used, and is no longer open."""

    def __init__(self, promises: "MemoryPromises") -> None:
        self._promises = promises
        self._promised_mb = 0
        self._used_mb = 0.0

    @property
    def open_mb(self) -> float:
        """What it may still come to use."""
        return max(0.0, self._promised_mb - self._used_mb)

    def note(self, used_mb: float) -> None:
        """It has used so much."""
        self._used_mb = max(self._used_mb, used_mb)

    async def grow(self, needed_mb: int, *, wait_s: float) -> None:
        """Be for so much, as soon as there is what it does not use yet.

        Raises:
            TooLittleMemoryError: there is not, and none comes free in time.
        """
        until = time.monotonic() + wait_s
        while (missing_mb := needed_mb - self._used_mb) > 0:
            if (free_mb := self._promises.free_mb) >= missing_mb:
                break
            if time.monotonic() >= until:
                raise TooLittleMemoryError(
                    f"There are {max(0.0, free_mb):.0f} MB of memory free for another script, "
                    f"which may need {missing_mb:.0f}"
                )
            await asyncio.sleep(_LOOK_EVERY_S)
        self._promised_mb = needed_mb

    def end(self) -> None:
        """It needs no more."""
        self._promises.forget(self)


class MemoryPromises:
    """Those of one agent."""

    def __init__(self, available_mb: Callable[[], float] = available_mb) -> None:
        """`available_mb`: how much is free by the system's word."""
        self._available_mb = available_mb
        self._open: set[Promise] = set()

    @property
    def free_mb(self) -> float:
        """What nobody uses, and nobody was promised."""
        return self._available_mb() - sum(promise.open_mb for promise in self._open)

    async def make(self, needed_mb: int, *, wait_s: float) -> Promise:
        """Promise so much as soon as there is; to ask for nothing costs nothing.

        Raises:
            TooLittleMemoryError: there is not, and none comes free in time.
        """
        promise = Promise(self)
        await promise.grow(needed_mb, wait_s=wait_s)
        self._open.add(promise)
        return promise

    def forget(self, promise: Promise) -> None:
        """It holds no more; to be told twice is no harm."""
        self._open.discard(promise)
