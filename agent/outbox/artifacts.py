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
    ArtifactFolder,
    BrokenBatch,
    TakenOver,
    UnreadableBatchError,
    count_files,
    list_files,
    unpack,
    write_manifest,
)
from agent.outbox.redact import drop_artifact
from agent.outbox.results import DiskSpool, SpoolLimits
from agent.telemetry.metrics import Metrics
from contract.result import Artifact
from redaction.clean import Clean, CleanFile, replace_outcome
from sandbox.workspace import Workspace

log = structlog.get_logger(__name__)


class DroppedArtifacts:
    """Counts each loss once."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def drop_files(self, clean: Clean, artifacts: Sequence[Artifact], because: str) -> Clean:
        """The result, which says so. Encoded anew: what is added is not a target's word."""
        outcome = clean.result.outcome
        for artifact in artifacts:
            outcome = drop_artifact(outcome, artifact, because=because)
        self._count_files(len(artifacts), because, job_id=clean.result.job_id)
        return replace_outcome(clean, outcome)

    def drop_renamed(
        self, clean: Clean, files: Sequence[CleanFile]
    ) -> tuple[Clean, tuple[CleanFile, ...]]:
        """Without files whose name held a secret: the result calls them by another one."""
        named = clean.result.outcome.artifacts
        kept = tuple(file for file in files if file.artifact in named)
        if len(kept) == len(files):
            return clean, kept
        held = [file.artifact for file in kept]
        strange = [one for one in named if one not in held]
        return self.drop_files(clean, strange, "its name held a secret"), kept

    def drop_expired(self, job_id: str, files: int) -> None:
        """A result waited for its files for too long."""
        self._count_files(files, "too old", job_id=job_id)
        self._count_result("too old", job_id=job_id)

    def drop_unreadable(self, batch: ArtifactBatch, because: str) -> None:
        """A result and its files are gone."""
        self._count_files(batch.files, "broken", because=because)
        self._count_result("broken", job_id=batch.lease.job_id)

    def drop_broken(self, broken: BrokenBatch) -> None:
        """What an earlier process left is of no use."""
        self._count_files(broken.files, "broken", because=broken.because)
        if broken.is_finished:
            self._count_result("broken", because=broken.because)

    def _count_files(self, count: int, reason: str, **more: str) -> None:
        self._metrics.artifacts_dropped(count)
        log.error("artifacts.dropped", count=count, reason=reason, **more)

    def _count_result(self, reason: str, **more: str) -> None:
        self._metrics.results_dropped(1)
        log.error("results.dropped", count=1, reason=reason, **more)


_LOOK_EACH_S: Final = 60.0


class Artifacts:
    """Takes clean files only, each with the result that names it, which follows when they arrived.

    The event loop's thread only; files are moved, written and read by worker threads.
    """

    def __init__(  # noqa: PLR0913 - what it keeps files in, and what it hands their results to
        self,
        folder: ArtifactFolder,
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
        self._dropped = DroppedArtifacts(metrics)
        self._limits = limits
        self._wall_clock = wall_clock
        self._batches: deque[ArtifactBatch] = deque()
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
        self._take_over(left)

    async def keep(self) -> None:
        """Try again what could not be taken over before; runs until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EACH_S)
            await self._run_to_end(self._retry_take_over())

    async def close(self) -> None:
        """Leave what waits to the next agent; what will not last lets its results go.

        Before the spool is written to disk, which takes them.
        """
        while self._at_work:
            await asyncio.wait(self._at_work)
        await self.release_results()
        if not self._folder.lasts:
            for batch in self._batches:
                self._dropped.drop_unreadable(batch, "it could not be read, and there is no disk")
        await asyncio.to_thread(self._folder.close)

    async def release_results(self) -> None:
        """Where no agent will find the files, let their results go without them."""
        if not self._folder.lasts:
            for batch in tuple(self._batches):
                await self._run_to_end(self._strip(batch, "the agent ended, and has no disk"))

    def workspace(self) -> Workspace:
        """A new run's folder."""
        return Workspace(self._folder.runs)

    def waiting(self) -> int:
        """How many results wait for their files."""
        return len(self._batches) + (self._out is not None)

    def waiting_files(self) -> int:
        """How many files wait."""
        out = (self._out,) if self._out else ()
        return sum(batch.files for batch in (*self._batches, *out))

    async def put(self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float) -> None:
        """Keep a result and its files until they are delivered."""
        await self._run_to_end(self._pack(clean, files, lease_s))

    async def next(self) -> ArtifactBatch | None:
        """The result with files whose turn it is. None: there is none.

        It is out until it is `delivered` or `put_back`; there is one at a time.
        """
        await self._run_to_end(self._enforce_limits())
        self._out = self._batches.popleft() if self._batches else None
        return self._out

    def put_back(self, batch: ArtifactBatch) -> None:
        """It could not be delivered now; the others come first, for it may be its own fault."""
        if self._out is batch:  # else it is settled
            self._out = None
            self._batches.append(batch)

    async def unpack(self, batch: ArtifactBatch) -> Clean | None:
        """The result. None: the batch is broken, and given up.

        Raises:
            OSError: it cannot be read now.
        """
        if (changed := self._unwritten.get(batch.folder)) is not None:
            return changed
        try:
            return await asyncio.to_thread(unpack, batch)
        except UnreadableBatchError as problem:
            self._dropped.drop_unreadable(batch, str(problem))
            await self._close(batch)
            return None

    async def give_up(
        self, batch: ArtifactBatch, clean: Clean, artifact: Artifact, because: str
    ) -> Clean:
        """One of its files will never be delivered; the result without it."""
        left = self._dropped.drop_files(clean, (artifact,), because)
        self._unwritten[batch.folder] = left
        try:
            await asyncio.to_thread(write_manifest, batch.folder, left, batch.lease_s)
            batch.file(artifact.name).unlink(missing_ok=True)
        except OSError as problem:  # a full disk: it must be neither counted nor tried again
            log.warning("artifacts.not_noted", because=str(problem))
        else:
            del self._unwritten[batch.folder]
        return left

    async def give_up_rest(self, batch: ArtifactBatch, because: str) -> None:
        """Nothing more of it will be delivered but its result.

        Raises:
            OSError: the result cannot be read now.
        """
        if (clean := await self.unpack(batch)) is not None:
            await self.delivered(batch, await self._drop_rest(batch, clean, because))

    async def delivered(self, batch: ArtifactBatch, clean: Clean) -> None:
        """All its files are settled: now the result may go."""
        self._spool.put(clean)
        await self._close(batch)

    async def _retry_take_over(self) -> None:
        self._take_over(await asyncio.to_thread(self._folder.retry_take_over))

    def _take_over(self, left: TakenOver) -> None:
        for broken in left.broken:
            self._dropped.drop_broken(broken)
        if not left.batches:
            return
        self._batches.extend(left.batches)
        for batch in left.batches:
            self._leases.hold_for_upload(batch.lease, lease_s=batch.lease_s)
        files = sum(batch.files for batch in left.batches)
        log.info("artifacts.taken_over", results=len(left.batches), files=files)
        self.arrived.set()

    async def _run_to_end(self, work: Coroutine[object, object, None]) -> None:
        """Once begun it ends, even when whoever asked is cancelled: half a batch is nobody's."""
        task = asyncio.create_task(work, name="artifacts")
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)
        await asyncio.shield(task)

    async def _pack(self, clean: Clean, files: Sequence[CleanFile], lease_s: float) -> None:
        clean, files = self._dropped.drop_renamed(clean, files)
        now_s = self._wall_clock()
        try:
            batch = await asyncio.to_thread(
                self._folder.pack, clean, files, lease_s=lease_s, put_at_s=now_s
            )
        except (OSError, UnreadableBatchError) as problem:
            strange = problem.strerror if isinstance(problem, OSError) else str(problem)
            because = strange or "it cannot be stored"
            self._spool.put(
                self._dropped.drop_files(clean, clean.result.outcome.artifacts, because)
            )
            return
        self._batches.append(batch)
        self._leases.hold_for_upload(batch.lease, lease_s=lease_s)
        await self._enforce_limits()
        self.arrived.set()

    async def _enforce_limits(self) -> None:
        """Give up the oldest files that are too many bytes or too old."""
        oldest_s = self._wall_clock() - self._limits.max_age_s
        for batch in sorted(self._batches, key=lambda one: one.put_at_s):
            if batch.put_at_s < oldest_s:
                await self._expire(batch)
            elif sum(one.size_bytes for one in self._batches) > self._limits.max_bytes:
                await self._strip(batch, "no room")

    async def _expire(self, batch: ArtifactBatch) -> None:
        if batch not in self._batches:  # it is being delivered
            return
        self._batches.remove(batch)
        files = await asyncio.to_thread(count_files, batch.folder, otherwise=batch.files)
        self._dropped.drop_expired(batch.lease.job_id, files)
        await self._close(batch)

    async def _strip(self, batch: ArtifactBatch, because: str) -> None:
        """Let a result go without its files, if it can be read."""
        if batch not in self._batches:  # it is being delivered
            return
        self._batches.remove(batch)
        try:
            await self.give_up_rest(batch, because)
        except OSError as problem:
            log.warning("artifacts.not_read", parcel=batch.folder.name, because=str(problem))
            self._batches.append(batch)

    async def _drop_rest(self, batch: ArtifactBatch, clean: Clean, because: str) -> Clean:
        """The result, which names what arrived before, and says what became of the rest."""
        left = await asyncio.to_thread(list_files, batch.folder)
        artifacts = [one for one in clean.result.outcome.artifacts if one.name in left]
        return self._dropped.drop_files(clean, artifacts, because)

    async def _close(self, batch: ArtifactBatch) -> None:
        if self._out is batch:
            self._out = None
        self._unwritten.pop(batch.folder, None)
        self._leases.drop_uploaded(batch.lease)
        await asyncio.to_thread(self._folder.remove, batch)
