"""Starts a Node process that waits for one setup or teardown script."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runners.kit.runtimes import Runtime
from runners.kit.sandbox import Child, Limits, Program, Sandbox
from runners.kit.workspace import Workspace

MAIN: Final = Path(__file__).resolve().parents[1] / "harness/script/main.cjs"
MEMORY_MB: Final = 512
HEAP_MB: Final = 384
"""Of JavaScript objects; buffers and Node itself take the rest."""
LIMITS: Final = Limits(memory_mb=MEMORY_MB, file_mb=1, folder_mb=1, processes=64, open_files=1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptNode:
    """A process that reads a job from its stdin, runs it and ends."""

    child: Child
    folder: Workspace
    """Its working directory; nothing can be written there."""
    started_at: float
    """Monotonic; its own log counts from here."""

    async def close(self) -> None:
        """Leave nothing of it.

        Raises:
            OSError: a process of it cannot be ended.
        """
        await self.child.kill()
        self.folder.remove()


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
    return ScriptNode(child=child, folder=folder, started_at=started_at)


def _program(runtime: Runtime, folder: Path, environment: dict[str, str]) -> Program:
    """It may read its own code and the libraries, and nothing else; it starts no process."""
    readable = [MAIN.parent, runtime.modules.resolve()]
    cached = {}
    if runtime.compile_cache is not None:
        readable.append(runtime.compile_cache.resolve())
        cached["NODE_COMPILE_CACHE"] = str(runtime.compile_cache.resolve())
    return Program(
        argv=(
            str(runtime.node),
            "--permission",
            f"--max-old-space-size={HEAP_MB}",
            *(f"--allow-fs-read={one}/*" for one in readable),
            str(MAIN),
        ),
        folder=folder,
        env={**environment, **cached},
        limits=LIMITS,
    )
