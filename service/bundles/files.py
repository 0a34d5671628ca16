"""The bytes of bundles and snapshots: streamed to disk, held to their hash, kept there or in S3."""

import asyncio
import hashlib
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple, TypeVar

from service.bundles.model import CODE, MAX_BUNDLE_BYTES, Content
from service.http.errors import InvalidError, NoRoomError, TooLargeError
from service.http.request_body import in_time
from service.object_store.model import BUNDLES, ObjectStore, RemoteObject

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""How long the next bytes may take to arrive."""
_GZIP: Final = b"\x1f\x8b"
_UNFINISHED: Final = ".part"
_BLOCK_BYTES: Final = 256 * 1024
_SETTLED_MS: Final = 3_600_000
"""An upload is noted within seconds; clocks of stores and databases differ by less."""


class BundleFile(NamedTuple):
    """A bundle, as its file is named."""

    account_id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class SpooledBundle:
    """A bundle's bytes whose hash nobody had said."""

    file: IO[bytes]
    sha256: str
    size_bytes: int

    async def stream(self) -> AsyncIterator[bytes]:
        """The bytes, from the first to the last."""
        await asyncio.to_thread(self.file.seek, 0)
        while block := await asyncio.to_thread(self.file.read, _BLOCK_BYTES):
            yield block


class BundleFiles:
    """Where the bundles of all accounts lie: in a folder of one process, or in a bucket of many."""

    def __init__(
        self,
        folder: Path,
        *,
        bucket: ObjectStore | None = None,
        limit_bytes: int = MAX_BUNDLE_BYTES,
    ) -> None:
        """Without a bucket all stays in the folder; with one, what was there before."""
        self._folder = folder
        self._bucket = bucket
        self.settled_ms = _SETTLED_MS if bucket else 0
        """How long after its upload each process sees both a bundle and its row."""
        self._limit_bytes = limit_bytes
        self._arriving: set[Path] = set()
        self.one_at_a_time = asyncio.Lock()
        """Held by whoever changes which files there are together with what is noted of them."""

    def path(self, account_id: str, sha256: str) -> Path:
        """Where a bundle lies that is in the folder."""
        return self._folder / account_id / sha256

    async def find(self, account_id: str, sha256: str) -> Path | RemoteObject | None:
        """A bundle's bytes. None: it is not kept.

        Raises:
            ObjectStoreError: the bucket does not answer.
        """
        if self._bucket and (found := await self._bucket.find(_key(account_id, sha256))):
            return found
        path = self.path(account_id, sha256)
        return path if path.is_file() else None

    async def sign(self, account_id: str, sha256: str) -> str | None:
        """A link by which an agent reads a bundle. None: the service serves it.

        Raises:
            ObjectStoreError: the bucket does not answer.
        """
        key = _key(account_id, sha256)
        if self._bucket is None or await self._bucket.find(key) is None:
            return None
        return await self._bucket.sign_for_agent(key)

    async def keep(
        self,
        account_id: str,
        sha256: str,
        parts: AsyncIterator[bytes],
        *,
        note: Callable[[int], Awaitable[T]],
        content: Content = CODE,
    ) -> T:
        """Take a bundle's bytes; what `note` gives, which gets their number.

        By then they outlast a power cut, and nobody removes them before it is done.

        Raises:
            InvalidError: they are not of this kind, or have another hash.
            TooLargeError: they are too many.
            SlowBodyError: they do not come.
            NoRoomError: the disk takes no more.
            ObjectStoreError: the bucket does not answer.
        """
        target = self.path(account_id, sha256)
        try:
            return await self._keep(target, parts, note, content)
        except OSError as problem:
            raise _no_room(problem, content) from problem

    @asynccontextmanager
    async def spool(
        self, parts: AsyncIterator[bytes], *, content: Content = CODE
    ) -> AsyncIterator[SpooledBundle]:
        """Hash bytes in a file without a name, which is gone once the context is left.

        Raises:
            InvalidError: they are not of this kind.
            TooLargeError: they are too many.
            SlowBodyError: they do not come.
            NoRoomError: the disk takes no more.
        """
        with await asyncio.to_thread(_open_unnamed, self._folder.parent) as file:
            try:
                size, sha256 = await self._write(file, parts, content)
            except OSError as problem:
                raise _no_room(problem, content) from problem
            yield SpooledBundle(file, sha256, size)

    async def list_stored(self) -> dict[BundleFile, float]:
        """When each bundle was stored, in ms since 1970; 0 in the folder, which one process has."""
        found = dict.fromkeys(await asyncio.to_thread(self.there), 0.0)
        if self._bucket is not None:
            for key, stored_ms in (await self._bucket.list_changed(BUNDLES)).items():
                found[BundleFile._make(key.split("/")[1:])] = stored_ms
        return found

    async def remove_stored(self, gone: Mapping[BundleFile, float]) -> None:
        """Let go of these; one that was stored anew since that time stays."""
        await asyncio.to_thread(self.remove, gone)
        if self._bucket is not None:
            for one, stored_ms in gone.items():
                await self._bucket.remove(_key(*one), before_ms=stored_ms + 1)

    def there(self) -> frozenset[BundleFile]:
        """All that are in the folder; what an earlier process left half goes."""
        if not self._folder.is_dir():
            return frozenset()
        files = [file for account in self._folder.iterdir() for file in account.iterdir()]
        half = {file for file in files if file.suffix == _UNFINISHED}
        for file in half - self._arriving:
            file.unlink(missing_ok=True)
        return frozenset(
            BundleFile(file.parent.name, file.name) for file in files if file not in half
        )

    def remove(self, gone: Iterable[BundleFile]) -> None:
        """Let go of these."""
        for one in gone:
            self.path(*one).unlink(missing_ok=True)

    async def _keep(
        self,
        target: Path,
        parts: AsyncIterator[bytes],
        note: Callable[[int], Awaitable[T]],
        content: Content,
    ) -> T:
        unfinished = target.with_name(uuid.uuid4().hex + _UNFINISHED)
        self._arriving.add(unfinished)
        try:
            size = await self._take(unfinished, parts, content, sha256=target.name)
            if self._bucket is not None:
                key = _key(target.parent.name, target.name)
                await self._bucket.put_file(key, unfinished)
                return await note(size)
            async with self.one_at_a_time:
                await asyncio.to_thread(_put_in_place, unfinished, target)
                return await note(size)
        finally:
            self._arriving.discard(unfinished)
            await asyncio.to_thread(unfinished.unlink, missing_ok=True)

    async def _take(
        self, unfinished: Path, parts: AsyncIterator[bytes], content: Content, *, sha256: str
    ) -> int:
        file = await asyncio.to_thread(_open_unfinished, unfinished)
        try:
            size, found = await self._write(file, parts, content)
        finally:
            await asyncio.to_thread(file.close)
        if found != sha256:
            raise InvalidError(
                f"The body has the SHA-256 {found}, which is not the one in the path; send"
                " the bytes as they were hashed.",
                keys=("sha256",),
                source="path",
            )
        return size

    async def _write(
        self, file: IO[bytes], parts: AsyncIterator[bytes], content: Content
    ) -> tuple[int, str]:
        seen, size, head = hashlib.sha256(), 0, b""
        most_bytes = min(self._limit_bytes, content.limit_bytes)
        async for part in in_time(parts, patience_s=PATIENCE_S, remedy="send it again"):
            head = head if len(head) >= len(_GZIP) else head + part[: len(_GZIP)]
            size += len(part)
            if size > most_bytes:
                raise TooLargeError(
                    f"The {content.noun} is too large; use at most {most_bytes} bytes.",
                    attributes={"limitBytes": most_bytes},
                    headers={"connection": "close"},
                )
            seen.update(part)
            await asyncio.to_thread(file.write, part)
        if content.is_gzip and not head.startswith(_GZIP):
            raise InvalidError("The body is not gzip; send a tar.gz, as tar czf makes it.", keys=())
        if not head:
            raise InvalidError(f"The body is empty; send the bytes of a {content.noun}.", keys=())
        await asyncio.to_thread(_finish, file)
        return size, seen.hexdigest()


def _key(account_id: str, sha256: str) -> str:
    return f"{BUNDLES}/{account_id}/{sha256}"


def _no_room(problem: OSError, content: Content) -> NoRoomError:
    return NoRoomError(
        f"The {content.noun} cannot be stored: {problem.strerror}. Send it again later."
    )


def _open_unnamed(folder: Path) -> IO[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    return TemporaryFile(dir=folder)


def _open_unfinished(unfinished: Path) -> IO[bytes]:
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    return unfinished.open("xb")


def _finish(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _put_in_place(unfinished: Path, target: Path) -> None:
    """A name outlasts a power cut only once its folder is on disk, and that folder's own name."""
    unfinished.replace(target)
    for folder in (target.parent, target.parent.parent, target.parent.parent.parent):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
