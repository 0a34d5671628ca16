"""Slot users: the system users that runs work as, their access to folders, and what they leave.

What is in a run's folder belongs to its user while it runs; afterwards the folder is closed. The
folder itself stays the agent's, so no subfolder can be replaced by a link between two steps.

Each user in use has two locks. One is a file in /run, for the agents that share it. The other is a
byte of the file of the PID namespace: agents that see each other's processes, and could kill them,
see it whatever folders they share (two containers with `--pid=container:…`).
"""

import contextlib
import errno
import fcntl
import os
import pwd
import secrets
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Final

from contract.result import CheckFailed, FailureKind
from sandbox.errors import HostError
from sandbox.keyrings import clear_keyrings
from sandbox.processes import all_pids, read_uid
from sandbox.workspace import remove_folder

SLOT_UIDS: Final = range(60600, 60800)
"""Ids that Debian and systemd leave unused, below 65536, where user namespaces often end."""
_LOCKS: Final = "picket-slots"


class SlotUsers:
    """Lends each run a user; locks per id keep the agents of one machine apart."""

    def __init__(self, locks: Path | None = None) -> None:
        """`locks`: a private folder for the lock files. None: the one that all agents here share.

        Raises:
            OSError: locks cannot be kept.
        """
        self._locks = _lock_folder() if locks is None else locks
        self._lent: dict[int, ExitStack] = {}
        """What closes the locks of each lent id."""

    def borrow(self) -> int:
        """Lock a user that no process runs as; nobody else gets it until it is given back.

        Raises:
            OSError: all are in use, or a lock cannot be had.
        """
        busy = {read_uid(pid) for pid in all_pids()}
        for uid in secrets.SystemRandom().sample(SLOT_UIDS, len(SLOT_UIDS)):
            if uid not in busy and not _is_known_account(uid) and self.lock(uid):
                return uid
        raise OSError(f"All {len(SLOT_UIDS)} users for scripts are in use")

    def lock(self, uid: int) -> bool:
        """Lock an id; return whether no other agent holds it."""
        if uid in self._lent:
            return False
        with ExitStack() as locks:
            if not (_lock_file(self._locks / str(uid), locks) and _lock_in_namespace(uid, locks)):
                return False
            self._lent[uid] = locks.pop_all()
        return True

    def give_back(self, uid: int) -> None:
        """Unlock an id."""
        self._lent.pop(uid).close()


def _lock_file(path: Path, locks: ExitStack) -> bool:
    """Lock a file until `locks` are closed; return whether nobody else has locked it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    locks.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_NAMESPACE: Final = "/proc/self/ns/pid"
_LOCK: Final = struct.Struct("hhqqi4x")
"""`struct flock`: type, whence, start, length, pid."""


def _lock_in_namespace(uid: int, locks: ExitStack) -> bool:
    """Lock an id in our PID namespace until `locks` are closed; return whether nobody else has it.

    The namespace's file can only be read, so a lock is a read lock that nobody shares.
    """
    descriptor = os.open(_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    locks.callback(os.close, descriptor)
    ours = _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, uid, 1, 0)
    alone = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, uid, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, ours)
        # Two agents that lock an id in the same moment see each other, and neither gets it.
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, alone)
    except OSError:  # a kernel without such locks, as gVisor's: the lock files decide alone
        return True
    return bool(_LOCK.unpack(found)[0] == fcntl.F_UNLCK)


def _lock_folder() -> Path:
    """Make the folder of lock files in /run, or in the temporary folder where that is read-only."""
    run = Path("/run")
    folder = (run if os.access(run, os.W_OK) else Path(tempfile.gettempdir())) / _LOCKS
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise HostError(f"The folder {folder} is open to others", remedy="remove it")
    return folder


@lru_cache(maxsize=len(SLOT_UIDS))
def _is_known_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


_NOBODYS_LINKS: Final = 1
_FOR_PASSING: Final = stat.S_IRWXU | stat.S_IXGRP


def grant_folder(folder: Path, uid: int) -> None:
    """Let a user enter a run's folder, and give it the subfolders with all they hold; it blocks.

    Nothing of the run may be running meanwhile.

    Raises:
        OSError: the user could not enter the folder.
        CheckFailed: what ran there before has left folders that no path leads to.
    """
    _require_passable(folder)
    with os.scandir(folder) as entries:
        own = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    for path in own:
        _chown_tree(path, uid)
    _set_owner_and_mode(folder, owner=(os.geteuid(), uid), mode=_FOR_PASSING)


def revoke_folder(folder: Path) -> None:
    """Close a run's folder to whoever gets its user next; what is in it stays as it is."""
    with contextlib.suppress(FileNotFoundError):
        _set_owner_and_mode(folder, owner=(os.geteuid(), os.getegid()), mode=stat.S_IRWXU)


def find_impassable_parent(path: Path) -> Path | None:
    """Find the first folder above that other users cannot enter. None: there is none.

    The parents of the path and those of what it links to are checked, as far as they exist.
    """
    above = (*path.absolute().parents, *path.resolve().parents)
    existing = (one for one in above if one.exists())
    return next((one for one in existing if not one.stat().st_mode & stat.S_IXOTH), None)


def find_unreadable_path(path: Path) -> Path | None:
    """Find what keeps other users from reading a path: a parent or itself. None: nothing does."""
    needed = stat.S_IROTH | stat.S_IXOTH if path.is_dir() else stat.S_IROTH
    is_open = path.stat().st_mode & needed == needed
    return find_impassable_parent(path) or (None if is_open else path)


def _set_owner_and_mode(folder: Path, *, owner: tuple[int, int], mode: int) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(handle, *owner)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _chown_tree(path: str, uid: int) -> None:
    waiting = [path]
    while waiting:
        place = waiting.pop()
        try:
            os.chown(place, uid, uid, follow_symlinks=False)
            for entry in _scan(place):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    _chown_file(entry, uid)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise _nested_too_deeply() from problem
            raise


def _scan(place: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(place) as entries:
        yield from entries


def _chown_file(entry: os.DirEntry[str], uid: int) -> None:
    # A file with a second link is left alone: a script could have linked a system file.
    with contextlib.suppress(FileNotFoundError):
        if entry.stat(follow_symlinks=False).st_nlink == _NOBODYS_LINKS:
            os.chown(entry.path, uid, uid, follow_symlinks=False)


def _require_passable(folder: Path) -> None:
    above = find_impassable_parent(folder)
    if above is not None:
        raise HostError(
            f"A script's own user cannot enter {above}, so it cannot work in {folder}",
            remedy=f"chmod o+x {above}, or choose another folder for runs",
        )


def _nested_too_deeply() -> CheckFailed:
    return CheckFailed(
        FailureKind.SCRIPT, "The run left folders nested so deeply that no path leads to them."
    )


_OPEN_TO_ALL: Final = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")  # noqa: S108
_IPC: Final = tuple(Path("/proc/sysvipc") / kind for kind in ("shm", "sem", "msg"))


def files_outside(uid: int) -> list[Path]:
    """List what a user has put into world-writable folders; it blocks."""
    return [path for folder in _open_to_all() for path in _list_owned(folder, uid)]


def remove_leftovers(uid: int, setpriv: str) -> None:
    """Delete whatever a user that has no process any more left behind; it blocks."""
    for path in files_outside(uid):
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)
    if _has_shared_memory(uid):
        _remove_shared_memory(uid, setpriv)
    clear_keyrings(uid)


def _open_to_all() -> set[str]:
    return {*_OPEN_TO_ALL, tempfile.gettempdir()}


def _list_owned(folder: str, uid: int) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if _read_owner(entry) == uid]
    except OSError:
        return []


def _read_owner(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:
        return None


def _has_shared_memory(uid: int) -> bool:
    return any(str(uid) in line.split() for table in _IPC for line in _read_lines(table))


def _read_lines(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()
    except OSError:
        return []


def _remove_shared_memory(uid: int, setpriv: str) -> None:
    tool = shutil.which("ipcrm")
    if tool is not None:
        # As the user: root in a container may not remove what others have made.
        subprocess.run(  # noqa: S603 -- the system's own tools
            [setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", tool, "--all"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
