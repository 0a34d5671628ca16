"""A program under way in the sandbox: what it says, what it uses, and its end."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Final, TypeVar

import msgspec

from runners.kit.child_output import Facts, Log
from runners.kit.child_pipes import PipeReader, PipeWriter
from runners.kit.memory import used_mb
from runners.kit.process_tree import ProcessTree
from runners.kit.program import Ended, Limits

AnswerT = TypeVar("AnswerT")

_GRACE_S: Final = 2
"""Between the polite signal and the end of the whole tree."""
_LOOK_EVERY_S: Final = 0.25


class Spawned(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was just started, and our ends of its pipes."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    facts: int | None
    """None: the program has no such descriptor."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a child needs of the sandbox it is in."""

    tree: ProcessTree
    threads: Executor
    """For looking at processes, which blocks."""
    kill_at_once: Callable[[], None] | None
    """Ends all processes of the child's user. None: it has no user of its own."""
    release: Callable[[], Awaitable[None]]
    """Gives back what the child had borrowed; called once, when nothing of it is left."""


class Child:
    """One program; whoever starts it waits for its end or kills it."""

    def __init__(self, spawned: Spawned, limits: Limits, around: Surroundings) -> None:
        self._pid = spawned.pid
        self._limits = limits
        self._around = around
        self._started = time.monotonic()
        self._log = Log(limits.log_bytes, now_ms=self._now_ms)
        self._facts = Facts()
        self._on_fact: Callable[[bytes], None] = _ignore
        self._stdin = PipeWriter(spawned.stdin)
        self._readers = [
            PipeReader(spawned.stdout, lambda data: self._log.take("INFO", data)),
            PipeReader(spawned.stderr, lambda data: self._log.take("ERROR", data)),
        ]
        self._facts_pipe = spawned.facts
        """Read from `ended` on: until then the pipe itself holds what comes. None: no more."""
        self._exit = _Exit(spawned.pid)
        self._peak_mb = 0.0
        self._out_of_memory = False
        self._end: asyncio.Future[int] | None = None
        """How the program ended. None: nobody has asked for its end."""

    async def feed(self, message: bytes) -> None:
        """Write to stdin, then close it."""
        await self._stdin.write(message)

    async def ended(self, *, timeout_s: float, on_fact: Callable[[bytes], None]) -> Ended:
        """Wait for the end; when this returns, nothing of the program is left.

        Raises:
            OSError: a process of it cannot be ended.
        """
        self._listen(on_fact)
        watch = asyncio.create_task(self._watch(), name="sandbox.watch")
        try:
            timed_out = not await self._exit.within(timeout_s)
            if timed_out:
                await self._ask_to_end()
        finally:
            watch.cancel()
            await self.kill()
        return self._told(timed_out=timed_out)

    async def kill(self) -> None:
        """End the whole tree at once.

        Raises:
            OSError: a process of it cannot be ended.
        """
        if self._end is None:
            self._end = asyncio.ensure_future(self._clear())
        await asyncio.shield(self._end)

    def _listen(self, on_fact: Callable[[bytes], None]) -> None:
        self._stdin.close()
        self._on_fact = on_fact
        if self._facts_pipe is not None:
            self._readers.append(PipeReader(self._facts_pipe, self._take_facts))
            self._facts_pipe = None

    def _take_facts(self, data: bytes) -> None:
        for line in self._facts.take(data):
            self._on_fact(line)

    async def _ask_to_end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGTERM)
        await self._exit.within(_GRACE_S)

    async def _watch(self) -> None:
        while not self._out_of_memory:
            await asyncio.sleep(_LOOK_EVERY_S)
            used = await self._aside(lambda: used_mb(self._around.tree.living()))
            self._peak_mb = max(self._peak_mb, used)
            self._out_of_memory = used > self._limits.memory_mb
        await self.kill()

    async def _clear(self) -> int:
        around = self._around
        await self._aside(lambda: around.tree.kill(also=around.kill_at_once))
        await self._exit.within(_GRACE_S)
        self._close_pipes()
        status, largest_mb = around.tree.reap()
        self._peak_mb = max(self._peak_mb, largest_mb)
        self._exit.close()
        await around.release()
        return status

    def _close_pipes(self) -> None:
        self._stdin.close()
        for reader in self._readers:
            reader.finish()
        if self._facts_pipe is not None:
            os.close(self._facts_pipe)
            self._facts_pipe = None

    def _told(self, *, timed_out: bool) -> Ended:
        code = os.waitstatus_to_exitcode(self._end.result() if self._end else 0)
        return Ended(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=timed_out,
            out_of_memory=self._out_of_memory,
            peak_mb=self._peak_mb,
            took_s=self._now_ms() / 1000,
            log=self._log.close(),
            facts_cut=self._facts.cut,
        )

    def _now_ms(self) -> float:
        return (time.monotonic() - self._started) * 1000

    async def _aside(self, function: Callable[[], AnswerT]) -> AnswerT:
        return await asyncio.get_running_loop().run_in_executor(self._around.threads, function)


class _Exit:
    """Notices the end of a process without waiting for it, so that its number stays taken."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)
        self._seen = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._descriptor, self._see)

    async def within(self, seconds: float) -> bool:
        """Whether the process ended in time."""
        try:
            await asyncio.wait_for(self._seen.wait(), seconds)
        except TimeoutError:
            return self._seen.is_set()
        return True

    def close(self) -> None:
        """Nobody asks any more."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _see(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        self._seen.set()


def _ignore(_: bytes) -> None:
    """Nobody listens yet."""
