"""Looks at a tree of processes as it runs, and says which limit it went over."""

import errno
import os
import time
from pathlib import Path
from typing import Final

import msgspec

from runners.kit.memory import used_mb
from runners.kit.process_tree import ProcessTree
from runners.kit.program import Limits

LOOK_EVERY_S: Final = 0.25
_FOLDER_EVERY_S: Final = 1.0
_FOLDER_SHARE: Final = 0.05
"""The part of the time that looking at a folder with very many files may take."""
_FORK_S: Final = 0.02
_LEAST_FREE_MB: Final = 50
_MB: Final = 1024 * 1024
_BLOCK_BYTES: Final = 512


class FullDiskError(OSError):
    """There is no room for runs, whoever used it up."""


class Excess(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that was gone over."""

    is_memory: bool
    because: str
    """One sentence with the limit and what was seen."""


class Watch:
    """Looks, and remembers the most memory that it saw."""

    def __init__(self, tree: ProcessTree, limits: Limits, folder: Path) -> None:
        self._tree = tree
        self._limits = limits
        self._folder = folder
        self._folder_due = time.monotonic() + _FOLDER_EVERY_S
        self.peak_mb = 0.0

    def look(self) -> Excess | None:
        """What is over its limit now. None: nothing; it blocks.

        Raises:
            FullDiskError: the disk is full.
        """
        pids = self._tree.living()
        return self._processes(pids) or self._memory(pids) or self._files()

    def _memory(self, pids: list[int]) -> Excess | None:
        used = used_mb(pids)
        if used > self._limits.memory_mb:
            # A fork doubles the figure until its exec: what lasts is seen twice.
            time.sleep(_FORK_S)
            used = min(used, used_mb(self._tree.living()))
        self.peak_mb = max(self.peak_mb, used)
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
        used = size_mb(self._folder, stop_above_mb=self._limits.folder_mb)
        took_s = time.monotonic() - started
        self._folder_due = started + max(_FOLDER_EVERY_S, took_s / _FOLDER_SHARE)
        if used <= self._limits.folder_mb:
            return None
        return Excess(
            is_memory=False,
            because=f"It left more than {self._limits.folder_mb} MB of files, which is the limit",
        )


def too_much_memory(limit_mb: int, used_mb: float) -> str:
    """What is said of a tree that was too large."""
    return f"It ran out of memory: it used {used_mb:.0f} MB, and its limit is {limit_mb} MB"


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


def size_mb(folder: Path, *, stop_above_mb: float) -> float:
    """What all files in a folder take up on the disk; counted no further than the limit."""
    limit_bytes, used_bytes = stop_above_mb * _MB, 0
    waiting = [str(folder)]
    while waiting and used_bytes <= limit_bytes:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    used_bytes += _size_bytes(entry)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:  # nested so that it cannot be counted
                return float("inf")
    return used_bytes / _MB


def _size_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    except OSError:
        return 0
