"""What a run's files take up is counted, and no further than its limits."""

import math
import os
from pathlib import Path

from sandbox.limits import DiskUsage, measure_disk_usage, measure_nameless_files

MB = 1024 * 1024


def use(*paths: Path, most_mb: float = 100, most_files: int = 100) -> DiskUsage:
    return measure_disk_usage(paths, most_mb=most_mb, most_files=most_files)


def test_files_count_however_deep_they_lie(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x" * 3 * MB)
    seen = use(tmp_path)
    assert 3 <= seen.used_mb < 4
    assert seen.files == 5


def test_what_a_link_points_to_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    assert use(tmp_path).used_mb < 1


def test_all_places_count_together(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.write_bytes(b"x" * MB)
    assert use(*places).used_mb >= 2


def test_no_more_is_counted_than_was_asked_for(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert use(tmp_path, most_files=5).files == 6


def test_what_is_nested_too_deep_to_be_counted_is_too_much(tmp_path: Path) -> None:
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(tmp_path)
        for _ in range(25):
            Path("x" * 200).mkdir()
            os.chdir("x" * 200)
    finally:
        os.fchdir(before)
        os.close(before)
    assert use(tmp_path).used_mb == math.inf


def test_files_that_are_deleted_but_open_count_once(tmp_path: Path) -> None:
    before = measure_nameless_files([os.getpid()], uid=None)
    with (tmp_path / "file").open("wb") as file, os.fdopen(os.dup(file.fileno()), "wb"):
        file.write(b"x" * 3 * MB)
        file.flush()
        (tmp_path / "file").unlink()
        seen = measure_nameless_files([os.getpid()], uid=None)
    assert 3 <= seen.disk_mb - before.disk_mb < 4
    assert seen.deleted - before.deleted == 1


def test_memory_in_a_file_counts_though_it_is_never_mapped() -> None:
    before = measure_nameless_files([os.getpid()], uid=None)
    with os.fdopen(os.memfd_create("hidden"), "wb") as file:
        file.write(b"x" * 3 * MB)
        file.flush()
        seen = measure_nameless_files([os.getpid()], uid=None)
    assert 3 <= seen.memory_mb - before.memory_mb < 4
