"""What a run's files take up is counted, and a full disk is nobody's check's fault."""

import os
from pathlib import Path

import pytest

from sandbox import limits as watch
from sandbox.limits import ExceededLimit, FullDiskError, LimitMonitor, require_free_disk
from sandbox.processes import ProcessTree
from sandbox.program import Limits
from sandbox.spawn import Identity


def a_watch(folder: Path, told: list[float], **limits: int) -> LimitMonitor:
    tree = ProcessTree(
        os.getpid(), Identity(uid=None, tag=1), is_live=lambda _: True, end_user=lambda _: None
    )
    return LimitMonitor(tree, Limits(**limits), folder, on_usage=told.append)


def test_each_look_tells_what_is_used(tmp_path: Path) -> None:
    told: list[float] = []
    watch = a_watch(tmp_path, told, memory_mb=100_000)
    assert watch.check() is None
    assert told == [watch.peak_mb]
    assert watch.peak_mb > 0
    assert not watch.was_refused_memory


def test_what_fills_up_is_looked_at_more_often(tmp_path: Path) -> None:
    roomy, tight = (a_watch(tmp_path, [], memory_mb=memory_mb) for memory_mb in (100_000, 1))
    assert roomy.pause_s == tight.pause_s
    roomy.check()
    tight.check()
    assert tight.pause_s < roomy.pause_s


def test_more_files_than_allowed_are_too_many_however_small(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / str(number)).touch()
    watch = a_watch(tmp_path, [], memory_mb=100_000, files=6)
    watch._folder_due = 0
    assert watch.check() == ExceededLimit(
        is_memory=False, because="It left more than 6 files, which is the limit"
    )


def test_a_full_disk_is_told_with_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_free_disk(tmp_path)
    monkeypatch.setattr(watch, "_LEAST_FREE_MB", 2**40)
    with pytest.raises(FullDiskError, match=r"has \d+ MB left; a run needs at least"):
        require_free_disk(tmp_path)


def test_a_disk_that_takes_no_more_files_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LEAST_FREE_FILES", 2**62)
    with pytest.raises(FullDiskError, match=r"has room for \d+ more files; a run needs at least"):
        require_free_disk(tmp_path)
