"""Users that exist for the length of one run: a pool of numbers that nobody else has."""

import contextlib
import fcntl
import os
import pwd
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Final

SLOT_UIDS: Final = range(60600, 60800)
"""Unused by Debian's and systemd's conventions, below 65536, where user namespaces often end."""
LOCKS: Final = Path("/run/picket-slots")


class SlotUsers:
    """Lends each run a user; a lock per number keeps agents of one machine apart."""

    def __init__(self, locks: Path = LOCKS) -> None:
        self._locks = locks
        self._lent: dict[int, int] = {}
        """The descriptor of the lock of each number."""

    def borrow(self) -> int:
        """A user that no process runs as, and nobody else gets until it is given back.

        Raises:
            OSError: all are in use, or locks cannot be kept.
        """
        for uid in secrets.SystemRandom().sample(SLOT_UIDS, len(SLOT_UIDS)):
            if not _is_known(uid) and self.lock(uid):
                return uid
        raise OSError(f"All {len(SLOT_UIDS)} users for scripts are in use")

    def lock(self, uid: int) -> bool:
        """Take a number if nobody has it."""
        if uid in self._lent:
            return False
        self._locks.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._locks / str(uid), flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lent[uid] = descriptor
        return True

    def give_back(self, uid: int) -> None:
        """Let others have it."""
        os.close(self._lent.pop(uid))


def give_folder(folder: Path, uid: int) -> None:
    """Make a run's folder and all in it the user's.

    A file with a second name is left alone: that name could stand anywhere.
    """
    for _, folders, files, handle in os.fwalk(folder, follow_symlinks=False):
        os.chown(handle, uid, uid)
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if name in folders or found.st_nlink == 1:
                    os.chown(name, uid, uid, dir_fd=handle, follow_symlinks=False)


def take_folder(folder: Path) -> None:
    """Shut a run's folder against whoever gets its user next; what is in it stays as it is."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(handle, os.geteuid(), os.getegid())
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


@lru_cache(maxsize=len(SLOT_UIDS))
def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
