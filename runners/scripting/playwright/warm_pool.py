"""Playwright processes that wait for a script."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import msgspec

from runners.scripting.node.runtimes import Runtime
from runners.scripting.playwright.place import (
    RunFolders,
    build_load_environment,
    build_node_command,
    make_folders,
)
from runners.scripting.playwright.secret_messages import SecretMessages
from sandbox.child import Child
from sandbox.memory import available_mb
from sandbox.program import Limits, Program, ProgramExit, RunTime
from sandbox.sandbox import Sandbox
from sandbox.spawn import require_variables
from sandbox.users import grant_folder
from sandbox.workspace import Workspace

_INTERNAL: Final = ("playwright/lib/program.js", "playwright/test.js")
"""Playwright's files that are loaded in advance; other versions may lack them."""
_TAKEN: Final = b'"fact":"taken"'
_TAKEN_S: Final = 3.0
"""How long a run waits until a warm process takes its job; a stuck one is given up."""
_READ_AT_START: Final = re.compile(
    r"(NODE|PLAYWRIGHT|PW|PWTEST|UV|SSL|OPENSSL|LC|XDG|npm|CHROME|WK|WS|GRACEFUL|SSH|BABEL)_.*"
    r"|PWDEBUG|PWDEBUGIMPL|DEBUG|LANG|LANGUAGE|TZ|TERM|TERM_PROGRAM|TEAMCITY_VERSION|MAX_LOG_LENGTH"
    r"|NO_COLOR|FORCE_COLOR|HOME|TMPDIR"
)
"""Names of variables that Node or Playwright read only while they load."""


class UnfitProcessError(Exception):
    """A warm process cannot take the run, which has to start a process of its own."""


class _Job(msgspec.Struct, frozen=True):
    """The job that waiting.cjs reads from stdin."""

    environment: Mapping[str, str]
    folder: str
    command: tuple[str, ...]


class WarmProcess:
    """A waiting Playwright process, in a folder of its own that becomes its run's."""

    def __init__(self, child: Child, workspace: Workspace, program: Program) -> None:
        """`program`: the program that it was started as."""
        self.workspace = workspace
        self._child = child
        self._program = program
        self._started_at = time.monotonic()
        self._taken = asyncio.Event()

    async def run(
        self, program: Program, *, run_time: RunTime, messages: SecretMessages
    ) -> ProgramExit:
        """Run a program in the process; none of its processes is left when this returns.

        Raises:
            UnfitProcessError: it cannot run that program, or had died; nothing has run.
            CheckFailed: of kind SCRIPT: the variables are too large for what the script starts.
            OSError: there is too little memory, the disk is full, a process cannot be killed, or
                it took its job too late.
        """
        if _filter_read_at_start(self._program.env) != _filter_read_at_start(program.env):
            raise UnfitProcessError
        require_variables(program.env)
        await self._child.reserve_memory()
        await run_to_completion(self._grant_folder)
        waited_s = time.monotonic() - self._started_at
        try:
            async with asyncio.timeout(_TAKEN_S):
                await self._child.write_stdin(self._message(program))
        except TimeoutError:
            raise UnfitProcessError from None
        ended = await self._wait(run_time, messages)
        if not self._taken.is_set():
            raise UnfitProcessError
        return _count_from_job(ended, waited_s)

    async def _wait(self, run_time: RunTime, messages: SecretMessages) -> ProgramExit:
        """Wait for its end, which comes soon if it does not take its job."""

        def take(line: bytes) -> None:
            if self._taken.is_set():
                messages.take(line)
            elif _TAKEN in line:
                self._taken.set()

        ends = self._child.wait(
            timeout_s=run_time.stop_after_s,
            grace_s=run_time.grace_s,
            on_fact=take,
            on_stop=messages.stop,
        )
        ending = asyncio.create_task(ends)
        try:
            await self._wait_until_taken(ending)
            return await ending
        finally:
            ending.cancel()
            await asyncio.wait({ending})

    async def _wait_until_taken(self, ending: asyncio.Task[ProgramExit]) -> None:
        taking = asyncio.create_task(self._taken.wait())
        await asyncio.wait({taking, ending}, timeout=_TAKEN_S, return_when=asyncio.FIRST_COMPLETED)
        taking.cancel()
        if self._taken.is_set() or ending.done():
            return
        await self._child.kill()
        await asyncio.wait({ending})
        if self._taken.is_set():
            raise OSError("A waiting Playwright took its job only when it was ended.")

    async def close(self) -> None:
        """Kill it, and remove its folder.

        Raises:
            OSError: one of its processes cannot be killed.
        """
        try:
            await self._child.kill()
        finally:
            await asyncio.to_thread(self.workspace.remove)

    def _grant_folder(self) -> None:
        """Give the files written meanwhile to its user; it has run no check's code so far."""
        if self.workspace.user is not None:
            grant_folder(self.workspace.folder, self.workspace.user)

    def _message(self, program: Program) -> bytes:
        command = program.argv[len(self._program.argv) - 1 :]
        return msgspec.json.encode(_Job(program.env, str(program.folder), command))


def can_wait(runtime: Runtime) -> bool:
    """Whether a runtime's Playwright has the files that a warm process loads in advance."""
    return all((runtime.modules / name).is_file() for name in _INTERNAL)


async def start_warm_process(
    sandbox: Sandbox,
    runtime: Runtime,
    limits: Limits,
    environment_in: Callable[[Path], dict[str, str]],
) -> WarmProcess:
    """Start a process that loads Playwright, then waits for its run.

    Raises:
        OSError: it cannot be started, which is our fault.
    """
    workspace = Workspace()
    try:
        place = await run_to_completion(make_folders, workspace.folder)
        line = _build_program(runtime, limits, place, environment_in(place.home))
        return WarmProcess(await sandbox.start(line, owner=workspace, waits=True), workspace, line)
    except BaseException:
        with contextlib.suppress(OSError):
            workspace.remove()
        raise


def _build_program(
    runtime: Runtime, limits: Limits, place: RunFolders, environment: Mapping[str, str]
) -> Program:
    """Build the program of a warm process."""
    fixed = {**environment, **build_load_environment(runtime, place)}
    return Program(
        argv=(*build_node_command(runtime), str(runtime.harness / "playwright/waiting.cjs")),
        folder=place.home,
        env={**fixed, "PICKET_WAITS": str(runtime.modules)},
        limits=limits,
    )


def needs_fresh_process(variables: Iterable[str]) -> bool:
    """Whether a run with variables of these names needs a process of its own."""
    return any(_READ_AT_START.fullmatch(name) for name in variables)


def _filter_read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _READ_AT_START.fullmatch(name)}


def _count_from_job(ended: ProgramExit, waited_s: float) -> ProgramExit:
    """Shift the times of an exit so that they count from when the process got its job."""
    log = tuple(
        msgspec.structs.replace(line, after_ms=max(0.0, line.after_ms - waited_s * 1000))
        for line in ended.log
    )
    return msgspec.structs.replace(ended, took_s=max(0.0, ended.took_s - waited_s), log=log)


GivenT = ParamSpec("GivenT")
AnswerT = TypeVar("AnswerT")


async def run_to_completion(
    function: Callable[GivenT, AnswerT], *given: GivenT.args, **named: GivenT.kwargs
) -> AnswerT:
    """Run a function in a thread; a cancelled caller goes on only when it has returned."""
    working = asyncio.ensure_future(asyncio.to_thread(function, *given, **named))
    try:
        return await asyncio.shield(working)
    finally:
        if not working.done():
            await asyncio.wait({working})


IDLE_S: Final = 300.0
"""How long after the last run of a kind its warm process is closed."""
QUIET_S: Final = 0.2
"""How long no run may have been in progress before a process is loaded: on a busy agent, loading
takes as much time from runs as it would save them."""
WAITING_MB: Final = 200
"""The memory that one may use while it waits, in addition to what a run needs: 189 and 196 MB were
measured for the newest runtime's two kinds, 99 MB for the older one."""


class ProcessKind(msgspec.Struct, frozen=True):
    """The runs that a warm process can be used for."""

    runtime_id: str
    memory_mb: int


class LastUse(msgspec.Struct, frozen=True):
    """The last use of a kind, and how another process of it is started."""

    runtime: Runtime
    limits: Limits
    at: float
    """When it was used, by the monotonic clock."""


StartProcess = Callable[[Runtime, Limits], Awaitable[WarmProcess]]


class WarmPool:
    """Lends each run a warm process, if one waits; none is lent twice."""

    def __init__(self, start: StartProcess, *, free_mb: Callable[[], float] = available_mb) -> None:
        """`free_mb`: reads how much memory is free."""
        self._start = start
        self._free_mb = free_mb
        self._waiting: dict[ProcessKind, WarmProcess] = {}
        self._used: dict[ProcessKind, LastUse] = {}
        """The last use of each kind that had a run recently."""
        self._under_way = 0
        """The number of runs in progress, with a warm process or without."""
        self._ended = asyncio.Event()
        """Set when a run has ended."""
        self._endings: set[asyncio.Task[None]] = set()
        """Tasks that close processes, which no check waits for."""
        self._keeper: asyncio.Task[None] | None = None
        """Refills the pool. None: no run has come yet."""

    @property
    def waiting(self) -> tuple[WarmProcess, ...]:
        """The processes that wait for a run."""
        return tuple(self._waiting.values())

    @asynccontextmanager
    async def lend(
        self, runtime: Runtime, limits: Limits, *, alone: bool = False
    ) -> AsyncIterator[WarmProcess | None]:
        """Lend a process for one run, which ends with the block. None: no process fits.

        `alone`: the run needs a process of its own in any case.
        """
        kind = ProcessKind(runtime.id, limits.memory_mb)
        spare = None if alone else self._waiting.pop(kind, None)
        self._under_way += 1
        try:
            yield spare
        finally:
            self._under_way -= 1
            if spare is not None:
                self._end(spare)
            if not alone:
                self._used[kind] = LastUse(runtime, limits, time.monotonic())
            self._wake()

    async def close(self) -> None:
        """Close all processes."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        for kind in tuple(self._waiting):
            self._end(self._waiting.pop(kind))
        await asyncio.gather(*self._endings, return_exceptions=True)

    def _end(self, spare: WarmProcess) -> None:
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
                # A warm process that cannot be started harms no run.
                with contextlib.suppress(OSError):
                    await self._keep_for(kind, use)

    async def _keep_for(self, kind: ProcessKind, use: LastUse) -> None:
        idle_s = time.monotonic() - use.at
        if idle_s >= IDLE_S:
            del self._used[kind]
            if kind in self._waiting:
                self._end(self._waiting.pop(kind))
        elif kind not in self._waiting and self._may_load(use):
            self._waiting[kind] = await self._start(use.runtime, use.limits)

    def _may_load(self, use: LastUse) -> bool:
        """Whether loading a process slows no run down; the end of each run asks again."""
        if self._under_way or self._ended.is_set() or not can_wait(use.runtime):
            return False
        return self._free_mb() >= WAITING_MB + use.limits.memory_mb
