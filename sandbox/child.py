"""One child process: started, watched, ended, waited for."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, TypeVar

import msgspec

from sandbox.child_io import Facts, Log, PipeReader, PipeWriter
from sandbox.exit_status import ExitState, describe_exit
from sandbox.limits import ExceededLimit, LimitMonitor
from sandbox.memory import count_oom_kills
from sandbox.processes import ProcessTree, read_process
from sandbox.program import Limits, ProgramExit, descendants_wait_s
from sandbox.spawn import Spawned

AnswerT = TypeVar("AnswerT")

_FIRST_CHECK_S: Final = 0.03
"""The first check comes early, so that short programs are checked at least once."""
_GRACE_S: Final = 2.0
"""The seconds between SIGINT and the end of all processes."""


class ChildContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a child uses of its sandbox."""

    tree: ProcessTree
    watch: LimitMonitor
    threads: Executor
    """Threads for reading /proc, which blocks."""
    reserve: Callable[[], Awaitable[None]]
    """Reserves the memory that its job may need; an OSError where there is too little."""
    release: Callable[[], Awaitable[None]]
    """Releases the child's user, tag and memory; called once, when all its processes are gone."""


class Child:
    """One running program; whoever starts it waits for its end or kills it."""

    def __init__(self, spawned: Spawned, limits: Limits, context: ChildContext) -> None:
        self._pid = spawned.pid
        self._exit = ChildExit(spawned.pid)  # first, because it may fail
        self._limits = limits
        self._context = context
        self._started = time.monotonic()
        self._oom_kills_before = count_oom_kills()
        self._log = Log(limits.log_bytes, now_ms=self._now_ms)
        self._facts = Facts()
        self._stdin = PipeWriter(spawned.stdin)
        self._readers = [
            PipeReader(spawned.stdout, lambda data: self._log.take("INFO", data)),
            PipeReader(spawned.stderr, lambda data: self._log.take("ERROR", data)),
        ]
        self._facts_pipe = spawned.facts
        """The facts' pipe before `wait` reads it; it buffers what comes. None: `wait` has it."""
        self._was_stopped_by_us = False
        self._excess: ExceededLimit | None = None
        self._end: asyncio.Future[int] | None = None
        """The program's status. None: `kill` was not called yet."""
        self._last_name = ""

    async def reserve_memory(self) -> None:
        """Reserve the memory that a waiting process needs for its job; others do so at their start.

        Raises:
            OSError: there is too little memory, or the disk is full.
        """
        await self._run_in_thread(
            self._context.watch.check
        )  # what it uses already needs no reservation
        await self._context.reserve()
        self._oom_kills_before = count_oom_kills()

    async def write_stdin(self, message: bytes) -> None:
        """Write to stdin, then close it."""
        await self._stdin.write(message)

    async def wait(
        self,
        *,
        timeout_s: float,
        on_fact: Callable[[bytes], None],
        grace_s: float = _GRACE_S,
        on_stop: Callable[[], None] = lambda: None,
    ) -> ProgramExit:
        """Wait for the end; when this returns, no process of the program is left.

        At its time limit it gets SIGINT, `on_stop` is called, and after `grace_s` it gets SIGKILL.

        Raises:
            OSError: it never began, the disk is full, or a process of it cannot be ended.
        """
        self._listen(on_fact)
        watching = asyncio.create_task(self._monitor_limits(), name="sandbox.watch")
        try:
            timed_out = not await self._exit.wait(timeout_s)
            if timed_out:
                on_stop()
                await self._ask_to_end(grace_s)
        finally:
            await self.kill()
            (problem,) = await asyncio.gather(watching, return_exceptions=True)
        if isinstance(problem, Exception):
            raise problem
        return self._describe_exit(timed_out=timed_out and self._excess is None)

    async def kill(self) -> None:
        """Kill all its processes at once.

        Raises:
            OSError: a process of it cannot be ended.
        """
        if self._end is None:
            self._was_stopped_by_us = self._was_stopped_by_us or not self._exit.is_seen
            self._end = asyncio.ensure_future(self._kill_and_release())
        await asyncio.shield(self._end)

    def _listen(self, on_fact: Callable[[bytes], None]) -> None:
        self._stdin.close()
        if self._facts_pipe is None:
            return

        def take(data: bytes) -> None:
            for line in self._facts.take(data):
                on_fact(line)

        self._readers.append(PipeReader(self._facts_pipe, take))
        self._facts_pipe = None

    async def _ask_to_end(self, grace_s: float) -> None:
        """Send SIGINT, as Ctrl+C at a terminal does: test runners clean up when they get it."""
        self._was_stopped_by_us = True
        self._signal(signal.SIGINT)
        if not await self._exit.wait(grace_s):
            self._signal(signal.SIGKILL)
            await self._wait_for_descendants(descendants_wait_s(grace_s))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    async def _wait_for_descendants(self, within_s: float) -> None:
        """Wait for processes that it started: an encoder finishes a video when its input ends."""
        until = time.monotonic() + within_s
        await self._exit.wait(within_s)
        left_s = max(0.0, until - time.monotonic())
        await self._run_in_thread(partial(self._context.tree.wait_for_others, left_s))

    async def _monitor_limits(self) -> None:
        """Check the limits until the program ends; kill it when it exceeds one."""
        pause_s = _FIRST_CHECK_S
        try:
            while self._excess is None and not await self._exit.wait(pause_s):
                self._excess = await self._run_in_thread(self._context.watch.check)
                pause_s = min(self._context.watch.pause_s, pause_s * 2)
        finally:
            if not self._exit.is_seen:
                await self.kill()

    async def _kill_and_release(self) -> int:
        try:
            await self._run_in_thread(self._context.tree.kill)
        except OSError:  # a process still runs: its user and pid stay in use
            self._close_pipes()
            self._exit.close()
            raise
        await self._exit.wait(_GRACE_S)
        seen = read_process(self._pid)
        self._last_name = "" if seen is None else seen.name
        try:
            self._close_pipes()
        finally:
            status = self._context.tree.reap()
            self._exit.close()
            await self._context.release()
        return status

    def _close_pipes(self) -> None:
        with contextlib.ExitStack() as each:  # whatever one of them comes to
            each.callback(self._stdin.close)
            for reader in self._readers:
                each.callback(reader.finish)
            if self._facts_pipe is not None:
                each.callback(os.close, self._facts_pipe)
                self._facts_pipe = None

    def _describe_exit(self, *, timed_out: bool) -> ProgramExit:
        status = self._end.result() if self._end else 0
        end = ExitState(
            status=status,
            last_name=self._last_name,
            was_stopped_by_us=self._was_stopped_by_us,
            timed_out=timed_out,
            excess=self._excess,
            was_refused_memory=self._context.watch.was_refused_memory,
            had_oom_kills=count_oom_kills() > self._oom_kills_before,
            peak_mb=self._context.watch.peak_mb,
            took_s=self._exit.seen_at - self._started,
            log=self._log.close(is_cut=self._was_stopped_by_us or os.WIFSIGNALED(status)),
            any_facts=self._facts.any,
            facts_cut=self._facts.cut,
        )
        return describe_exit(end, self._limits)

    def _now_ms(self) -> float:
        return (time.monotonic() - self._started) * 1000

    async def _run_in_thread(self, function: Callable[[], AnswerT]) -> AnswerT:
        return await asyncio.get_running_loop().run_in_executor(self._context.threads, function)


class ChildExit:
    """Waits for the end of one process by its pidfd, without reaping anybody's children."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)
        self._seen = asyncio.Event()
        self.seen_at = 0.0
        """When it ended, by the monotonic clock; 0 while it runs."""
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._see)
        except OSError:
            os.close(self._descriptor)
            raise

    @property
    def is_seen(self) -> bool:
        """Whether it has ended."""
        return self._seen.is_set()

    async def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether it came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._seen.wait()
        except TimeoutError:
            return self.is_seen
        return True

    def close(self) -> None:
        """Close the descriptor, and wake whoever still waits."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._note()

    def _see(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        self._note()

    def _note(self) -> None:
        if not self.is_seen:
            self.seen_at = time.monotonic()
            self._seen.set()
