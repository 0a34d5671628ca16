"""Removes what scripts leave: folders of any depth, closed ones and sticky ones too."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_ROOT: Final = 0


def remove_folder(folder: Path) -> None:
    """Delete a folder with all that is in it, as far as the system lets us; it blocks."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        if os.path.lexists(folder):
            _remove_by_force(folder)


def clear_place(path: Path) -> None:
    """Delete whatever stands there; a link, but not what it leads to; it blocks.

    Raises:
        OSError: it is no folder and cannot be deleted.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    elif path.exists():
        remove_folder(path)


def _remove_by_force(folder: Path) -> None:
    # Python goes down by one call per level and opens no closed folder; these do.
    for uid in _other_owners(folder):
        # A folder with the sticky bit is emptied by its owner, or with a capability that we
        # do without. Files of yet others stay theirs: a second name of one may be here.
        _run("chown", "-R", "-h", f"--from={uid}", str(os.geteuid()), "--", str(folder))
    _run("chmod", "-R", "u+rwX", "--", str(folder))
    _run("rm", "-rf", "--one-file-system", "--", str(folder))


def _other_owners(folder: Path) -> list[int]:
    """Whose folders are among these, beside ours, where we may take them over."""
    if os.geteuid() != _ROOT:
        return []
    not_ours = ("!", "-uid", str(os.geteuid()), "-printf", r"%U\n")
    found = _run("find", str(folder), "-xdev", "-type", "d", *not_ours)
    return sorted({int(uid) for uid in found.split()})


def _run(tool: str, *arguments: str) -> bytes:
    """What one of the system's own tools said."""
    done = subprocess.run(  # noqa: S603 -- the system's own
        [shutil.which(tool) or tool, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return done.stdout
