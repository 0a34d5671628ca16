"""Keeps one loaded Playwright for each kind of run that is in use, where nobody pays for it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from runners.kit.isolation.memory import available_mb
from runners.kit.isolation.sandbox import Limits
from runners.kit.playwright.spare import Spare, can_wait
from runners.kit.scripts.runtimes import Runtime

IDLE_S: Final = 300.0
"""So long after the last run of a kind its spare is let go."""
QUIET_S: Final = 0.2
"""So long no run must have been under way before one is loaded: on a busy agent, loading takes from
the runs what it would save them."""
WAITING_MB: Final = 200
"""What one may take while it waits, above the least that has to be free for a run: 189 and 196 were
seen of the newest runtime's two kinds, 99 of the older one's."""


class Kind(msgspec.Struct, frozen=True):
    """What a spare can be used for."""

    runtime_id: str
    memory_mb: int


class Use(msgspec.Struct, frozen=True):
    """When a kind was used last, and how another one is started."""

    runtime: Runtime
    limits: Limits
    at: float
    """Monotonic."""


StartSpare = Callable[[Runtime, Limits], Awaitable[Spare]]


class PlaywrightSpares:
    """Lends each run a process of its own, if one waits; none is lent twice."""

    def __init__(self, start: StartSpare, *, free_mb: Callable[[], float] = available_mb) -> None:
        """`free_mb`: how much memory there is."""
        self._start = start
        self._free_mb = free_mb
        self._waiting: dict[Kind, Spare] = {}
        self._used: dict[Kind, Use] = {}
        """Kinds that had a run lately."""
        self._under_way = 0
        """Runs, with a spare or without."""
        self._ended = asyncio.Event()
        """A run ended."""
        self._endings: set[asyncio.Task[None]] = set()
        """Processes on their way out, which no check waits for."""
        self._keeper: asyncio.Task[None] | None = None
        """None: no run has come yet."""

    @property
    def waiting(self) -> tuple[Spare, ...]:
        """Those that nobody has come for."""
        return tuple(self._waiting.values())

    @asynccontextmanager
    async def lent(
        self, runtime: Runtime, limits: Limits, *, alone: bool = False
    ) -> AsyncIterator[Spare | None]:
        """For one run, which ends with the block. None: it is to start by itself.

        `alone`: it can be none of those that wait.
        """
        kind = Kind(runtime.id, limits.memory_mb)
        spare = None if alone else self._waiting.pop(kind, None)
        self._under_way += 1
        try:
            yield spare
        finally:
            self._under_way -= 1
            if spare is not None:
                self._end(spare)
            if not alone:
                self._used[kind] = Use(runtime, limits, time.monotonic())
            self._wake()

    async def close(self) -> None:
        """End all that there are."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        for kind in tuple(self._waiting):
            self._end(self._waiting.pop(kind))
        await asyncio.gather(*self._endings, return_exceptions=True)

    def _end(self, spare: Spare) -> None:
        ending = asyncio.create_task(spare.close(), name="playwright-spare.close")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _wake(self) -> None:
        self._ended.set()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="playwright-spares")

    async def _keep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._ended.wait()
            self._ended.clear()
            await asyncio.sleep(QUIET_S)
            for kind, use in tuple(self._used.items()):
                # A spare that cannot be started is no run's loss.
                with contextlib.suppress(OSError):
                    await self._keep_for(kind, use)

    async def _keep_for(self, kind: Kind, use: Use) -> None:
        idle_s = time.monotonic() - use.at
        if idle_s >= IDLE_S:
            del self._used[kind]
            if kind in self._waiting:
                self._end(self._waiting.pop(kind))
        elif kind not in self._waiting and self._may_load(use):
            self._waiting[kind] = await self._start(use.runtime, use.limits)

    def _may_load(self, use: Use) -> bool:
        """Whether nobody is the worse for it; the end of a run asks again."""
        if self._under_way or self._ended.is_set() or not can_wait(use.runtime):
            return False
        return self._free_mb() >= WAITING_MB + use.limits.memory_mb
