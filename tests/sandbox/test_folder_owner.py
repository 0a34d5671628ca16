"""A run's user gets what is in the run's folder, and not the folder."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.result import CheckFailed
from sandbox.errors import HostError
from sandbox.users import grant_folder, revoke_folder
from sandbox.workspace import Workspace
from tests.sandbox.worlds import needs_root

pytestmark = needs_root

UID = 60_599
"""Just beside those that are lent."""


@pytest.fixture
def folder() -> Iterator[Path]:
    workspace = Workspace()
    deep = workspace.folder / "work" / "a"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    (workspace.folder / "ours").touch()
    yield workspace.folder
    workspace.remove()


def owner(path: Path) -> int:
    return path.lstat().st_uid


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_subfolders_are_the_users_and_the_top_stays_ours(folder: Path) -> None:
    grant_folder(folder, UID)
    assert [owner(folder / name) for name in ("work", "work/a", "work/a/file")] == [UID] * 3
    assert [owner(folder), owner(folder / "ours")] == [0, 0]
    assert (folder.stat().st_gid, mode(folder)) == (UID, 0o710)


def test_a_folder_that_was_taken_back_is_shut(folder: Path) -> None:
    grant_folder(folder, UID)
    revoke_folder(folder)
    assert (owner(folder), folder.stat().st_gid, mode(folder)) == (0, 0, 0o700)


def test_what_a_link_leads_to_is_given_to_nobody(folder: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (folder / "work" / "link").symlink_to(precious)
    (folder / "work" / "name").hardlink_to(precious / "file")
    (folder / "top").symlink_to(precious)
    grant_folder(folder, UID)
    assert owner(folder / "work" / "link") == UID
    assert [owner(precious), owner(precious / "file"), owner(folder / "top")] == [0, 0, 0]


def test_folders_that_no_path_leads_to_are_the_scripts_fault(folder: Path) -> None:
    handle = os.open(folder / "work", os.O_RDONLY)
    for _ in range(30):
        os.mkdir("x" * 200, dir_fd=handle)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    with pytest.raises(CheckFailed, match="nested so deeply"):
        grant_folder(folder, UID)


def test_a_folder_that_its_user_could_not_enter_is_refused_in_a_sentence(folder: Path) -> None:
    inside = Workspace(folder)
    with pytest.raises(HostError, match=f"chmod o\\+x {folder}"):
        grant_folder(inside.folder, UID)
    inside.remove()
