"""Folders in memory, where a commit costs no turn of a disk: 15 ms, several times a test."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

_MEMORY: Final = Path("/dev/shm")
_ROOM_BYTES: Final = 2 << 30
"""A container's own is 64 MB as a rule: too few for what a broken test may write."""


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory, where there is some to spare; what is killed there is as dead as elsewhere."""
    if not _can_hold_tests():
        yield tmp_path
        return
    with TemporaryDirectory(dir=_MEMORY, prefix="picket-test-", ignore_cleanup_errors=True) as made:
        folder = Path(made) / "test"  # in one that only we may enter, as pytest's own are
        folder.mkdir()
        yield folder


def _can_hold_tests() -> bool:
    try:
        seen = os.statvfs(_MEMORY)
    except OSError:
        return False
    may_run_programs = not seen.f_flag & os.ST_NOEXEC
    has_room = seen.f_bavail * seen.f_frsize > _ROOM_BYTES
    return may_run_programs and has_room and os.access(_MEMORY, os.W_OK)
