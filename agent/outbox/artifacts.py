"""Artifacts that wait to be uploaded, and those that were dropped."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Final

import structlog

from agent.data_folder import unusable
from agent.jobs.leases import Leases
from agent.outbox.artifact_files import (
    ArtifactBatch,
    Broken,
    Legacy,
    ParcelFolder,
    UnreadableParcelError,
    count_files,
    files_in,
    unpack,
    write_letter,
)
from agent.outbox.redact import without
from agent.outbox.results import DiskSpool, SpoolLimits
from agent.telemetry.metrics import Metrics
from contract.result import Artifact
from redaction.clean import Clean, CleanFile, saying
from sandbox.workspace import Workspace

log = structlog.get_logger(__name__)


class Losses:
    """Counts each loss once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def without(self, clean: Clean, artifacts: Sequence[Artifact], because: str) -> Clean:
        """The result, which says so. Encoded anew: what is added is not a target's word."""
        outcome = clean.result.outcome
        for artifact in artifacts:
            outcome = without(outcome, artifact, because=because)
        self._files(len(artifacts), because, job_id=clean.result.job_id)
        return saying(clean, outcome)

    def of_names(
        self, clean: Clean, files: Sequence[CleanFile]
    ) -> tuple[Clean, tuple[CleanFile, ...]]:
        """Without files whose name held a secret: the result calls them by another one."""
        named = clean.result.outcome.artifacts
        kept = tuple(file for file in files if file.artifact in named)
        if len(kept) == len(files):
            return clean, kept
        held = [file.artifact for file in kept]
        strange = [one for one in named if one not in held]
        return self.without(clean, strange, "its name held a secret"), kept

    def too_old(self, job_id: str, files: int) -> None:
        """A result waited for its files for too long."""
        self._files(files, "too old", job_id=job_id)
        self._result("too old", job_id=job_id)

    def unreadable(self, parcel: ArtifactBatch, because: str) -> None:
        """A result and its files are gone."""
        self._files(parcel.files, "broken", because=because)
        self._result("broken", job_id=parcel.lease.job_id)

    def left_broken(self, broken: Broken) -> None:
        """What an earlier process left is of no use."""
        self._files(broken.files, "broken", because=broken.because)
        if broken.is_finished:
            self._result("broken", because=broken.because)

    def _files(self, count: int, reason: str, **more: str) -> None:
        self._metrics.artifacts_dropped(count)
        log.error("artifacts.dropped", count=count, reason=reason, **more)

    def _result(self, reason: str, **more: str) -> None:
        self._metrics.results_dropped(1)
        log.error("results.dropped", count=1, reason=reason, **more)


_LOOK_EACH_S: Final = 60.0


class Artifacts:
    """Takes clean files only, each with the result that names it, which follows when they arrived.

    The event loop's thread only; files are moved, written and read by worker threads.
    """

    def __init__(  # noqa: PLR0913 - what it keeps files in, and what it hands their results to
        self,
        folder: ParcelFolder,
        spool: DiskSpool,
        leases: Leases,
        *,
        metrics: Metrics,
        limits: SpoolLimits,
        wall_clock: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._spool = spool
        self._leases = leases
        self._losses = Losses(metrics)
        self._limits = limits
        self._wall_clock = wall_clock
        self._parcels: deque[ArtifactBatch] = deque()
        """In the order in which they are tried."""
        self._out: ArtifactBatch | None = None
        """The one that is being delivered. None: none is."""
        self._unwritten: dict[Path, Clean] = {}
        """Results that changed since they were packed, and could not be written down so."""
        self._at_work: set[asyncio.Task[None]] = set()
        self.arrived = asyncio.Event()
        """Set when there is something to deliver; whoever delivers clears it."""

    async def open(self) -> None:
        """Take over what an earlier process left; without a usable folder, warn and go on."""
        try:
            left = await asyncio.to_thread(self._folder.open)
        except OSError as problem:
            log.warning("artifacts.temporary", because=unusable(problem))
            self._folder.open_elsewhere()
            return
        self._inherit(left)

    async def keep(self) -> None:
        """Try again what could not be taken over before; runs until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EACH_S)
            await self._wholly(self._look_again())

    async def close(self) -> None:
        """Leave what waits to the next agent; what will not last lets its results go.

        Before the spool is written to disk, which takes them.
        """
        while self._at_work:
            await asyncio.wait(self._at_work)
        await self.let_results_go()
        if not self._folder.lasts:
            for parcel in self._parcels:
                self._losses.unreadable(parcel, "it could not be read, and there is no disk")
        await asyncio.to_thread(self._folder.close)

    async def let_results_go(self) -> None:
        """Where no agent will find the files, let their results go without them."""
        if not self._folder.lasts:
            for parcel in tuple(self._parcels):
                await self._wholly(self._strip(parcel, "the agent ended, and has no disk"))

    def workspace(self) -> Workspace:
        """A new run's folder."""
        return Workspace(self._folder.runs)

    def waiting(self) -> int:
        """How many results wait for their files."""
        return len(self._parcels) + (self._out is not None)

    def waiting_files(self) -> int:
        """How many files wait."""
        out = (self._out,) if self._out else ()
        return sum(parcel.files for parcel in (*self._parcels, *out))

    async def put(self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float) -> None:
        """Keep a result and its files until they are delivered."""
        await self._wholly(self._pack(clean, files, lease_s))

    async def next(self) -> ArtifactBatch | None:
        """The result with files whose turn it is. None: there is none.

        It is out until it is `delivered` or `put_back`; there is one at a time.
        """
        await self._wholly(self._enforce_limits())
        self._out = self._parcels.popleft() if self._parcels else None
        return self._out

    def put_back(self, parcel: ArtifactBatch) -> None:
        """It could not be delivered now; the others come first, for it may be its own fault."""
        if self._out is parcel:  # else it is settled
            self._out = None
            self._parcels.append(parcel)

    async def unpack(self, parcel: ArtifactBatch) -> Clean | None:
        """The result. None: the parcel is broken, and given up.

        Raises:
            OSError: it cannot be read now.
        """
        if (changed := self._unwritten.get(parcel.folder)) is not None:
            return changed
        try:
            return await asyncio.to_thread(unpack, parcel)
        except UnreadableParcelError as problem:
            self._losses.unreadable(parcel, str(problem))
            await self._close(parcel)
            return None

    async def give_up(
        self, parcel: ArtifactBatch, clean: Clean, artifact: Artifact, because: str
    ) -> Clean:
        """One of its files will never be delivered; the result without it."""
        left = self._losses.without(clean, (artifact,), because)
        self._unwritten[parcel.folder] = left
        try:
            await asyncio.to_thread(write_letter, parcel.folder, left, parcel.lease_s)
            parcel.file(artifact.name).unlink(missing_ok=True)
        except OSError as problem:  # a full disk: it must be neither counted nor tried again
            log.warning("artifacts.not_noted", because=str(problem))
        else:
            del self._unwritten[parcel.folder]
        return left

    async def give_up_rest(self, parcel: ArtifactBatch, because: str) -> None:
        """Nothing more of it will be delivered but its result.

        Raises:
            OSError: the result cannot be read now.
        """
        if (clean := await self.unpack(parcel)) is not None:
            await self.delivered(parcel, await self._without_rest(parcel, clean, because))

    async def delivered(self, parcel: ArtifactBatch, clean: Clean) -> None:
        """All its files are settled: now the result may go."""
        self._spool.put(clean)
        await self._close(parcel)

    async def _look_again(self) -> None:
        self._inherit(await asyncio.to_thread(self._folder.look_again))

    def _inherit(self, left: Legacy) -> None:
        for broken in left.broken:
            self._losses.left_broken(broken)
        if not left.parcels:
            return
        self._parcels.extend(left.parcels)
        for parcel in left.parcels:
            self._leases.wait_for(parcel.lease, lease_s=parcel.lease_s)
        files = sum(parcel.files for parcel in left.parcels)
        log.info("artifacts.taken_over", results=len(left.parcels), files=files)
        self.arrived.set()

    async def _wholly(self, work: Coroutine[object, object, None]) -> None:
        """Once begun it ends, even when whoever asked is cancelled: half a parcel is nobody's."""
        task = asyncio.create_task(work, name="artifacts")
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        await asyncio.shield(task)

    async def _pack(self, clean: Clean, files: Sequence[CleanFile], lease_s: float) -> None:
        clean, files = self._losses.of_names(clean, files)
        now_s = self._wall_clock()
        try:
            parcel = await asyncio.to_thread(
                self._folder.pack, clean, files, lease_s=lease_s, put_at_s=now_s
            )
        except (OSError, UnreadableParcelError) as problem:
            strange = problem.strerror if isinstance(problem, OSError) else str(problem)
            because = strange or "it cannot be kept"
            self._spool.put(self._losses.without(clean, clean.result.outcome.artifacts, because))
            return
        self._parcels.append(parcel)
        self._leases.wait_for(parcel.lease, lease_s=lease_s)
        await self._enforce_limits()
        self.arrived.set()

    async def _enforce_limits(self) -> None:
        """Give up the oldest files that are too many bytes or too old."""
        oldest_s = self._wall_clock() - self._limits.max_age_s
        for parcel in sorted(self._parcels, key=lambda one: one.put_at_s):
            if parcel.put_at_s < oldest_s:
                await self._expire(parcel)
            elif sum(one.size_bytes for one in self._parcels) > self._limits.max_bytes:
                await self._strip(parcel, "no room")

    async def _expire(self, parcel: ArtifactBatch) -> None:
        if parcel not in self._parcels:  # it is being delivered
            return
        self._parcels.remove(parcel)
        files = await asyncio.to_thread(count_files, parcel.folder, otherwise=parcel.files)
        self._losses.too_old(parcel.lease.job_id, files)
        await self._close(parcel)

    async def _strip(self, parcel: ArtifactBatch, because: str) -> None:
        """Let a result go without its files, if it can be read."""
        if parcel not in self._parcels:  # it is being delivered
            return
        self._parcels.remove(parcel)
        try:
            await self.give_up_rest(parcel, because)
        except OSError as problem:
            log.warning("artifacts.not_read", parcel=parcel.folder.name, because=str(problem))
            self._parcels.append(parcel)

    async def _without_rest(self, parcel: ArtifactBatch, clean: Clean, because: str) -> Clean:
        """The result, which names what arrived before, and says what became of the rest."""
        left = await asyncio.to_thread(files_in, parcel.folder)
        artifacts = [one for one in clean.result.outcome.artifacts if one.name in left]
        return self._losses.without(clean, artifacts, because)

    async def _close(self, parcel: ArtifactBatch) -> None:
        if self._out is parcel:
            self._out = None
        self._unwritten.pop(parcel.folder, None)
        self._leases.let_go(parcel.lease)
        await asyncio.to_thread(self._folder.remove, parcel)
