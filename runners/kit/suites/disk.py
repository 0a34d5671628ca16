"""Tells a disk that was full, which is our fault, from a suite that only says so."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from runners.kit.isolation.watch import FullDiskError

_SAID: Final = re.compile(r"\bENOSPC\b|no space left on device", re.IGNORECASE)
_MB: Final = 1024 * 1024
_FILES: Final = 200_000
"""So many may a package manager have written, and removed again when it met the end."""


def require_room_after(said: Iterable[str], folder: Path, *, folder_mb: int) -> None:
    """Refuse to blame a run that failed on a full disk; it blocks.

    A run that fails removes what it wrote, so the disk has room again by now: up to the
    `folder_mb` that the run was allowed. With more room than that it cannot have filled it.

    Raises:
        FullDiskError: it says that the disk was full, and that may be true.
    """
    if not any(_SAID.search(text) for text in said):
        return
    disk = os.statvfs(folder)
    free_mb = disk.f_bavail * disk.f_frsize / _MB
    # File systems without a number of files say that there are none.
    if free_mb < folder_mb or (disk.f_files and disk.f_favail < _FILES):
        raise FullDiskError(
            f"The disk of {folder.parent} was full: it has {free_mb:.0f} MB and "
            f"{disk.f_favail} files left after a suite's run, which may take {folder_mb} MB."
        )
