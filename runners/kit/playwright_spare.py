"""A Playwright that is loaded, and waits for the one job that it will ever run."""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from runners.kit.environment_size import require_variables
from runners.kit.folder_owner import give_folder
from runners.kit.playwright_place import HARNESS, grounds, make_place, node_line
from runners.kit.runtimes import Runtime
from runners.kit.sandbox import Child, Ended, Limits, Program, Sandbox
from runners.kit.workspace import Workspace

_INTERNAL: Final = ("playwright/lib/program.js", "playwright/test.js")
"""Files of Playwright that are loaded in advance; other versions may have others."""
_TAKEN: Final = b'"fact":"taken"'
_READ_AT_START: Final = re.compile(
    r"(NODE|PLAYWRIGHT|PW|UV|SSL|OPENSSL|LC|DEBUG)_.*|DEBUG|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR"
    r"|HOME|TMPDIR"
)
"""Names that Node or Playwright look at as they load, and not again."""


class SpareUnfitError(Exception):
    """A run has to start by itself."""


class _Job(msgspec.Struct, frozen=True):
    """What waiting.cjs reads."""

    environment: Mapping[str, str]
    folder: str
    command: tuple[str, ...]


class Spare:
    """One such process, in a folder of its own that becomes the job's."""

    def __init__(self, child: Child, workspace: Workspace, line: Program) -> None:
        """`line`: what it was started as."""
        self.workspace = workspace
        self._child = child
        self._line = line
        self._started_at = time.monotonic()
        self._is_taken = False

    async def play(
        self, program: Program, *, timeout_s: float, on_fact: Callable[[bytes], None]
    ) -> Ended:
        """Have it run a program; nothing of it is left when this returns.

        Raises:
            SpareUnfitError: it cannot be that program, or was gone; nothing has run.
            CheckFailed: of kind SCRIPT: what the script starts could not be given its variables.
            OSError: there is too little memory, the disk is full, or a process cannot be ended.
        """
        if _read_at_start(self._line.env) != _read_at_start(program.env):
            raise SpareUnfitError
        require_variables(program.env)
        await self._child.expect_job()
        await asyncio.to_thread(self._give)
        waited_s = time.monotonic() - self._started_at

        def take(line: bytes) -> None:
            if self._is_taken:
                on_fact(line)
            self._is_taken = self._is_taken or _TAKEN in line

        await self._child.feed(self._message(program))
        ended = await self._child.ended(timeout_s=timeout_s, on_fact=take)
        if not self._is_taken:
            raise SpareUnfitError
        return _since(ended, waited_s)

    async def close(self) -> None:
        """Leave nothing of it.

        Raises:
            OSError: a process of it cannot be ended.
        """
        try:
            await self._child.kill()
        finally:
            await asyncio.to_thread(self.workspace.remove)

    def _give(self) -> None:
        """What was laid out meanwhile becomes its user's; it has run nobody's code so far."""
        if self.workspace.user is not None:
            give_folder(self.workspace.folder, self.workspace.user)

    def _message(self, program: Program) -> bytes:
        command = program.argv[len(self._line.argv) - 1 :]
        return msgspec.json.encode(_Job(program.env, str(program.folder), command))


def can_wait(runtime: Runtime) -> bool:
    """Whether its Playwright is built as those are that wait."""
    return all((runtime.modules / name).is_file() for name in _INTERNAL)


async def start_spare(
    sandbox: Sandbox,
    runtime: Runtime,
    limits: Limits,
    environment_in: Callable[[Path], dict[str, str]],
) -> Spare:
    """One that loads Playwright, and waits then.

    Raises:
        OSError: it cannot be started, and that is our fault.
    """
    workspace = Workspace()
    try:
        place = await asyncio.to_thread(make_place, workspace.folder)
        fixed = {**environment_in(place.home), **grounds(runtime, place)}
        line = Program(
            argv=(*node_line(runtime), str(HARNESS / "waiting.cjs")),
            folder=place.home,
            env={**fixed, "PICKET_WAITS": str(runtime.modules)},
            limits=limits,
        )
        return Spare(await sandbox.start(line, owner=workspace, waits=True), workspace, line)
    except BaseException:
        with contextlib.suppress(OSError):
            workspace.remove()
        raise


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _READ_AT_START.fullmatch(name)}


def _since(ended: Ended, waited_s: float) -> Ended:
    """As if it had started with its job."""
    log = tuple(
        msgspec.structs.replace(line, after_ms=max(0.0, line.after_ms - waited_s * 1000))
        for line in ended.log
    )
    return msgspec.structs.replace(ended, took_s=max(0.0, ended.took_s - waited_s), log=log)
