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
from sandbox.limits import Excess, Watch
from sandbox.memory import ended_for_want_of_memory
from sandbox.processes import ProcessTree, look_up
from sandbox.program import Ended, Limits, last_words_s
from sandbox.spawn import Spawned

AnswerT = TypeVar("AnswerT")

_FIRST_LOOK_S: Final = 0.03
"""Short programs are to be seen at least once."""
_GRACE_S: Final = 2.0
"""Between the polite signal and the end of the whole tree."""


class ChildContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a child needs of the sandbox it is in."""

    tree: ProcessTree
    watch: Watch
    threads: Executor
    """For looking at processes, which blocks."""
    claim: Callable[[], Awaitable[None]]
    """Promises it the memory that its job may need; an OSError where there is too little."""
    release: Callable[[], Awaitable[None]]
    """Gives back what the child had borrowed; called once, when nothing of it is left."""


class Child:
    """One program; whoever starts it waits for its end or kills it."""

    def __init__(self, spawned: Spawned, limits: Limits, around: ChildContext) -> None:
        self._pid = spawned.pid
        self._exit = ChildExit(spawned.pid)  # first: it is what can fail
        self._limits = limits
        self._around = around
        self._started = time.monotonic()
        self._took_before = ended_for_want_of_memory()
        self._log = Log(limits.log_bytes, now_ms=self._now_ms)
        self._facts = Facts()
        self._stdin = PipeWriter(spawned.stdin)
        self._readers = [
            PipeReader(spawned.stdout, lambda data: self._log.take("INFO", data)),
            PipeReader(spawned.stderr, lambda data: self._log.take("ERROR", data)),
        ]
        self._facts_pipe = spawned.facts
        """Read from `ended` on: until then the pipe itself holds what comes. None: no more."""
        self._was_asked = False
        self._excess: Excess | None = None
        self._end: asyncio.Future[int] | None = None
        """The program's status. None: nobody has asked for its end."""
        self._last_name = ""

    async def expect_job(self) -> None:
        """What waited so far is to work now: be promised memory, as others are at their start.

        Raises:
            OSError: there is too little memory, or the disk is full.
        """
        await self._aside(self._around.watch.look)  # what it uses already is not asked for again
        await self._around.claim()
        self._took_before = ended_for_want_of_memory()

    async def feed(self, message: bytes) -> None:
        """Write to stdin, then close it."""
        await self._stdin.write(message)

    async def ended(
        self,
        *,
        timeout_s: float,
        on_fact: Callable[[bytes], None],
        grace_s: float = _GRACE_S,
        on_stop: Callable[[], None] = lambda: None,
    ) -> Ended:
        """Wait for the end; when this returns, nothing of the program is left.

        `grace_s`: between being asked to end, which `on_stop` hears of, and its end by force.

        Raises:
            OSError: it never began, the disk is full, or a process of it cannot be ended.
        """
        self._listen(on_fact)
        watching = asyncio.create_task(self._watch(), name="sandbox.watch")
        try:
            timed_out = not await self._exit.within(timeout_s)
            if timed_out:
                on_stop()
                await self._ask_to_end(grace_s)
        finally:
            await self.kill()
            (problem,) = await asyncio.gather(watching, return_exceptions=True)
        if isinstance(problem, Exception):
            raise problem
        return self._told(timed_out=timed_out and self._excess is None)

    async def kill(self) -> None:
        """End the whole tree at once.

        Raises:
            OSError: a process of it cannot be ended.
        """
        if self._end is None:
            self._was_asked = self._was_asked or not self._exit.is_seen
            self._end = asyncio.ensure_future(self._clear())
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
        """As a person at a terminal does: that is what test runners tidy up for."""
        self._was_asked = True
        self._signal(signal.SIGINT)
        if not await self._exit.within(grace_s):
            self._signal(signal.SIGKILL)
            await self._hear_last_words(last_words_s(grace_s))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    async def _hear_last_words(self, within_s: float) -> None:
        """Of what its own processes had started: an encoder ends its video when nobody feeds it."""
        until = time.monotonic() + within_s
        await self._exit.within(within_s)
        left_s = max(0.0, until - time.monotonic())
        await self._aside(partial(self._around.tree.wait_for_others, left_s))

    async def _watch(self) -> None:
        """Look until the program ends, which we see to when it goes over a limit."""
        pause_s = _FIRST_LOOK_S
        try:
            while self._excess is None and not await self._exit.within(pause_s):
                self._excess = await self._aside(self._around.watch.look)
                pause_s = min(self._around.watch.pause_s, pause_s * 2)
        finally:
            if not self._exit.is_seen:
                await self.kill()

    async def _clear(self) -> int:
        try:
            await self._aside(self._around.tree.kill)
        except OSError:  # something of it still runs: its user and its number stay taken
            self._close_pipes()
            self._exit.close()
            raise
        await self._exit.within(_GRACE_S)
        seen = look_up(self._pid)
        self._last_name = "" if seen is None else seen.name
        try:
            self._close_pipes()
        finally:
            status = self._around.tree.reap()
            self._exit.close()
            await self._around.release()
        return status

    def _close_pipes(self) -> None:
        with contextlib.ExitStack() as each:  # whatever one of them comes to
            each.callback(self._stdin.close)
            for reader in self._readers:
                each.callback(reader.finish)
            if self._facts_pipe is not None:
                each.callback(os.close, self._facts_pipe)
                self._facts_pipe = None

    def _told(self, *, timed_out: bool) -> Ended:
        status = self._end.result() if self._end else 0
        end = ExitState(
            status=status,
            last_name=self._last_name,
            was_asked=self._was_asked,
            timed_out=timed_out,
            excess=self._excess,
            was_refused_memory=self._around.watch.was_refused_memory,
            system_took_some=ended_for_want_of_memory() > self._took_before,
            peak_mb=self._around.watch.peak_mb,
            took_s=self._exit.seen_at - self._started,
            log=self._log.close(is_cut=self._was_asked or os.WIFSIGNALED(status)),
            any_facts=self._facts.any,
            facts_cut=self._facts.cut,
        )
        return describe_exit(end, self._limits)

    def _now_ms(self) -> float:
        return (time.monotonic() - self._started) * 1000

    async def _aside(self, function: Callable[[], AnswerT]) -> AnswerT:
        return await asyncio.get_running_loop().run_in_executor(self._around.threads, function)


class ChildExit:
    """Waits by the process's descriptor; nobody else's children are touched."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)
        self._seen = asyncio.Event()
        self.seen_at = 0.0
        """By the monotonic clock; 0 before."""
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._see)
        except OSError:
            os.close(self._descriptor)
            raise

    @property
    def is_seen(self) -> bool:
        """Whether it has ended."""
        return self._seen.is_set()

    async def within(self, seconds: float) -> bool:
        """Whether it ends in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._seen.wait()
        except TimeoutError:
            return self.is_seen
        return True

    def close(self) -> None:
        """Nobody asks any more."""
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
