"""A pool of Node processes that wait for setup and teardown scripts."""

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
"""V8's heap for JavaScript objects; buffers and Node itself use the rest of the memory."""
LIMITS: Final = Limits(memory_mb=MEMORY_MB, file_mb=1, folder_mb=1, processes=64, open_files=1024)


class ScriptNode:
    """A process that reads one job from stdin, runs it and exits."""

    def __init__(self, child: Child, folder: Workspace, *, started_at: float) -> None:
        """`folder`: its working directory, in which it cannot write."""
        self.started_at = started_at
        """When it started, by the monotonic clock; the times of its log count from here."""
        self._child = child
        self._folder = folder
        self._ending: asyncio.Task[ProgramExit] | None = None
        """Waits for its end. None: it has no job yet."""

    async def run(
        self, message: bytes, *, limit_s: float, hear: Callable[[bytes], bool]
    ) -> ProgramExit | None:
        """Send the job, and wait for the end of the process, or until `hear` needs no more facts.

        None: `hear` needs no more facts, and the process may not have ended yet.

        Raises:
            OSError: the process never began, or cannot be killed.
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
        """Kill it, and remove its folder.

        Raises:
            OSError: one of its processes cannot be killed.
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
    """Start a process of a runtime that waits for its script, in a folder of its own.

    Raises:
        OSError: it cannot be started, which is our fault.
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
    """Build the program: it may read only its code and the libraries, and start no process."""
    code = runtime.harness / "script"
    return Program(
        argv=(
            str(runtime.node),
            "--permission",
            # Reading TypeScript is meant here.
            "--disable-warning=ExperimentalWarning",
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
"""Waiting processes per runtime, for setup and teardown of one check. Each uses some 40 MB, of
which 32 MB are Node's code, which all Node processes share."""
IDLE_S: Final = 300.0
"""How long after the last script of a runtime its waiting processes are closed."""

StartNode = Callable[[Runtime], Awaitable[ScriptNode]]


class NodePool:
    """Lends each script a process of its own, from those that wait if possible; none runs twice."""

    def __init__(self, start: StartNode, *, each: int = NODES_PER_RUNTIME) -> None:
        """`each`: how many processes of each runtime in use wait."""
        self._start = start
        self._each = each
        self._waiting: defaultdict[str, deque[ScriptNode]] = defaultdict(deque)
        self._used: dict[str, tuple[Runtime, float]] = {}
        """Runtimes that had a script recently, and when it ended."""
        self._ended = asyncio.Event()
        """Set when a script has ended: starting a process now slows no script down."""
        self._endings: set[asyncio.Task[None]] = set()
        """Tasks that close processes, which no check waits for."""
        self._keeper: asyncio.Task[None] | None = None
        """Refills the pool. None: no script has come yet."""

    @property
    def waiting(self) -> int:
        """The number of processes that wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def lend(self, runtime: Runtime, *, fresh: bool = False) -> AsyncIterator[ScriptNode]:
        """Lend a process for one script, which ends with the block. `fresh`: a new process.

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
        """Close all processes."""
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
                # A process that cannot be started or closed now harms no script.
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
