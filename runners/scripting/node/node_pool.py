"""Node processes that wait for a script."""

import asyncio
import contextlib
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from runners.scripting.node.runtimes import Runtime
from sandbox.child import Child
from sandbox.program import Limits, Program, ProgramExit
from sandbox.sandbox import Sandbox
from sandbox.workspace import Workspace

MEMORY_MB: Final = 512
HEAP_MB: Final = 384
"""Of JavaScript objects; buffers and Node itself take the rest."""
LIMITS: Final = Limits(memory_mb=MEMORY_MB, file_mb=1, folder_mb=1, processes=64, open_files=1024)


class ScriptNode:
    """A process that reads a job from its stdin, runs it and ends."""

    def __init__(self, child: Child, folder: Workspace, *, started_at: float) -> None:
        """`folder`: its working directory, where nothing can be written."""
        self.started_at = started_at
        """Monotonic; its own log counts from here."""
        self._child = child
        self._folder = folder
        self._ending: asyncio.Task[ProgramExit] | None = None
        """None: it has no job."""

    async def run(
        self, message: bytes, *, limit_s: float, hear: Callable[[bytes], bool]
    ) -> ProgramExit | None:
        """Hand it its job, and wait for its end, or until `hear` has heard enough.

        None: it has, and the process may still be on its way out.

        Raises:
            OSError: the process never began, or cannot be ended.
        """
        enough = asyncio.Event()

        def on_fact(line: bytes) -> None:
            if hear(line):
                enough.set()

        await self._child.write_stdin(message)
        end = self._child.wait(timeout_s=limit_s, on_fact=on_fact)
        self._ending = asyncio.create_task(end, name="script.end")
        heard = asyncio.create_task(enough.wait(), name="script.heard")
        try:
            await asyncio.wait((self._ending, heard), return_when=asyncio.FIRST_COMPLETED)
        finally:
            heard.cancel()
        return self._ending.result() if self._ending.done() else None

    async def close(self) -> None:
        """Leave nothing of it.

        Raises:
            OSError: a process of it cannot be ended.
        """
        try:
            await self._child.kill()
            if self._ending is not None:
                await asyncio.gather(self._ending, return_exceptions=True)
        finally:
            self._folder.remove()


async def start_node(
    sandbox: Sandbox, runtime: Runtime, environment_in: Callable[[Path], dict[str, str]]
) -> ScriptNode:
    """A process of this runtime that waits for its script, in a folder of its own.

    Raises:
        OSError: it cannot be started, and that is our fault.
    """
    folder = Workspace()
    try:
        program = _program(runtime, folder.folder, environment_in(folder.folder))
        started_at = time.monotonic()
        child = await sandbox.start(program)
    except BaseException:
        folder.remove()
        raise
    return ScriptNode(child, folder, started_at=started_at)


def _program(runtime: Runtime, folder: Path, environment: dict[str, str]) -> Program:
    """It may read its own code and the libraries, and nothing else; it starts no process."""
    code = runtime.harness / "script"
    return Program(
        argv=(
            str(runtime.node),
            "--permission",
            f"--max-old-space-size={HEAP_MB}",
            # No compile cache: under permissions Node uses one only where it may write it.
            *(f"--allow-fs-read={one}/*" for one in (code, runtime.modules)),
            str(code / "main.cjs"),
        ),
        folder=folder,
        env=environment,
        limits=LIMITS,
    )


NODES_PER_RUNTIME: Final = 2
"""Per runtime: setup and teardown of one check. Each holds some 40 MB while it waits, of which 8
are its own and the rest is Node's code, which all Node processes share."""
IDLE_S: Final = 300.0
"""So long after the last script of a runtime its spares are let go."""

StartNode = Callable[[Runtime], Awaitable[ScriptNode]]


class NodePool:
    """Lends each script a process of its own; none is lent twice."""

    def __init__(self, start: StartNode, *, each: int = NODES_PER_RUNTIME) -> None:
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
    async def lend(self, runtime: Runtime, *, fresh: bool = False) -> AsyncIterator[ScriptNode]:
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
