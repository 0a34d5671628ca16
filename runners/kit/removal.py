"""Removes what scripts leave: folders of any depth, closed ones too."""

import shutil
import subprocess
from pathlib import Path


def remove_folder(folder: Path) -> None:
    """Delete a folder with all that is in it, as far as the system lets us; it blocks."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
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
    # Python goes down by one call per level and opens no closed folder; these two do.
    for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf", "--one-file-system")):
        subprocess.run(  # noqa: S603 -- both are the system's own
            [shutil.which(command[0]) or command[0], *command[1:], "--", str(folder)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
