"""Brings files to the service: in pieces, from where it says that it stopped."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec
import structlog

from agent.api_client.errors import (
    ElsewhereError,
    JobGoneError,
    RequestRefusedError,
    ServiceAwayError,
    ServiceError,
)
from agent.api_client.retry import Backoff, Pace
from agent.outbox.artifact_files import ArtifactBatch
from contract.agent_api import ArtifactStored
from contract.job import Lease
from contract.result import Artifact
from redaction.clean import Clean
from sandbox.workspace import open_regular_file

FIRST_PIECE_BYTES: Final = 64 * 1024
"""Small: the service may have it already, and say where to go on."""
PIECE_BYTES: Final = 1024 * 1024
_LAST_PIECE_BYTES: Final = 256 * 1024
"""While the agent stops: a slow line shows sooner that it moves."""
_MOST_LEAPS: Final = 20
"""So often the place to go on from may change without a byte being taken: the service may still
be reading what is left of a broken connection."""

log = structlog.get_logger(__name__)


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file, on its way."""

    lease: Lease
    artifact: Artifact
    first: int
    """Where it begins in the file."""
    content: bytes


class PieceTaker(Protocol):
    """The service, as far as it takes files."""

    async def put_artifact(self, piece: Chunk) -> ArtifactStored:
        """Store a piece.

        Raises:
            ElsewhereError: it begins elsewhere than where the stored bytes end.
            JobGoneError: nobody waits for files of this job any more.
            RequestRefusedError: the service will never take this file.
            ServiceError: it did not arrive.
        """


class Outbox(Protocol):
    """Results with files that wait."""

    arrived: asyncio.Event

    def waiting(self) -> int:
        """How many results wait for their files."""

    async def next(self) -> ArtifactBatch | None:
        """The one whose turn it is. None: none waits."""

    def put_back(self, parcel: ArtifactBatch) -> None:
        """It could not be delivered now; others come first."""

    async def unpack(self, parcel: ArtifactBatch) -> Clean | None:
        """The result. None: it is broken, and given up."""

    async def give_up(
        self, parcel: ArtifactBatch, clean: Clean, artifact: Artifact, because: str
    ) -> Clean:
        """A file will never be delivered; the result without it."""

    async def give_up_rest(self, parcel: ArtifactBatch, because: str) -> None:
        """Nothing more of it will be delivered but its result."""

    async def delivered(self, parcel: ArtifactBatch, clean: Clean) -> None:
        """All its files are settled."""


class Uploads:
    """One request at a time, one result's files after the other's."""

    def __init__(
        self,
        taker: PieceTaker,
        outbox: Outbox,
        *,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._taker = taker
        self._outbox = outbox
        self._pace = pace
        self._backoff = Backoff(pace)
        self._clock = clock
        self._moved_at = 0.0
        """When the service last took anything, or the flush began. Monotonic."""
        self._hurry = asyncio.Event()
        """Set when the agent stops."""
        self._over = asyncio.Event()
        """Set when nothing is left to deliver, or it has to be left."""
        self._is_let_go = False
        self._running: asyncio.Task[None] | None = None
        """None: `run` has not begun."""

    async def run(self) -> None:
        """Upload whatever arrives; runs until it is cancelled, or its `flush` is over."""
        self._running = asyncio.current_task()
        while True:
            await self._outbox.arrived.wait()
            self._outbox.arrived.clear()
            try:
                while await self._send_next():
                    pass
                self._over.set()
            except (ServiceError, OSError) as problem:
                await self._wait_out(problem)
                self._outbox.arrived.set()

    async def flush(self, *, limit_s: float) -> None:
        """Upload all there is, then end `run`.

        What is left stays: after `let_go`, or when for so long the service took nothing.
        """
        if not self._is_let_go:
            self._over.clear()
        self._moved_at = self._clock()
        self._hurry.set()
        self._outbox.arrived.set()
        while not self._over.is_set() and (left_s := self._left_s(limit_s)) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._over.wait()
        await self._stop()
        if left := self._outbox.waiting():
            log.warning("artifacts.left", results=left)

    def let_go(self) -> None:
        """Leave what is not uploaded yet."""
        self._is_let_go = True
        self._over.set()

    def _left_s(self, limit_s: float) -> float:
        return self._moved_at + limit_s - self._clock()

    async def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _send_next(self) -> bool:
        """Deliver one result's files; whether there may be more."""
        parcel = await self._outbox.next()
        if parcel is None:
            return False
        try:
            await self._deliver(parcel)
        except BaseException:
            self._outbox.put_back(parcel)
            raise
        return True

    async def _deliver(self, parcel: ArtifactBatch) -> None:
        try:
            clean = await self._outbox.unpack(parcel)
            if clean is not None:
                await self._outbox.delivered(parcel, await self._send(parcel, clean))
        except (ServiceError, OSError):
            raise
        except Exception as problem:  # our fault, whatever it is: it must not stop all the others
            log.exception("artifacts.broke", job_id=parcel.lease.job_id)
            because = f"{type(problem).__name__} in the agent"
            await self._outbox.give_up_rest(parcel, because)

    async def _send(self, parcel: ArtifactBatch, clean: Clean) -> Clean:
        """Deliver the files; the result, which names those that arrived."""
        for artifact in clean.result.outcome.artifacts:
            if not parcel.holds(artifact.name):
                continue  # it arrived before the agent started again
            path = parcel.file(artifact.name)
            try:
                await self._upload(path, artifact, parcel.lease)
            except (JobGoneError, RequestRefusedError) as problem:
                clean = await self._outbox.give_up(parcel, clean, artifact, str(problem))
            else:
                with suppress(OSError):  # then it goes with its parcel
                    path.unlink(missing_ok=True)
        return clean

    async def _upload(self, path: Path, artifact: Artifact, lease: Lease) -> None:
        try:
            await self._upload_once(path, artifact, lease)
        except RequestRefusedError:
            # What it had was another file's beginning, which it has thrown away.
            await self._upload_once(path, artifact, lease)

    async def _upload_once(self, path: Path, artifact: Artifact, lease: Lease) -> None:
        """Send a file from its beginning, or from where the service says."""
        first, leaps, size = 0, 0, FIRST_PIECE_BYTES
        while True:
            content = await asyncio.to_thread(_read, path, first, size)
            if not content and first < artifact.size_bytes:
                raise RequestRefusedError("it is shorter than it was")
            piece = Chunk(lease=lease, artifact=artifact, first=first, content=content)
            try:
                stored = await self._taker.put_artifact(piece)
            except ElsewhereError as elsewhere:
                first, leaps = elsewhere.offset, leaps + 1
                log.info("artifact.resumed", job_id=lease.job_id, at_bytes=first)
                if leaps > _MOST_LEAPS:
                    raise ServiceAwayError(str(elsewhere)) from elsewhere
                continue
            self._backoff.succeeded()
            self._moved_at = self._clock()
            if stored.complete:
                log.debug("artifact.delivered", job_id=lease.job_id, began_at=first)
                return
            first, leaps, size = stored.offset, 0, self._piece_bytes()

    def _piece_bytes(self) -> int:
        return _LAST_PIECE_BYTES if self._hurry.is_set() else PIECE_BYTES

    async def _wait_out(self, problem: Exception) -> None:
        away = problem if isinstance(problem, ServiceError) else ServiceAwayError(str(problem))
        wait_s = self._backoff.failed(away)
        log.warning("artifacts.not_delivered", because=str(problem), wait_s=round(wait_s, 1))
        if self._hurry.is_set():
            await asyncio.sleep(min(wait_s, self._pace.first_s))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._hurry.wait()


def _read(path: Path, first: int, size: int) -> bytes:
    """A piece of a file, and never of what a link leads to.

    Raises:
        RequestRefusedError: this is no file.
        OSError: it cannot be read now.
    """
    try:
        file = open_regular_file(path)
    except OSError as problem:
        if path.is_symlink() or not path.is_file():
            raise RequestRefusedError("it is no plain file") from problem
        raise
    with file:
        file.seek(first)
        return file.read(size)
