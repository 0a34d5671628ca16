"""What a run's files take up is counted, and a full disk is nobody's check's fault."""

import os
from pathlib import Path

import pytest

from runners.kit import watch
from runners.kit.process_limits import Identity
from runners.kit.process_tree import ProcessTree
from runners.kit.program import Limits
from runners.kit.watch import FullDiskError, Watch, require_room, size_mb

MB = 1024 * 1024


def a_watch(folder: Path, told: list[float], *, memory_mb: int) -> Watch:
    tree = ProcessTree(
        os.getpid(), Identity(uid=None, tag=1), is_live=lambda _: True, end_user=lambda _: None
    )
    return Watch(tree, Limits(memory_mb=memory_mb), folder, tell=told.append)


def test_each_look_tells_what_is_used(tmp_path: Path) -> None:
    told: list[float] = []
    watch = a_watch(tmp_path, told, memory_mb=100_000)
    assert watch.look() is None
    assert told == [watch.peak_mb]
    assert watch.peak_mb > 0
    assert not watch.was_refused_memory


def test_what_fills_up_is_looked_at_more_often(tmp_path: Path) -> None:
    roomy, tight = (a_watch(tmp_path, [], memory_mb=memory_mb) for memory_mb in (100_000, 1))
    assert roomy.pause_s == tight.pause_s
    roomy.look()
    tight.look()
    assert tight.pause_s < roomy.pause_s


def test_files_count_however_deep_they_lie(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x" * 3 * MB)
    assert 3 <= size_mb(tmp_path, stop_above_mb=100) < 4


def test_what_a_link_points_to_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    assert size_mb(tmp_path, stop_above_mb=100) < 1


def test_a_full_disk_is_told_with_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_room(tmp_path)
    monkeypatch.setattr(watch, "_LEAST_FREE_MB", 2**40)
    with pytest.raises(FullDiskError, match=r"has \d+ MB left; a run needs at least"):
        require_room(tmp_path)
