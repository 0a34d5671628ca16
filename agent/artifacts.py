"""Results with files that wait: on disk, oldest first, within the bounds of the spool."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import structlog

from agent.enclosures import without
from agent.parcels import Parcel, ParcelFolder, UnreadableParcelError
from agent.spool import SpoolLimits
from contract.job import Lease
from contract.result import Artifact
from contract.wire import encode
from runners.kit.scrub import Clean, CleanFile
from runners.kit.workspace import Workspace

log = structlog.get_logger(__name__)


class ResultSpool(Protocol):
    """Where a result goes once its files are delivered."""

    def put(self, clean: Clean) -> None:
        """Keep this result until it is delivered."""


class WaitingLeases(Protocol):
    """Keeps the leases of runs that are over, and whose files are on their way."""

    def wait_for(self, lease: Lease, *, lease_s: float) -> None:
        """Renew this lease until it is let go."""

    def let_go(self, lease: Lease) -> None:
        """The result is on its way."""


class DropMeter(Protocol):
    """Where it is counted what nobody will get."""

    def artifacts_dropped(self, count: int) -> None:
        """So many files were given up."""

    def results_dropped(self, count: int) -> None:
        """So many results were given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heirs:
    """Who is told what became of a result with files."""

    spool: ResultSpool
    leases: WaitingLeases
    meter: DropMeter


class Artifacts:
    """Takes clean files only, each with the result that names it, which follows when they arrived.

    The event loop's thread only; files are moved, written and read by worker threads.
    """

    def __init__(
        self,
        folder: ParcelFolder,
        heirs: Heirs,
        *,
        limits: SpoolLimits,
        wall_clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._spool, self._leases, self._meter = heirs.spool, heirs.leases, heirs.meter
        self._limits = limits
        self._wall_clock = wall_clock
        self._parcels: deque[Parcel] = deque()
        self._out: Parcel | None = None
        """The one that is being delivered. None: none is."""
        self._packing: set[asyncio.Task[None]] = set()
        self.arrived = asyncio.Event()
        """Set when there is something to deliver; whoever delivers clears it."""

    async def open(self) -> None:
        """Take over what an earlier process left; without a usable folder, warn and go on."""
        try:
            found = await asyncio.to_thread(self._folder.open)
        except OSError as problem:
            log.warning("artifacts.temporary", because=str(problem))
            self._folder.open_elsewhere()
            return
        self._parcels.extend(found)
        for parcel in found:
            self._leases.wait_for(parcel.lease, lease_s=parcel.lease_s)
        if found:
            log.info("artifacts.taken_over", results=len(found), files=self.waiting_files())
            self.arrived.set()

    async def close(self) -> None:
        """Leave what waits to the next agent, if the disk lasts."""
        if not self._folder.lasts and (files := self.waiting_files()):
            self._drop(files, "no disk")
        await asyncio.to_thread(self._folder.close)

    def workspace(self) -> Workspace:
        """A new run's folder, on the same disk if that lasts."""
        return Workspace(self._folder.own)

    def waiting(self) -> int:
        """How many results wait for their files."""
        return len(self._parcels) + (self._out is not None)

    def waiting_files(self) -> int:
        """How many files wait."""
        out = (self._out,) if self._out else ()
        return sum(parcel.files for parcel in (*self._parcels, *out))

    async def put(self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float) -> None:
        """Keep a result and its files until they are delivered.

        Once begun it ends, even when whoever asked is cancelled: half a parcel is nobody's.
        """
        packing = asyncio.create_task(self._pack(clean, files, lease_s), name="artifacts-pack")
        self._packing.add(packing)
        packing.add_done_callback(self._packing.discard)
        await asyncio.shield(packing)

    async def _pack(self, clean: Clean, files: Sequence[CleanFile], lease_s: float) -> None:
        clean, files = self._matched(clean, files)
        now_s = self._wall_clock()
        try:
            parcel = await asyncio.to_thread(
                self._folder.pack, clean, files, lease_s=lease_s, put_at_s=now_s
            )
        except OSError as problem:
            because = problem.strerror or "it cannot be kept"
            self._spool.put(self._given_up(clean, clean.result.outcome.artifacts, because))
            return
        self._parcels.append(parcel)
        self._leases.wait_for(parcel.lease, lease_s=lease_s)
        await self.enforce_limits()
        self.arrived.set()

    async def next(self) -> Parcel | None:
        """The oldest result with files. None: there is none.

        It is out until it is `delivered` or `put_back`; there is one at a time.
        """
        await self.enforce_limits()
        self._out = self._parcels.popleft() if self._parcels else None
        return self._out

    def put_back(self, parcel: Parcel) -> None:
        """It could not be delivered now; it stays the oldest."""
        self._out = None
        self._parcels.appendleft(parcel)

    async def unpack(self, parcel: Parcel) -> Clean | None:
        """The result. None: the parcel is broken, and given up."""
        try:
            return await asyncio.to_thread(self._folder.unpack, parcel)
        except UnreadableParcelError as problem:
            self._drop(parcel.files, "broken", because=str(problem))
            self._meter.results_dropped(1)
            await self._close(parcel)
            return None

    async def give_up(
        self, parcel: Parcel, clean: Clean, artifact: Artifact, because: str
    ) -> Clean:
        """One of its files will never be delivered; the result without it."""
        left = self._given_up(clean, (artifact,), because)
        await asyncio.to_thread(self._folder.repack, parcel, left)
        return left

    async def delivered(self, parcel: Parcel, clean: Clean) -> None:
        """All its files are settled: now the result may go."""
        self._spool.put(clean)
        await self._close(parcel)

    async def enforce_limits(self) -> None:
        """Give up the oldest files that are too many bytes or too old."""
        oldest_s = self._wall_clock() - self._limits.max_age_s
        while self._parcels:
            too_old = self._parcels[0].put_at_s < oldest_s
            total = sum(parcel.size_bytes for parcel in self._parcels)
            if not too_old and total <= self._limits.max_bytes:
                return
            await self._give_up_whole(self._parcels.popleft(), is_too_old=too_old)

    async def _give_up_whole(self, parcel: Parcel, *, is_too_old: bool) -> None:
        clean = await self.unpack(parcel)
        if clean is None:
            return
        because = "too old" if is_too_old else "no room"
        left = self._given_up(clean, clean.result.outcome.artifacts, because)
        if is_too_old:
            self._meter.results_dropped(1)
            log.error("results.dropped", count=1, reason=because)
        else:
            self._spool.put(left)
        await self._close(parcel)

    def _matched(
        self, clean: Clean, files: Sequence[CleanFile]
    ) -> tuple[Clean, tuple[CleanFile, ...]]:
        """Without files whose name held a secret: the result calls them by another one."""
        named = clean.result.outcome.artifacts
        kept = tuple(file for file in files if file.artifact in named)
        if len(kept) == len(files):
            return clean, kept
        held = [file.artifact for file in kept]
        strange = [one for one in named if one not in held]
        return self._given_up(clean, strange, "its name held a secret"), kept

    def _given_up(self, clean: Clean, artifacts: Sequence[Artifact], because: str) -> Clean:
        """The result, which says so. Encoded anew: what is added is not a target's word."""
        outcome = clean.result.outcome
        for artifact in artifacts:
            outcome = without(outcome, artifact, because=because)
        self._drop(len(artifacts), because, job_id=clean.result.job_id)
        result = msgspec.structs.replace(clean.result, outcome=outcome)
        return Clean(result, encode(result))

    async def _close(self, parcel: Parcel) -> None:
        if self._out is parcel:
            self._out = None
        self._leases.let_go(parcel.lease)
        await asyncio.to_thread(self._folder.remove, parcel)

    def _drop(self, count: int, reason: str, **more: str) -> None:
        self._meter.artifacts_dropped(count)
        log.error("artifacts.dropped", count=count, reason=reason, **more)
