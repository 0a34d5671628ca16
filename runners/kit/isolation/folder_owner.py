"""Gives what is in a run's folder to its user for as long as it runs, and shuts it afterwards.

The folder itself stays ours: no subfolder of it can be swapped for a link between two steps.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.isolation.host_error import HostError

_NOBODYS_LINKS: Final = 1
_FOR_PASSING: Final = stat.S_IRWXU | stat.S_IXGRP


def give_folder(folder: Path, uid: int) -> None:
    """Let a user pass a run's folder, and make its subfolders with all in them theirs; it blocks.

    To be called when nothing of the run's is running.

    Raises:
        OSError: the user could not get there.
        CheckFailed: what ran there before has left folders that no path leads to.
    """
    _require_way(folder)
    with os.scandir(folder) as entries:
        own = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    for path in own:
        _give_all(path, uid)
    _set(folder, owner=(os.geteuid(), uid), mode=_FOR_PASSING)


def take_folder(folder: Path) -> None:
    """Shut a run's folder against whoever gets its user next; what is in it stays as it is."""
    with contextlib.suppress(FileNotFoundError):
        _set(folder, owner=(os.geteuid(), os.getegid()), mode=stat.S_IRWXU)


def shut_way(path: Path) -> Path | None:
    """The first folder above that other users cannot pass. None: they can get there.

    On the way that the path names, and on the way to what it links to.
    """
    above = (*path.absolute().parents, *path.resolve().parents)
    return next((one for one in above if not one.stat().st_mode & stat.S_IXOTH), None)


def shut_part(path: Path) -> Path | None:
    """What keeps other users from reading a file or folder: one above it, or it. None: they can."""
    needed = stat.S_IROTH | stat.S_IXOTH if path.is_dir() else stat.S_IROTH
    is_open = path.stat().st_mode & needed == needed
    return shut_way(path) or (None if is_open else path)


def _set(folder: Path, *, owner: tuple[int, int], mode: int) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(handle, *owner)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _give_all(path: str, uid: int) -> None:
    waiting = [path]
    while waiting:
        place = waiting.pop()
        try:
            os.chown(place, uid, uid, follow_symlinks=False)
            for entry in _entries(place):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    _give(entry, uid)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise _too_deep() from problem
            raise


def _entries(place: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(place) as entries:
        yield from entries


def _give(entry: os.DirEntry[str], uid: int) -> None:
    # A file with a second name is left alone: a script could have linked one of the system's.
    with contextlib.suppress(FileNotFoundError):
        if entry.stat(follow_symlinks=False).st_nlink == _NOBODYS_LINKS:
            os.chown(entry.path, uid, uid, follow_symlinks=False)


def _require_way(folder: Path) -> None:
    above = shut_way(folder)
    if above is not None:
        raise HostError(
            f"A script's own user cannot enter {above}, so it cannot work in {folder}",
            remedy=f"chmod o+x {above}, or choose another folder for runs",
        )


def _too_deep() -> CheckFailed:
    return CheckFailed(
        FailureKind.SCRIPT, "The run left folders nested so deeply that no path leads to them."
    )
