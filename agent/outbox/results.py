"""Results that wait for delivery: in memory first, on disk while the service is away."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import structlog

from agent.data_folder import unusable
from agent.outbox.result_files import ResultFile, ResultFolder, UnreadableResultFileError
from agent.telemetry.metrics import Metrics
from contract.agent_api import MAX_RESULTS, MAX_RESULTS_BYTES
from contract.job import Lease
from redaction.clean import Clean

MEMORY_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Above this, results go to disk even while the service is there; it is also the bound where
nothing can be written."""
_BOUND_EACH_S: Final = 0.5
_BROKEN_FILES_KEPT: Final = 16

log = structlog.get_logger(__name__)


def make_steady_clock() -> Callable[[], float]:
    """A clock of Unix time that never jumps: read once, then counted on by the machine's uptime.

    A calendar set right while results wait would make them all too old at once.
    """
    booted_at_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return lambda: booted_at_s + time.clock_gettime(time.CLOCK_BOOTTIME)


class Waiting(msgspec.Struct, frozen=True):
    """One result on its way."""

    lease: Lease
    body: bytes
    """What the scrubber searched, byte for byte."""
    put_at_s: float
    """Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """How much may wait, and for how long."""

    max_bytes: int
    max_age_s: float
    memory_bytes: int = MEMORY_LIMIT_BYTES


class DiskSpool:
    """Takes clean results only, hands them out oldest first, keeps each until it is settled.

    The event loop's thread only; files are written and read by worker threads.
    """

    def __init__(
        self,
        folder: ResultFolder,
        *,
        limits: SpoolLimits,
        metrics: Metrics,
        wall_clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._metrics = metrics
        self._wall_clock = wall_clock
        self._fresh: deque[Waiting] = deque()
        self._fresh_bytes = 0
        self._read: deque[Waiting] = deque()
        """What is left of the oldest file, `_reading`."""
        self._reading: ResultFile | None = None
        """None: no file is being delivered."""
        self._out = 0
        """How many are with whoever delivers."""
        self._between = 0
        """How many are on their way from memory to disk, or back."""
        self._files: deque[ResultFile] = deque()
        self._broken: list[Path] = []
        self._writable = False
        self._is_failing = False
        """Whether the disk did not take the last file."""
        self._disk = asyncio.Lock()
        self._moving: asyncio.Task[None] | None = None
        """The newest move to disk, kept so that it is not collected. None: there was none."""
        self.arrived = asyncio.Event()
        """Set when something was put; whoever delivers clears it."""

    async def open(self) -> None:
        """Take over what an earlier process left; without a usable folder, warn and go on."""
        try:
            found, self._broken = await asyncio.to_thread(self._folder.open)
        except OSError as problem:
            log.warning("spool.memory_only", because=unusable(problem))
            return
        self._writable = True
        self._files.extend(found)
        if found:
            log.info("spool.taken_over", results=self.waiting())
            self.arrived.set()

    def put(self, clean: Clean) -> None:
        """Keep this result until it is delivered; it never waits and never fails."""
        self._keep(Waiting(clean.result.lease, clean.body, self._wall_clock()))
        self.arrived.set()

    def waiting(self) -> int:
        """How many results are not settled yet."""
        on_disk = sum(file.count for file in self._files)
        return len(self._fresh) + len(self._read) + on_disk + self._out + self._between

    async def keep(self) -> None:
        """Hold memory within its bound; runs until it is cancelled."""
        while True:
            await asyncio.sleep(_BOUND_EACH_S)
            if self._is_over_memory():
                await self.persist()

    async def next_batch(
        self, *, most: int = MAX_RESULTS, most_bytes: int = MAX_RESULTS_BYTES
    ) -> tuple[Waiting, ...]:
        """The oldest results, as many as fit into one request; at least one if any waits.

        They are out until they are `delivered` or `put_back`; there is one batch at a time.
        """
        if not self._read and (self._files or self._between):
            async with self._disk:
                await self._read_oldest()
        batch = self._take(self._read or self._fresh, most=most, most_bytes=most_bytes)
        self._out = len(batch)
        return batch

    async def delivered(self, batch: tuple[Waiting, ...]) -> None:
        """These are settled, whatever the service made of them."""
        self._out -= len(batch)
        if self._reading is not None and not self._read:
            done, self._reading = self._reading, None
            await asyncio.to_thread(self._folder.remove, [done.path])

    def put_back(self, batch: tuple[Waiting, ...]) -> None:
        """These could not be delivered now; they stay the oldest."""
        self._out -= len(batch)
        if self._reading is not None:
            self._read.extendleft(reversed(batch))
        else:
            self._fresh.extendleft(reversed(batch))
            self._fresh_bytes += sum(len(one.body) for one in batch)

    async def persist(self) -> None:
        """Move what is in memory to disk; what cannot be written stays, within its bound.

        Once begun it ends, even when whoever asked is cancelled: a batch half way is in no queue.
        """
        self._moving = asyncio.create_task(self._move_to_disk(), name="spool-persist")
        await asyncio.shield(self._moving)

    async def _move_to_disk(self) -> None:
        async with self._disk:
            while self._fresh and self._writable:
                batch = self._take(self._fresh, most=MAX_RESULTS, most_bytes=MAX_RESULTS_BYTES)
                if not await self._write(batch):
                    break
            await self._enforce_limits()
        self._bound_memory()

    def _keep(self, waiting: Waiting) -> None:
        self._fresh.append(waiting)
        self._fresh_bytes += len(waiting.body)

    def _take(self, queue: deque[Waiting], *, most: int, most_bytes: int) -> tuple[Waiting, ...]:
        batch: list[Waiting] = []
        room_bytes = most_bytes
        while queue and len(batch) < most and (not batch or len(queue[0].body) < room_bytes):
            batch.append(queue.popleft())
            room_bytes -= len(batch[-1].body) + 1
        if queue is self._fresh:
            self._fresh_bytes -= sum(len(one.body) for one in batch)
        return tuple(batch)

    async def _write(self, batch: tuple[Waiting, ...]) -> bool:
        bodies = [waiting.body for waiting in batch]
        self._between = len(batch)
        writing = asyncio.to_thread(self._folder.write, bodies, put_at_s=batch[0].put_at_s)
        try:
            file = await writing
        except OSError as problem:
            if not self._is_failing:
                log.warning("spool.not_written", results=len(batch), because=problem.strerror)
            self._is_failing = True
            self._fresh.extendleft(reversed(batch))
            self._fresh_bytes += sum(map(len, bodies))
            return False
        finally:
            self._between = 0
        if self._is_failing:
            log.info("spool.written_again")
        self._is_failing = False
        self._files.append(file)
        return True

    async def _read_oldest(self) -> None:
        while self._files and not self._read:
            file = self._files.popleft()
            self._between = file.count
            try:
                found = await asyncio.to_thread(self._folder.read, file)
            except UnreadableResultFileError as problem:
                await self._set_aside(file, str(problem))
            except FileNotFoundError:
                # Another agent that shares the folder has delivered it, or somebody deleted it.
                log.warning("spool.file_gone", results=file.count)
            except OSError as problem:
                self._drop(file.count, "unreadable", because=problem.strerror or "")
            else:
                self._read.extend(
                    Waiting(result.lease, body, file.put_at_s) for result, body in found
                )
                self._reading = file
            finally:
                self._between = 0

    async def _set_aside(self, file: ResultFile, because: str) -> None:
        self._drop(file.count, "broken", because=because)
        try:
            await asyncio.to_thread(self._folder.set_aside, file)
        except OSError as problem:
            log.warning("spool.not_set_aside", because=str(problem))

    async def _enforce_limits(self) -> None:
        oldest_s = self._wall_clock() - self._limits.max_age_s
        total = sum(file.size_bytes for file in self._files)
        gone: list[Path] = self._broken[:-_BROKEN_FILES_KEPT]
        self._broken = self._broken[-_BROKEN_FILES_KEPT:]
        while self._files:
            too_old = self._files[0].put_at_s < oldest_s
            if not too_old and total <= self._limits.max_bytes:
                break
            file = self._files.popleft()
            total -= file.size_bytes
            gone.append(file.path)
            self._drop(file.count, "too old" if too_old else "no room")
        if gone:
            await asyncio.to_thread(self._folder.remove, gone)

    def _is_over_memory(self) -> bool:
        return self._fresh_bytes > self._limits.memory_bytes

    def _bound_memory(self) -> None:
        oldest_s = self._wall_clock() - self._limits.max_age_s
        dropped = 0
        while self._fresh and (self._is_over_memory() or self._fresh[0].put_at_s < oldest_s):
            self._fresh_bytes -= len(self._fresh.popleft().body)
            dropped += 1
        if dropped:
            self._drop(dropped, "no room in memory, or too old")

    def _drop(self, count: int, reason: str, *, because: str = "") -> None:
        self._metrics.results_dropped(count)
        log.error("results.dropped", count=count, reason=reason, because=because)
