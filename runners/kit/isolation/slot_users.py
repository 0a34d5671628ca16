"""Users that exist for the length of one run: a pool of numbers that nobody else has."""

import fcntl
import os
import pwd
import secrets
import stat
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final

from runners.kit.isolation.host_error import HostError
from runners.kit.isolation.processes import all_pids, user_of

SLOT_UIDS: Final = range(60600, 60800)
"""Unused by Debian's and systemd's conventions, below 65536, where user namespaces often end."""
_LOCKS: Final = "picket-slots"


class SlotUsers:
    """Lends each run a user; a lock per number keeps agents of one machine apart."""

    def __init__(self, locks: Path | None = None) -> None:
        """`locks`: the folder for them, ours alone. None: one that all agents here know.

        Raises:
            OSError: locks cannot be kept.
        """
        self._locks = _lock_folder() if locks is None else locks
        self._lent: dict[int, int] = {}
        """The descriptor of the lock of each number."""

    def borrow(self) -> int:
        """A user that no process runs as, and nobody else gets until it is given back.

        Raises:
            OSError: all are in use, or a lock cannot be had.
        """
        busy = {user_of(pid) for pid in all_pids()}
        for uid in secrets.SystemRandom().sample(SLOT_UIDS, len(SLOT_UIDS)):
            if uid not in busy and not _is_known(uid) and self.lock(uid):
                return uid
        raise OSError(f"All {len(SLOT_UIDS)} users for scripts are in use")

    def lock(self, uid: int) -> bool:
        """Take a number if no agent has it."""
        if uid in self._lent:
            return False
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


def _lock_folder() -> Path:
    """In the folder for such things, or where that is read-only, in the one for temporary files."""
    run = Path("/run")
    folder = (run if os.access(run, os.W_OK) else Path(tempfile.gettempdir())) / _LOCKS
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise HostError(f"The folder {folder} is open to others", remedy="remove it")
    return folder


@lru_cache(maxsize=len(SLOT_UIDS))
def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
