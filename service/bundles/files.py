"""The bytes of code bundles: streamed to disk, held to their hash, given out as files."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final

from service.bundles.model import MAX_BUNDLE_BYTES
from service.http.errors import InvalidError, NoRoomError, TooLargeError
from service.http.streams import in_time

PATIENCE_S: Final = 60.0
"""How long the next bytes may take to arrive."""
_GZIP: Final = b"\x1f\x8b"
_UNFINISHED: Final = ".part"


class BundleFiles:
    """Where the bundles of all accounts lie."""

    def __init__(self, folder: Path, *, limit_bytes: int = MAX_BUNDLE_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes

    def path(self, account_id: str, sha256: str) -> Path:
        """Where a bundle lies, if it does."""
        return self._folder / account_id / sha256

    async def keep(self, account_id: str, sha256: str, parts: AsyncIterator[bytes]) -> int:
        """Take a bundle's bytes; gives how many there are.

        Raises:
            InvalidError: they are no gzip, or have another hash.
            TooLargeError: they are too many.
            SlowBodyError: they do not come.
            NoRoomError: the disk takes no more.
        """
        target = self.path(account_id, sha256)
        try:
            return await self._keep(target, sha256, parts)
        except OSError as problem:
            raise NoRoomError(
                f"The bundle cannot be kept: {problem.strerror}. Send it again later."
            ) from problem

    async def _keep(self, target: Path, sha256: str, parts: AsyncIterator[bytes]) -> int:
        file = await asyncio.to_thread(_unfinished, target.parent)
        unfinished = Path(file.name)
        try:
            size, found = await self._write(file, parts)
            if found != sha256:
                raise InvalidError(
                    f"The body has the SHA-256 {found}, which is not the one in the path; send"
                    " the bytes as they were hashed.",
                    keys=("sha256",),
                    source="path",
                )
            await asyncio.to_thread(unfinished.replace, target)
        finally:
            await asyncio.to_thread(_drop, file, unfinished)
        return size

    async def _write(self, file: IO[bytes], parts: AsyncIterator[bytes]) -> tuple[int, str]:
        seen, size, head = hashlib.sha256(), 0, b""
        async for part in in_time(parts, patience_s=PATIENCE_S, mend="send it again"):
            head = head if len(head) >= len(_GZIP) else head + part[: len(_GZIP)]
            size += len(part)
            if size > self._limit_bytes:
                raise TooLargeError(
                    f"The bundle is too large; use at most {self._limit_bytes} bytes.",
                    attributes={"limitBytes": self._limit_bytes},
                    headers={"connection": "close"},
                )
            seen.update(part)
            await asyncio.to_thread(file.write, part)
        if not head.startswith(_GZIP):
            raise InvalidError("The body is no gzip; send a tar.gz, as tar czf makes it.", keys=())
        await asyncio.to_thread(_finish, file)
        return size, seen.hexdigest()


def _unfinished(folder: Path) -> IO[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    return NamedTemporaryFile(dir=folder, suffix=_UNFINISHED, delete=False)


def _finish(file: IO[bytes]) -> None:
    """The row that says it is there is written only after this."""
    file.flush()
    os.fsync(file.fileno())


def _drop(file: IO[bytes], unfinished: Path) -> None:
    file.close()
    unfinished.unlink(missing_ok=True)
