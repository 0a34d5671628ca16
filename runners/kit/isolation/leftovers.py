"""What a run's user left outside its folder: files in folders open to all, shared memory, keys."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from runners.kit.isolation.keyrings import clear_keyrings
from runners.kit.isolation.removal import remove_folder

_OPEN_TO_ALL: Final = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")  # noqa: S108
_IPC: Final = tuple(Path("/proc/sysvipc") / kind for kind in ("shm", "sem", "msg"))


def files_outside(uid: int) -> list[Path]:
    """What a user has put into folders that are open to all; it blocks."""
    return [path for folder in _open_to_all() for path in _theirs(folder, uid)]


def remove_leftovers(uid: int, setpriv: str) -> None:
    """Delete whatever a user that runs no process any more has left; it blocks."""
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


def _theirs(folder: str, uid: int) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if _owner(entry) == uid]
    except OSError:
        return []


def _owner(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:
        return None


def _has_shared_memory(uid: int) -> bool:
    return any(str(uid) in line.split() for table in _IPC for line in _lines(table))


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()
    except OSError:
        return []


def _remove_shared_memory(uid: int, setpriv: str) -> None:
    tool = shutil.which("ipcrm")
    if tool is not None:
        # As the user: a container's root may not remove what others have made.
        subprocess.run(  # noqa: S603 -- the system's own tools
            [setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", tool, "--all"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
