"""Whatever a script leaves can be removed."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir, mkdtemp

import pytest

from sandbox.workspace import remove_folder, temporary_folder
from tests.sandbox.worlds import FEWEST, ROOT, kept, needs_root

A_RUNS_USER = 60999
REMOVES = """
import sys, pathlib
from sandbox.workspace import remove_folder
remove_folder(pathlib.Path(sys.argv[1]))
"""


def nested(folder: Path, levels: int) -> None:
    """Folders in each other, deeper than any path leads."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("down", dir_fd=handle)
        deeper = os.open("down", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.close(handle)


@pytest.mark.parametrize("levels", [3, 1400, 3000])
def test_folders_of_any_depth_are_removed(tmp_path: Path, levels: int) -> None:
    (tmp_path / "left").mkdir()
    nested(tmp_path / "left", levels)
    remove_folder(tmp_path / "left")
    assert not (tmp_path / "left").exists()


def test_a_temporary_folder_goes_however_deep_it_became() -> None:
    with temporary_folder() as folder:
        nested(folder, 1400)
    assert not folder.exists()


@needs_root
def test_a_sticky_folder_is_removed_and_a_second_name_of_a_file_left_alone(tmp_path: Path) -> None:
    place = Path(mkdtemp(dir=gettempdir()))
    sticky, foreign = place / "ours/sticky", tmp_path / "foreign"
    sticky.mkdir(parents=True)
    foreign.write_text("somebody else's")
    os.chown(foreign, A_RUNS_USER + 1, A_RUNS_USER + 1)
    os.link(foreign, sticky / "file")
    for path in (sticky, place / "ours"):
        path.chmod(0o1777)
        os.chown(path, A_RUNS_USER, A_RUNS_USER)
    subprocess.run(
        ["setpriv", *kept(FEWEST), sys.executable, "-c", REMOVES, place],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        check=True,
    )
    assert not place.exists()
    assert foreign.stat().st_uid == A_RUNS_USER + 1
