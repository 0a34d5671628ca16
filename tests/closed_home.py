"""A clone in a home that other users cannot enter, made enterable for the tests alone.

Tests run programs as users of their own, which read files of this clone and of its environment.
The program itself never relies on that; `make run` in root's home is tried by tests/machines.
"""

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Final

_CLONE_NEWNS: Final = 0x00020000
_ASIDE: Final = Path("/run")
"""Covered in passing, in this process's mounts alone."""


def open_to_other_users(folder: Path) -> None:
    """Let other users come to the folder by its own path, in this process and its children.

    Each closed folder above is covered by one that can be passed and that holds what it held.
    Nothing changes on disk, nor for other processes. Only root can do so, and only root needs it.
    """
    closed = [above for above in reversed(folder.parents) if not above.stat().st_mode & 0o001]
    if not closed or os.geteuid() != 0 or ctypes.CDLL(None).unshare(_CLONE_NEWNS) != 0:
        return
    _mount("--make-rprivate", "/")
    for above in closed:
        _cover(above)
    os.chdir(Path.cwd())  # else it stays below the cover


def _cover(folder: Path) -> None:
    entries = [entry for entry in folder.iterdir() if not entry.is_symlink()]
    links = {entry.name: entry.readlink() for entry in folder.iterdir() if entry.is_symlink()}
    _mount("--rbind", str(folder), str(_ASIDE))
    _mount("-t", "tmpfs", "-o", "mode=0711", "tmpfs", str(folder))
    for entry in entries:
        if (_ASIDE / entry.name).is_dir():
            entry.mkdir()
        else:
            entry.touch()
        _mount("--rbind", str(_ASIDE / entry.name), str(entry))
    for name, target in links.items():
        (folder / name).symlink_to(target)
    subprocess.run(["umount", "--recursive", str(_ASIDE)], check=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)
