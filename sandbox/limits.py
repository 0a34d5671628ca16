"""Watches what a running child takes: memory, disk, processes, time."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from sandbox.memory import usage_of
from sandbox.processes import ProcessTree
from sandbox.program import Limits
from sandbox.users import files_outside

_MB: Final = 1024 * 1024
_BLOCK_BYTES: Final = 512


class FolderUse(msgspec.Struct, frozen=True):
    """What there is, or a little more than was to be counted."""

    used_mb: float
    files: int
    """Folders count as well: each of them takes a number of the disk's."""


def use_of(paths: Iterable[Path], *, most_mb: float, most_files: int) -> FolderUse:
    """Count files and what is in folders, until it is more than so much; it blocks."""
    used_bytes, files = 0.0, 0
    for size_bytes in chain.from_iterable(map(_sizes, paths)):
        used_bytes, files = used_bytes + size_bytes, files + 1
        if used_bytes > most_mb * _MB or files > most_files:
            break
    return FolderUse(used_bytes / _MB, files)


def _sizes(path: Path) -> Iterator[float]:
    """Of a file, or of a folder and all that is in it."""
    yield _size_bytes(path)
    waiting = [str(path)] if path.is_dir() and not path.is_symlink() else []
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield _size_bytes(entry)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:  # nested so that it cannot be counted
                yield float("inf")


def _size_bytes(entry: os.DirEntry[str] | Path) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    except OSError:
        return 0


_LOOK_EVERY_S: Final = 0.25
_LOOK_OFTEN_S: Final = 0.05
"""While it uses more than half of its memory: a process takes a gigabyte in a third of a second."""
_MUCH: Final = 0.5
_NEAR: Final = 0.75
"""Of what a process may reserve. No script comes so far that does not ask for too much."""
_FOLDER_EVERY_S: Final = 1.0
_FOLDER_SHARE: Final = 0.05
"""The part of the time that looking at a folder with very many files may take."""
_FORK_S: Final = 0.02
_LEAST_FREE_MB: Final = 50
_LEAST_FREE_FILES: Final = 2000
"""A browser's profile alone is a few hundred."""


class FullDiskError(OSError):
    """There is no room for runs, whoever used it up."""


class Excess(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that was gone over."""

    is_memory: bool
    because: str
    """One sentence with the limit and what was seen."""


class Watch:
    """Looks, and remembers the most memory that it saw."""

    def __init__(
        self, tree: ProcessTree, limits: Limits, folder: Path, *, tell: Callable[[float], None]
    ) -> None:
        """`tell`: hears how many MB are used, at each look."""
        self._tell = tell
        self._tree = tree
        self._limits = limits
        self._folder = folder
        self._folder_due = time.monotonic() + _FOLDER_EVERY_S
        self.peak_mb = 0.0
        self._used_mb = 0.0
        self._reserved_mb = 0.0
        """The most of any process."""

    @property
    def pause_s(self) -> float:
        """When to look again."""
        is_much = self._used_mb > _MUCH * self._limits.memory_mb
        return _LOOK_OFTEN_S if is_much else _LOOK_EVERY_S

    @property
    def was_refused_memory(self) -> bool:
        """Whether a process came near to what it may reserve, where the system gives no more."""
        return self._reserved_mb > _NEAR * self._limits.data_mb

    def look(self) -> Excess | None:
        """What is over its limit now. None: nothing; it blocks.

        Raises:
            FullDiskError: the disk is full.
        """
        pids = self._tree.pids()
        self._tree.let_go(pids)
        return self._processes(pids) or self._memory(pids) or self._files()

    def _memory(self, pids: list[int]) -> Excess | None:
        seen = usage_of(pids)
        self._reserved_mb = max(self._reserved_mb, seen.reserved_mb)
        used = seen.used_mb
        if used > self._limits.memory_mb:
            # A fork doubles the figure until its exec: what lasts is seen twice.
            time.sleep(_FORK_S)
            used = min(used, usage_of(self._tree.pids()).used_mb)
        self._used_mb, self.peak_mb = used, max(self.peak_mb, used)
        self._tell(used)
        if used <= self._limits.memory_mb:
            return None
        return Excess(is_memory=True, because=too_much_memory(self._limits.memory_mb, used))

    def _processes(self, pids: list[int]) -> Excess | None:
        if len(pids) <= self._limits.processes:
            return None
        return Excess(
            is_memory=False,
            because=f"It had {len(pids)} processes; the limit is {self._limits.processes}",
        )

    def _files(self) -> Excess | None:
        started = time.monotonic()
        if started < self._folder_due:
            return None
        require_room(self._folder)
        seen = self._folder_use()
        took_s = time.monotonic() - started
        self._folder_due = started + max(_FOLDER_EVERY_S, took_s / _FOLDER_SHARE)
        if seen.used_mb > self._limits.folder_mb:
            return _left_too_much(f"{self._limits.folder_mb} MB of files")
        if seen.files > self._limits.files:
            return _left_too_much(f"{self._limits.files:,} files")
        return None

    def _folder_use(self) -> FolderUse:
        outside = () if self._tree.uid is None else files_outside(self._tree.uid)
        return use_of(
            (self._folder, *outside),
            most_mb=self._limits.folder_mb,
            most_files=self._limits.files,
        )


def too_much_memory(limit_mb: int, used_mb: float) -> str:
    """What is said of a tree that was too large."""
    return f"It ran out of memory: it used {used_mb:.0f} MB, and its limit is {limit_mb} MB"


def _left_too_much(limit: str) -> Excess:
    return Excess(is_memory=False, because=f"It left more than {limit}, which is the limit")


def require_room(folder: Path) -> None:
    """Refuse a disk that is full.

    Raises:
        FullDiskError: it is.
    """
    disk = os.statvfs(folder)
    free_mb = disk.f_bavail * disk.f_frsize / _MB
    if free_mb < _LEAST_FREE_MB:
        raise FullDiskError(
            f"The disk of {folder.parent} has {free_mb:.0f} MB left; "
            f"a run needs at least {_LEAST_FREE_MB}"
        )
    # Some disks do not count their files, and say 0.
    if disk.f_files and disk.f_favail < _LEAST_FREE_FILES:
        raise FullDiskError(
            f"The disk of {folder.parent} has room for {disk.f_favail} more files; "
            f"a run needs at least {_LEAST_FREE_FILES}"
        )
