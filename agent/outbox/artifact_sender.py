"""Uploads artifacts: large ones to the service's store by a link, all others to the service.

What goes to the service goes in chunks, each from the offset that it names.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from agent.api_client.client import Chunk, ServiceClient
from agent.api_client.errors import (
    ElsewhereError,
    JobGoneError,
    RequestRefusedError,
    ServiceAwayError,
    ServiceError,
    StoreError,
)
from agent.api_client.retry import Backoff, Pace
from agent.outbox.artifact_files import ArtifactBatch
from agent.outbox.artifacts import Artifacts
from contract.job import Lease
from contract.result import Artifact
from redaction.clean import Clean
from sandbox.workspace import open_regular_file

FIRST_CHUNK_BYTES: Final = 64 * 1024
"""Small, as the service may have the file already, and name the offset to go on from."""
CHUNK_BYTES: Final = 1024 * 1024
_LAST_CHUNK_BYTES: Final = 256 * 1024
"""The size of chunks while the agent stops: a slow connection shows progress sooner."""
DIRECT_BYTES: Final = 512 * 1024
"""Smaller files go to the service: a link takes two requests more."""
_NO_LINKS_S: Final = 600.0
"""How long the agent asks for no link after one that did not work."""
_MOST_OFFSET_RESETS: Final = 20
"""How often the service may name another offset without taking a byte: it may still be reading
what is left of a broken connection."""

log = structlog.get_logger(__name__)


class ArtifactSender:
    """One request at a time, one result's files after the other's."""

    def __init__(
        self,
        client: ServiceClient,
        artifacts: Artifacts,
        *,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._artifacts = artifacts
        self._pace = pace
        self._backoff = Backoff(pace, client.outage)
        self._clock = clock
        self._moved_at = 0.0
        """When the service last took anything, or the flush began. Monotonic."""
        self._no_links_until = 0.0
        """Until then no file goes to the store by a link. Monotonic."""
        self._hurry = asyncio.Event()
        """Set when the agent stops."""
        self._over = asyncio.Event()
        """Set when nothing is left to deliver, or it has to be left."""
        self._is_abandoned = False
        self._running: asyncio.Task[None] | None = None
        """None: `run` has not begun."""

    async def run(self) -> None:
        """Upload whatever arrives; runs until it is cancelled, or its `flush` is over."""
        self._running = asyncio.current_task()
        while True:
            await self._artifacts.arrived.wait()
            self._artifacts.arrived.clear()
            try:
                while await self._send_next():
                    pass
                self._over.set()
            except (ServiceError, OSError) as problem:
                await self._wait_out(problem)
                self._artifacts.arrived.set()

    async def flush(self, *, limit_s: float) -> None:
        """Upload all there is, then end `run`.

        What is left stays: after `abandon`, or when for so long the service took nothing.
        """
        if not self._is_abandoned:
            self._over.clear()
        self._moved_at = self._clock()
        self._hurry.set()
        self._artifacts.arrived.set()
        while not self._over.is_set() and (left_s := self._left_s(limit_s)) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._over.wait()
        await self._stop()
        if left := self._artifacts.waiting():
            log.warning("artifacts.left", results=left)

    def abandon(self) -> None:
        """Leave what is not uploaded yet."""
        self._is_abandoned = True
        self._over.set()

    def _left_s(self, limit_s: float) -> float:
        return self._moved_at + limit_s - self._clock()

    async def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _send_next(self) -> bool:
        """Deliver one result's files; whether there may be more."""
        batch = await self._artifacts.next()
        if batch is None:
            return False
        try:
            await self._deliver(batch)
        except BaseException:
            self._artifacts.put_back(batch)
            raise
        return True

    async def _deliver(self, batch: ArtifactBatch) -> None:
        try:
            clean = await self._artifacts.unpack(batch)
            if clean is not None:
                await self._artifacts.delivered(batch, await self._send(batch, clean))
        except (ServiceError, OSError):
            raise
        except Exception as problem:  # our fault, whatever it is: it must not stop all the others
            log.exception("artifacts.broke", job_id=batch.lease.job_id)
            because = f"{type(problem).__name__} in the agent"
            await self._artifacts.give_up_rest(batch, because)

    async def _send(self, batch: ArtifactBatch, clean: Clean) -> Clean:
        """Deliver the files; the result, which names those that arrived."""
        for artifact in clean.result.outcome.artifacts:
            if not batch.holds(artifact.name):
                continue  # it arrived before the agent started again
            path = batch.file(artifact.name)
            try:
                await self._upload(path, artifact, batch.lease)
            except (JobGoneError, RequestRefusedError) as problem:
                clean = await self._artifacts.give_up(batch, clean, artifact, str(problem))
            else:
                with suppress(OSError):  # then it goes with its batch
                    path.unlink(missing_ok=True)
        return clean

    async def _upload(self, path: Path, artifact: Artifact, lease: Lease) -> None:
        if await self._upload_by_link(path, artifact, lease):
            return
        try:
            await self._upload_once(path, artifact, lease)
        except RequestRefusedError:
            # What it had was another file's beginning, which it has thrown away.
            await self._upload_once(path, artifact, lease)

    async def _upload_by_link(self, path: Path, artifact: Artifact, lease: Lease) -> bool:
        """Put a large file into the service's store; False: it has to go to the service.

        An agent that stops has no time to find out whether it reaches the store.
        """
        is_large = artifact.size_bytes >= DIRECT_BYTES
        if not is_large or self._hurry.is_set() or self._clock() < self._no_links_until:
            return False
        try:
            link = await self._client.link_artifact(lease, artifact)
            if link.url is not None:
                size = artifact.size_bytes
                await self._client.put_by_link(
                    link.url, self._stream(path), headers=link.headers, size_bytes=size
                )
                await self._client.confirm_artifact(lease, artifact)
                log.debug("artifact.delivered", job_id=lease.job_id, began_at=0)
                self._backoff.reset()
                return True
        except (StoreError, RequestRefusedError) as problem:
            log.info("artifact.not_direct", job_id=lease.job_id, because=str(problem))
        self._no_links_until = self._clock() + _NO_LINKS_S
        return False

    async def _stream(self, path: Path) -> AsyncIterator[bytes]:
        first = 0
        while content := await asyncio.to_thread(_read, path, first, CHUNK_BYTES):
            first += len(content)
            self._moved_at = self._clock()
            yield content

    async def _upload_once(self, path: Path, artifact: Artifact, lease: Lease) -> None:
        """Send a file from its beginning, or from where the service says."""
        first, resets, size = 0, 0, FIRST_CHUNK_BYTES
        while True:
            content = await asyncio.to_thread(_read, path, first, size)
            if not content and first < artifact.size_bytes:
                raise RequestRefusedError("it has become shorter")
            chunk = Chunk(lease=lease, artifact=artifact, first=first, content=content)
            try:
                stored = await self._client.put_artifact(chunk)
            except ElsewhereError as elsewhere:
                first, resets = elsewhere.offset, resets + 1
                log.info("artifact.resumed", job_id=lease.job_id, at_bytes=first)
                if resets > _MOST_OFFSET_RESETS:
                    raise ServiceAwayError(str(elsewhere)) from elsewhere
                continue
            self._backoff.reset()
            self._moved_at = self._clock()
            if stored.complete:
                log.debug("artifact.delivered", job_id=lease.job_id, began_at=first)
                return
            first, resets, size = stored.offset, 0, self._chunk_bytes()

    def _chunk_bytes(self) -> int:
        return _LAST_CHUNK_BYTES if self._hurry.is_set() else CHUNK_BYTES

    async def _wait_out(self, problem: Exception) -> None:
        away = problem if isinstance(problem, ServiceError) else ServiceAwayError(str(problem))
        wait_s = self._backoff.next_wait_s(away)
        level = logging.DEBUG if away is problem else logging.WARNING
        because = str(problem)
        log.log(level, "artifacts.not_delivered", because=because, wait_s=round(wait_s, 1))
        if self._hurry.is_set():
            await asyncio.sleep(min(wait_s, self._pace.first_s))
            return
        waits = [
            asyncio.create_task(self._backoff.wait(away, wait_s), name="uploads-wait"),
            asyncio.create_task(self._hurry.wait(), name="uploads-hurry"),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


def _read(path: Path, first: int, size: int) -> bytes:
    """A chunk of a file, and never of what a link leads to.

    Raises:
        RequestRefusedError: this is no file.
        OSError: it cannot be read now.
    """
    try:
        file = open_regular_file(path)
    except OSError as problem:
        if path.is_symlink() or not path.is_file():
            raise RequestRefusedError("it is not a regular file") from problem
        raise
    with file:
        file.seek(first)
        return file.read(size)
