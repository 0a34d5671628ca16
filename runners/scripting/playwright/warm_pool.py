"""Playwright processes that wait for a script."""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeVar

import msgspec

from runners.scripting.node.runtimes import Runtime
from runners.scripting.playwright.place import (
    RunFolders,
    build_load_environment,
    build_node_command,
    make_folders,
)
from sandbox.child import Child
from sandbox.memory import available_mb
from sandbox.program import Limits, Program, ProgramExit, RunTime
from sandbox.sandbox import Sandbox
from sandbox.spawn import require_variables
from sandbox.users import grant_folder
from sandbox.workspace import Workspace

_INTERNAL: Final = ("playwright/lib/program.js", "playwright/test.js")
"""Files of Playwright that are loaded in advance; other versions may have others."""
_TAKEN: Final = b'"fact":"taken"'
_TAKEN_S: Final = 3.0
"""What a run gives it to take its job; that it waits is no reason to be stopped or starved."""
_READ_AT_START: Final = re.compile(
    r"(NODE|PLAYWRIGHT|PW|PWTEST|UV|SSL|OPENSSL|LC|XDG|npm|CHROME|WK|WS|GRACEFUL|SSH|BABEL)_.*"
    r"|PWDEBUG|PWDEBUGIMPL|DEBUG|LANG|LANGUAGE|TZ|TERM|TERM_PROGRAM|TEAMCITY_VERSION|MAX_LOG_LENGTH"
    r"|NO_COLOR|FORCE_COLOR|HOME|TMPDIR"
)
"""Names that Node or Playwright look at as they load, and not again."""


class UnfitProcessError(Exception):
    """A run has to start by itself."""


class _Job(msgspec.Struct, frozen=True):
    """What waiting.cjs reads."""

    environment: Mapping[str, str]
    folder: str
    command: tuple[str, ...]


class Hearer(Protocol):
    """Who hears of a run."""

    def take(self, line: bytes) -> None:
        """It told a fact."""

    def stop(self) -> None:
        """It is asked to end."""


class WarmProcess:
    """One such process, in a folder of its own that becomes the job's."""

    def __init__(self, child: Child, workspace: Workspace, line: Program) -> None:
        """`line`: what it was started as."""
        self.workspace = workspace
        self._child = child
        self._build_program = line
        self._started_at = time.monotonic()
        self._taken = asyncio.Event()

    async def run(self, program: Program, *, time_of_run: RunTime, hears: Hearer) -> ProgramExit:
        """Have it run a program; nothing of it is left when this returns.

        Raises:
            UnfitProcessError: it cannot be that program, or was gone; nothing has run.
            CheckFailed: of kind SCRIPT: what the script starts could not be given its variables.
            OSError: there is too little memory, the disk is full, a process cannot be ended, or
                it took its job too late.
        """
        if _filter_read_at_start(self._build_program.env) != _filter_read_at_start(program.env):
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
        ended = await self._ended(time_of_run, hears)
        if not self._taken.is_set():
            raise UnfitProcessError
        return _count_from_job(ended, waited_s)

    async def _ended(self, time_of_run: RunTime, hears: Hearer) -> ProgramExit:
        """Wait for its end, which comes soon if it does not take its job."""

        def take(line: bytes) -> None:
            if self._taken.is_set():
                hears.take(line)
            elif _TAKEN in line:
                self._taken.set()

        ends = self._child.wait(
            timeout_s=time_of_run.stop_after_s,
            grace_s=time_of_run.grace_s,
            on_fact=take,
            on_stop=hears.stop,
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
            raise OSError("A Playwright that waited took its job only as it was ended.")

    async def close(self) -> None:
        """Leave nothing of it.

        Raises:
            OSError: a process of it cannot be ended.
        """
        try:
            await self._child.kill()
        finally:
            await asyncio.to_thread(self.workspace.remove)

    def _grant_folder(self) -> None:
        """What was laid out meanwhile becomes its user's; it has run nobody's code so far."""
        if self.workspace.user is not None:
            grant_folder(self.workspace.folder, self.workspace.user)

    def _message(self, program: Program) -> bytes:
        command = program.argv[len(self._build_program.argv) - 1 :]
        return msgspec.json.encode(_Job(program.env, str(program.folder), command))


def can_wait(runtime: Runtime) -> bool:
    """Whether its Playwright is built as those are that wait."""
    return all((runtime.modules / name).is_file() for name in _INTERNAL)


async def start_warm_process(
    sandbox: Sandbox,
    runtime: Runtime,
    limits: Limits,
    environment_in: Callable[[Path], dict[str, str]],
) -> WarmProcess:
    """One that loads Playwright, and waits then.

    Raises:
        OSError: it cannot be started, and that is our fault.
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
    """What it is started as."""
    fixed = {**environment, **build_load_environment(runtime, place)}
    return Program(
        argv=(*build_node_command(runtime), str(runtime.harness / "playwright/waiting.cjs")),
        folder=place.home,
        env={**fixed, "PICKET_WAITS": str(runtime.modules)},
        limits=limits,
    )


def needs_fresh_process(variables: Iterable[str]) -> bool:
    """Whether a run with these, by their names, can be none of those that wait."""
    return any(_READ_AT_START.fullmatch(name) for name in variables)


def _filter_read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _READ_AT_START.fullmatch(name)}


def _count_from_job(ended: ProgramExit, waited_s: float) -> ProgramExit:
    """As if it had started with its job."""
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
    """What the function says; whoever is cancelled meanwhile goes on when it has returned."""
    working = asyncio.ensure_future(asyncio.to_thread(function, *given, **named))
    try:
        return await asyncio.shield(working)
    finally:
        if not working.done():
            await asyncio.wait({working})


IDLE_S: Final = 300.0
"""So long after the last run of a kind its spare is let go."""
QUIET_S: Final = 0.2
"""So long no run must have been under way before one is loaded: on a busy agent, loading takes from
the runs what it would save them."""
WAITING_MB: Final = 200
"""What one may take while it waits, above the least that has to be free for a run: 189 and 196 were
seen of the newest runtime's two kinds, 99 of the older one's."""


class ProcessKind(msgspec.Struct, frozen=True):
    """What a spare can be used for."""

    runtime_id: str
    memory_mb: int


class LastUse(msgspec.Struct, frozen=True):
    """When a kind was used last, and how another one is started."""

    runtime: Runtime
    limits: Limits
    at: float
    """Monotonic."""


StartProcess = Callable[[Runtime, Limits], Awaitable[WarmProcess]]


class WarmPool:
    """Lends each run a process of its own, if one waits; none is lent twice."""

    def __init__(self, start: StartProcess, *, free_mb: Callable[[], float] = available_mb) -> None:
        """`free_mb`: how much memory there is."""
        self._start = start
        self._free_mb = free_mb
        self._waiting: dict[ProcessKind, WarmProcess] = {}
        self._used: dict[ProcessKind, LastUse] = {}
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
    def waiting(self) -> tuple[WarmProcess, ...]:
        """Those that nobody has come for."""
        return tuple(self._waiting.values())

    @asynccontextmanager
    async def lend(
        self, runtime: Runtime, limits: Limits, *, alone: bool = False
    ) -> AsyncIterator[WarmProcess | None]:
        """For one run, which ends with the block. None: it is to start by itself.

        `alone`: it can be none of those that wait.
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
        """End all that there are."""
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
                # A spare that cannot be started is no run's loss.
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
        """Whether nobody is the worse for it; the end of a run asks again."""
        if self._under_way or self._ended.is_set() or not can_wait(use.runtime):
            return False
        return self._free_mb() >= WAITING_MB + use.limits.memory_mb
