"""Gives a run's folder to its user for as long as it runs, and shuts it afterwards."""

import contextlib
import os
import stat
from pathlib import Path

_NOBODYS_LINKS = 1


def give_folder(folder: Path, uid: int) -> None:
    """Make a run's folder and all in it the user's; it blocks.

    Raises:
        OSError: the user could not get there.
    """
    _require_way(folder)
    for _, folders, files, handle in os.fwalk(folder, follow_symlinks=False):
        os.chown(handle, uid, uid)
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                _give(name, handle, uid)


def take_folder(folder: Path) -> None:
    """Shut a run's folder against whoever gets its user next; what is in it stays as it is."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(folder, flags)
    except FileNotFoundError:
        return
    try:
        os.fchown(handle, os.geteuid(), os.getegid())
        os.fchmod(handle, stat.S_IRWXU)
    finally:
        os.close(handle)


def _give(name: str, handle: int, uid: int) -> None:
    # A file with a second name is left alone: a script could have linked one of the system's.
    found = os.stat(name, dir_fd=handle, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode) or found.st_nlink == _NOBODYS_LINKS:
        os.chown(name, uid, uid, dir_fd=handle, follow_symlinks=False)


def shut_way(folder: Path) -> Path | None:
    """The first folder above that other users cannot pass. None: they can get there."""
    above = folder.resolve().parents
    return next((one for one in above if not one.stat().st_mode & stat.S_IXOTH), None)


def _require_way(folder: Path) -> None:
    above = shut_way(folder)
    if above is not None:
        raise PermissionError(
            f"A script's own user cannot enter {above}, so it cannot work in {folder}; "
            f"chmod o+x {above}, or choose another folder for runs"
        )
