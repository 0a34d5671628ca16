"""Files in a folder of this machine."""

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import structlog

log = structlog.get_logger()


class FolderStore:
    """Keeps each object as a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def put_file(self, key: str, file: Path) -> None:
        """Move a file of this file system in its place."""
        await asyncio.to_thread(_move, file, self.folder / key)

    async def find(self, key: str) -> Path | None:
        """The file, if it is there."""
        path = self.folder / key
        return path if path.is_file() else None

    async def list_keys(self, prefix: str) -> frozenset[str]:
        """All keys that begin with this prefix and a slash."""
        return await asyncio.to_thread(self._keys, prefix)

    async def remove_before(self, before_ms: int) -> int:
        """Remove the folders of runs that have not changed since; how many.

        A run's folder changes when a file arrives, and never afterwards.
        """
        return await asyncio.to_thread(self._remove_before, before_ms)

    async def list_changed(self, prefix: str) -> Mapping[str, float]:
        """When each object was stored whose key begins with this prefix and a slash, in ms."""
        return {key: _changed_ms(self.folder / key) for key in await self.list_keys(prefix)}

    async def remove(self, key: str, *, before_ms: float) -> None:
        """Remove a file, unless it is newer, or gone."""
        if _changed_ms(self.folder / key) < before_ms:
            (self.folder / key).unlink(missing_ok=True)

    async def sign(self, key: str) -> None:
        """The service serves its own files."""

    async def sign_for_agent(self, key: str) -> None:
        """The service serves its own files."""

    async def sign_upload(self, key: str, *, size_bytes: int, sha256: str) -> None:
        """The service takes its files itself."""

    def _keys(self, prefix: str) -> frozenset[str]:
        files = (path for path in (self.folder / prefix).rglob("*") if path.is_file())
        return frozenset(path.relative_to(self.folder).as_posix() for path in files)

    def _remove_before(self, before_ms: int) -> int:
        return sum(_remove(run) for run in _runs(self.folder) if _changed_ms(run) < before_ms)


def _move(file: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file.replace(path)


def _runs(folder: Path) -> Iterator[Path]:
    """The folders of all runs, of all locations."""
    for location in _folders(folder):
        yield from _folders(location)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _changed_ms(path: Path) -> float:
    try:
        return path.stat().st_mtime * 1000
    except FileNotFoundError:
        return float("inf")


def _remove(folder: Path) -> bool:
    try:
        shutil.rmtree(folder)
    except OSError as problem:
        log.warning("retention.file_stays", folder=str(folder), reason=problem.strerror)
        return False
    return True
