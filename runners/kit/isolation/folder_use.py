"""What files take up on a disk, in bytes and in number, counted no further than asked for."""

import errno
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

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
