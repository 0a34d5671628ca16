"""What a run's files take up is counted, and a full disk is nobody's check's fault."""

from pathlib import Path

import pytest

from runners.kit import watch
from runners.kit.watch import FullDiskError, require_room, size_mb

MB = 1024 * 1024


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
