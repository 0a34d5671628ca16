"""Code bundles by content hash: fetched, verified, and kept on disk up to a size."""

import asyncio
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from sandbox.workspace import remove_folder

MAX_BUNDLE_BYTES: Final = 256 * 1024**2
KEPT_BYTES: Final = 2 * 1024**3
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_UNFINISHED: Final = ".part"
_STALE_S: Final = 6 * 3600.0
"""Longer than any download takes; several agents may share the folder."""


class BundleError(Exception):
    """A bundle is not available; this is never the check's own fault."""


class BundleSource(Protocol):
    """A source of code bundles: a cache of downloads, or a local folder."""

    async def fetch(self, sha256: str) -> Path:
        """Fetch the tar.gz with this content hash; the file belongs to the source.

        Raises:
            BundleError: it is not available now.
        """


Download = Callable[[str, Path], Awaitable[None]]
"""Writes the bundle with a content hash into a file; a BundleError where that is not possible."""


class BundleCache:
    """Bundles on disk; above the size limit, the least recently used are removed first."""

    def __init__(self, download: Download, folder: Path, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._download = download
        self._folder = folder
        self._kept_bytes = kept_bytes
        self._under_way: dict[str, asyncio.Task[Path]] = {}

    async def fetch(self, sha256: str) -> Path:
        """Take the bundle from disk, or download it; runs that need the same one share a download.

        Raises:
            BundleError: it is not available now, or has another content.
            OSError: the disk refuses it.
        """
        if not _SHA256.fullmatch(sha256):
            raise BundleError(f"{sha256!r} is not a SHA-256 in lower-case hexadecimal digits.")
        kept = self._folder / sha256
        if await asyncio.to_thread(_is_intact, kept, sha256):
            return kept
        return await asyncio.shield(self._share_download(sha256))

    def _share_download(self, sha256: str) -> asyncio.Task[Path]:
        if sha256 not in self._under_way:
            task = asyncio.create_task(self._fetch_and_verify(sha256), name=f"bundle-{sha256[:12]}")
            task.add_done_callback(self._forget_download)
            self._under_way[sha256] = task
        return self._under_way[sha256]

    def _forget_download(self, task: asyncio.Task[Path]) -> None:
        self._under_way = {key: one for key, one in self._under_way.items() if one is not task}
        if not task.cancelled():
            task.exception()  # whoever waits gets it; perhaps nobody waits any more

    async def _fetch_and_verify(self, sha256: str) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(self._sweep)
        unfinished = Path(tempfile.mkdtemp(dir=self._folder, suffix=_UNFINISHED))
        try:
            fresh = unfinished / sha256
            await self._download(sha256, fresh)
            await asyncio.to_thread(verify, fresh, sha256)
            fresh.replace(self._folder / sha256)
        finally:
            await asyncio.to_thread(remove_folder, unfinished)
        await asyncio.to_thread(self._make_room, besides=sha256)
        return self._folder / sha256

    def _sweep(self) -> None:
        """Remove the downloads of agents that were killed."""
        for path in self._folder.glob(f"*{_UNFINISHED}"):
            with suppress(FileNotFoundError):  # another agent was quicker
                if time.time() - path.stat().st_mtime > _STALE_S:
                    remove_folder(path)

    def _make_room(self, *, besides: str) -> None:
        """Remove the least recently used; a run that has opened one may read on."""
        left_bytes = self._kept_bytes
        for path, size_bytes in list_newest_first(self._folder):
            left_bytes -= size_bytes
            if left_bytes < 0 and path.name != besides:
                path.unlink(missing_ok=True)


def _is_intact(kept: Path, sha256: str) -> bool:
    """Whether a kept bundle has its content; if not, the next download overwrites it.

    A file that was renamed in time may be empty after a power cut, and disks change bits.
    """
    try:
        verify(kept, sha256)
        os.utime(kept)
    except (FileNotFoundError, BundleError):
        return False
    return True


def list_newest_first(folder: Path) -> Iterator[tuple[Path, int]]:
    """List the bundles in a folder with their sizes, the most recently used first."""
    found = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another agent may remove it in this very moment
            if _SHA256.fullmatch(path.name):
                found.append((path, path.stat()))
    for path, about in sorted(found, key=lambda one: one[1].st_mtime_ns, reverse=True):
        yield path, about.st_size


def verify(path: Path, sha256: str) -> None:
    """Require that a file has this content hash; it blocks.

    Raises:
        BundleError: its content has another hash.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, hashlib.sha256).hexdigest()
    if found != sha256:
        raise BundleError(f"The bundle {sha256} has the content of {found}.")
