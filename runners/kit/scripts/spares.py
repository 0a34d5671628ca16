"""Keeps a few single-use Node processes warm, so that a script costs milliseconds."""

import asyncio
import contextlib
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from runners.kit.scripts.node import ScriptNode
from runners.kit.scripts.runtimes import Runtime

EACH: Final = 2
"""Per runtime: setup and teardown of one check. Each holds some 40 MB while it waits, of which 8
are its own and the rest is Node's code, which all Node processes share."""
IDLE_S: Final = 300.0
"""So long after the last script of a runtime its spares are let go."""

StartNode = Callable[[Runtime], Awaitable[ScriptNode]]


class Spares:
    """Lends each script a process of its own; none is lent twice."""

    def __init__(self, start: StartNode, *, each: int = EACH) -> None:
        """`each`: how many to keep of each runtime that is in use."""
        self._start = start
        self._each = each
        self._waiting: defaultdict[str, deque[ScriptNode]] = defaultdict(deque)
        self._used: dict[str, tuple[Runtime, float]] = {}
        """Runtimes that had a script lately, and when."""
        self._ended = asyncio.Event()
        """A script ended: now a new spare takes nobody's time."""
        self._endings: set[asyncio.Task[None]] = set()
        """Processes on their way out, which no check waits for."""
        self._keeper: asyncio.Task[None] | None = None
        """None: no script has come yet."""

    @property
    def waiting(self) -> int:
        """How many processes wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def lent(self, runtime: Runtime, *, fresh: bool = False) -> AsyncIterator[ScriptNode]:
        """A process for one script, which ends with the block. Fresh: not one that waited.

        Raises:
            OSError: none can be started.
        """
        waiting = self._waiting[runtime.id]
        node = await self._start(runtime) if fresh or not waiting else waiting.popleft()
        try:
            yield node
        finally:
            ending = asyncio.create_task(self._end(node, runtime), name="script.close")
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """End all that there are."""
        await asyncio.gather(*self._endings, return_exceptions=True)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        for runtime_id in tuple(self._waiting):
            await self._let_go(runtime_id)

    async def _end(self, node: ScriptNode, runtime: Runtime) -> None:
        try:
            await node.close()
        finally:
            self._note_use(runtime)

    def _note_use(self, runtime: Runtime) -> None:
        self._used[runtime.id] = (runtime, time.monotonic())
        self._ended.set()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="script-spares")

    async def _keep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._ended.wait()
            self._ended.clear()
            for runtime, used_at in tuple(self._used.values()):
                # A spare that cannot be started or ended now is no script's loss.
                with contextlib.suppress(OSError):
                    await self._keep_for(runtime, idle_s=time.monotonic() - used_at)

    async def _keep_for(self, runtime: Runtime, *, idle_s: float) -> None:
        if idle_s >= IDLE_S:
            del self._used[runtime.id]
            await self._let_go(runtime.id)
            return
        waiting = self._waiting[runtime.id]
        while len(waiting) < self._each:
            waiting.append(await self._start(runtime))

    async def _let_go(self, runtime_id: str) -> None:
        for node in self._waiting.pop(runtime_id, ()):
            await node.close()
