"""A word in a log is not yet a full disk."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from runners.scripting.suites.install import require_disk_was_free
from sandbox.limits import FullDiskError

_MB = 1024 * 1024


def disk(monkeypatch: pytest.MonkeyPatch, *, free_mb: int, files: int = 10**6) -> None:
    seen = SimpleNamespace(f_bavail=free_mb, f_frsize=_MB, f_files=10**7, f_favail=files)
    monkeypatch.setattr(os, "statvfs", lambda _: seen)


@pytest.mark.parametrize("said", ["npm error code ENOSPC", "write: No space left on device"])
def test_who_says_that_the_disk_is_full_may_be_right(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    disk(monkeypatch, free_mb=90)
    with pytest.raises(FullDiskError, match="has 90 MB and 1000000 files left"):
        require_disk_was_free(["fine", said], Path("/runs/run-1"), folder_mb=100)


def test_a_disk_without_room_for_files_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, free_mb=10**6, files=10)
    with pytest.raises(FullDiskError, match="10 files left"):
        require_disk_was_free(["ENOSPC"], Path("/runs/run-1"), folder_mb=100)


def test_with_more_room_than_a_run_may_take_it_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, free_mb=101)
    require_disk_was_free(["ENOSPC"], Path("/runs/run-1"), folder_mb=100)


def test_who_does_not_say_so_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, free_mb=1)
    require_disk_was_free(["a test failed", "ENOSPCX"], Path("/runs/run-1"), folder_mb=100)
