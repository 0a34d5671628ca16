"""Monitors what a running child uses: memory, disk and processes."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from sandbox.memory import measure_memory
from sandbox.processes import ProcessTree
from sandbox.program import Limits
from sandbox.system_calls import file_access_of
from sandbox.users import files_outside

_MB: Final = 1024 * 1024
_BLOCK_BYTES: Final = 512


class DiskUsage(msgspec.Struct, frozen=True):
    """The size and number of files; counting stops soon after a limit is exceeded."""

    used_mb: float
    files: int
    """The number of files and folders: each takes one inode."""


def measure_disk_usage(paths: Iterable[Path], *, most_mb: float, most_files: int) -> DiskUsage:
    """Count files, and all that is in folders, until a limit is exceeded; it blocks."""
    used_bytes, files = 0.0, 0
    for size_bytes in chain.from_iterable(map(_sizes, paths)):
        used_bytes, files = used_bytes + size_bytes, files + 1
        if used_bytes > most_mb * _MB or files > most_files:
            break
    return DiskUsage(used_bytes / _MB, files)


def _sizes(path: Path) -> Iterator[float]:
    """Yield the size in bytes of a file, or of a folder and of each entry below it."""
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


class NamelessFiles(msgspec.Struct, frozen=True):
    """Files without a name that processes have open, each counted once."""

    memory_mb: float = 0
    """Those that only ever were in memory (`memfd`)."""
    disk_mb: float = 0
    """Those that were deleted."""
    deleted: int = 0
    """The number of these."""


def measure_nameless_files(pids: Iterable[int], *, uid: int | None) -> NamelessFiles:
    """Count the files that processes have open and no folder shows; it blocks.

    `uid`: the user of these processes. None: our own.
    """
    memory: dict[tuple[int, int], int] = {}
    deleted: dict[tuple[int, int], int] = {}
    with file_access_of(uid):
        for path in chain.from_iterable(map(_open_files, pids)):
            with contextlib.suppress(OSError):
                seen = os.stat(path)  # noqa: PTH116 - of each descriptor, once a second
                if seen.st_nlink or not stat.S_ISREG(seen.st_mode):
                    continue
                is_memory = os.readlink(path).startswith("/memfd:")  # noqa: PTH115 - as above
                kind = memory if is_memory else deleted
                kind[seen.st_dev, seen.st_ino] = seen.st_blocks * _BLOCK_BYTES
    return NamelessFiles(sum(memory.values()) / _MB, sum(deleted.values()) / _MB, len(deleted))


def _open_files(pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    try:
        return [f"{folder}/{number}" for number in os.listdir(folder)]  # noqa: PTH208 - as above
    except OSError:
        return []


_CHECK_EVERY_S: Final = 0.25
_CHECK_OFTEN_S: Final = 0.05
"""The pause while more than half of the memory is used: a process allocates 1 GB in 0.3 s."""
_MUCH_SHARE: Final = 0.5
_NEAR_LIMIT_SHARE: Final = 0.75
"""The share of RLIMIT_DATA above which a process was probably refused memory."""
_FOLDER_EVERY_S: Final = 1.0
_FOLDER_SHARE: Final = 0.05
"""The share of the time that counting a folder with very many files may take."""
_FORK_S: Final = 0.02
_LEAST_FREE_MB: Final = 50
_LEAST_FREE_FILES: Final = 2000
"""A browser's profile alone takes a few hundred files."""


class FullDiskError(OSError):
    """The disk is too full for runs, whoever filled it."""


class ExceededLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a program exceeded."""

    is_memory: bool
    because: str
    """One sentence with the limit and the use that was measured."""


class LimitMonitor:
    """Compares the use of one child with its limits, and remembers the peak of its memory."""

    def __init__(
        self, tree: ProcessTree, limits: Limits, folder: Path, *, on_usage: Callable[[float], None]
    ) -> None:
        """`on_usage`: called at each check with the memory in use, in MB."""
        self._on_usage = on_usage
        self._tree = tree
        self._limits = limits
        self._folder = folder
        self._folder_due = time.monotonic() + _FOLDER_EVERY_S
        self._nameless = NamelessFiles()
        self._nameless_due = 0.0
        self.peak_mb = 0.0
        self._used_mb = 0.0
        self._reserved_mb = 0.0
        """The largest VmData of any process."""

    @property
    def pause_s(self) -> float:
        """How long to wait until the next check."""
        is_much = self._used_mb > _MUCH_SHARE * self._limits.memory_mb
        return _CHECK_OFTEN_S if is_much else _CHECK_EVERY_S

    @property
    def was_refused_memory(self) -> bool:
        """Whether a process came near RLIMIT_DATA, where the system refuses more memory."""
        return self._reserved_mb > _NEAR_LIMIT_SHARE * self._limits.data_mb

    def check(self) -> ExceededLimit | None:
        """Find a limit that is exceeded now; it blocks. None: there is none.

        Raises:
            FullDiskError: the disk is full.
        """
        pids = self._tree.pids()
        self._tree.reap_orphans(pids)
        self._look_at_open_files(pids)
        return self._processes(pids) or self._memory(pids) or self._files()

    def _look_at_open_files(self, pids: list[int]) -> None:
        started = time.monotonic()
        if started < self._nameless_due:
            return
        self._nameless = measure_nameless_files(pids, uid=self._tree.uid)
        took_s = time.monotonic() - started
        self._nameless_due = started + max(_FOLDER_EVERY_S, took_s / _FOLDER_SHARE)

    def _memory(self, pids: list[int]) -> ExceededLimit | None:
        seen = measure_memory(pids)
        self._reserved_mb = max(self._reserved_mb, seen.reserved_mb)
        # What is mapped of them counts already, once for each process.
        nameless_mb = max(0.0, self._nameless.memory_mb - seen.shared_files_mb)
        used = seen.used_mb + nameless_mb
        if used > self._limits.memory_mb:
            # A fork doubles the figure until its exec: what lasts is seen twice.
            time.sleep(_FORK_S)
            used = min(used, measure_memory(self._tree.pids()).used_mb + nameless_mb)
        self._used_mb, self.peak_mb = used, max(self.peak_mb, used)
        self._on_usage(used)
        if used <= self._limits.memory_mb:
            return None
        return ExceededLimit(
            is_memory=True, because=describe_memory_excess(self._limits.memory_mb, used)
        )

    def _processes(self, pids: list[int]) -> ExceededLimit | None:
        if len(pids) <= self._limits.processes:
            return None
        return ExceededLimit(
            is_memory=False,
            because=f"It had {len(pids)} processes; the limit is {self._limits.processes}",
        )

    def _files(self) -> ExceededLimit | None:
        started = time.monotonic()
        if started < self._folder_due:
            return None
        require_free_disk(self._folder)
        seen = self._folder_use()
        took_s = time.monotonic() - started
        self._folder_due = started + max(_FOLDER_EVERY_S, took_s / _FOLDER_SHARE)
        if seen.used_mb + self._nameless.disk_mb > self._limits.folder_mb:
            return _exceeded_disk(f"{self._limits.folder_mb} MB of files")
        if seen.files + self._nameless.deleted > self._limits.files:
            return _exceeded_disk(f"{self._limits.files:,} files")
        return None

    def _folder_use(self) -> DiskUsage:
        outside = () if self._tree.uid is None else files_outside(self._tree.uid)
        return measure_disk_usage(
            (self._folder, *outside),
            most_mb=self._limits.folder_mb,
            most_files=self._limits.files,
        )


def describe_memory_excess(limit_mb: int, used_mb: float) -> str:
    """Describe that a program used more memory than its limit."""
    return f"It ran out of memory: it used {used_mb:.0f} MB, and its limit is {limit_mb} MB"


def _exceeded_disk(limit: str) -> ExceededLimit:
    return ExceededLimit(is_memory=False, because=f"It left more than {limit}, which is the limit")


def require_free_disk(folder: Path) -> None:
    """Require that the disk of a folder has room for a run.

    Raises:
        FullDiskError: it has not.
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
