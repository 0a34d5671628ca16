"""Starts a Node process that waits for one setup or teardown script."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runners.kit.isolation.sandbox import Child, Ended, Limits, Program, Sandbox
from runners.kit.isolation.workspace import Workspace
from runners.kit.scripts.runtimes import Runtime

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
        self._ending: asyncio.Task[Ended] | None = None
        """None: it has no job."""

    async def play(
        self, message: bytes, *, limit_s: float, hear: Callable[[bytes], bool]
    ) -> Ended | None:
        """Hand it its job, and wait for its end, or until `hear` has heard enough.

        None: it has, and the process may still be on its way out.

        Raises:
            OSError: the process never began, or cannot be ended.
        """
        enough = asyncio.Event()

        def on_fact(line: bytes) -> None:
            if hear(line):
                enough.set()

        await self._child.feed(message)
        end = self._child.ended(timeout_s=limit_s, on_fact=on_fact)
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
