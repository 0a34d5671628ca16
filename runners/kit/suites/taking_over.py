"""Makes installed packages ours and read-only, before they are kept for other runs."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4000 * 1024**2
"""As many as an installation may write; more is promised by files with holes only."""
_BLOCK_BYTES: Final = 512
_FOLDER: Final = 0o755
_FILE: Final = 0o444
_PROGRAM: Final = 0o555
_FOREIGN: Final = "Installing the packages gave a file of somebody else's a second name, "

_File = tuple[str, os.stat_result]


class UnfitPackagesError(Exception):
    """Packages that nobody keeps; the text says why. The fault of what was installed."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of all files."""

    disk_bytes: int
    """What they take."""
    told_bytes: int
    """What they take once they were copied: holes of a file are filled in."""


def take_over(modules: Path) -> Size:
    """Make all files ours, and read-only for everybody else; it blocks.

    To be called when nothing of the run's is running. Pipes, sockets and devices go: no package
    needs them, and another disk does not take them.

    Raises:
        UnfitPackagesError: there is a file that was somebody else's before, or too much.
        OSError: the disk refuses it, or no path leads to what is there.
    """
    installer, disk_bytes, told_bytes = modules.lstat().st_uid, 0, 0
    for path, about in _kept(_found(modules), installer):
        disk_bytes += about.st_blocks * _BLOCK_BYTES
        told_bytes += about.st_size
        _set(path, about)
    if told_bytes > MOST_BYTES:
        message = f"Installing the packages left {told_bytes} bytes; they may be {MOST_BYTES}."
        raise UnfitPackagesError(message)
    return Size(disk_bytes, told_bytes)


def _found(folder: Path) -> Iterator[_File]:
    """All that is in it, at any depth; folders are ours before they are looked into."""
    waiting = [str(folder)]
    while waiting:
        place = waiting.pop()
        os.chown(place, os.geteuid(), os.getegid(), follow_symlinks=False)
        os.chmod(place, _FOLDER)  # noqa: PTH101 - the same
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry.path, entry.stat(follow_symlinks=False)


def _kept(found: Iterator[_File], installer: int) -> Iterator[_File]:
    """Each file once, by one of its names; a package may have given one of the system another.

    Raises:
        UnfitPackagesError: there is a file that was somebody else's before.
    """
    with_names = set[tuple[int, int]]()
    for path, about in found:
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
            os.unlink(path)  # noqa: PTH108 - one of many thousands; a Path each costs more
        elif about.st_nlink == 1:
            yield path, about
        elif (about.st_dev, about.st_ino) not in with_names:
            if about.st_uid != installer:
                raise UnfitPackagesError(f"{_FOREIGN}{Path(path).name}.")
            with_names.add((about.st_dev, about.st_ino))
            yield path, about


def _set(path: str, about: os.stat_result) -> None:
    os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
    if stat.S_ISREG(about.st_mode):
        os.chmod(path, _PROGRAM if about.st_mode & 0o111 else _FILE)  # noqa: PTH101 - the same
