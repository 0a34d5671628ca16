"""A run's folder is locked while it is in use, and goes whatever is in it."""

from pathlib import Path

from runners.kit.sweeping import sweep_folders
from runners.kit.workspace import Workspace, is_deserted


def test_a_folder_in_use_is_not_swept_and_a_deserted_one_is(tmp_path: Path) -> None:
    used = Workspace(tmp_path)
    (used.folder / "file").write_text("x")
    deserted = tmp_path / "run-of-a-dead-agent"
    deserted.mkdir()
    (deserted / "file").write_text("x")
    other = tmp_path / "somebody-elses"
    other.mkdir()
    sweep_folders(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([used.folder, other])
    used.remove()


def test_a_folder_is_deserted_when_nobody_holds_it(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert not is_deserted(workspace.folder)
    workspace.remove()
    assert not is_deserted(tmp_path / "run-that-never-was")


def test_a_link_with_a_runs_name_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (tmp_path / "run-link").symlink_to(precious)
    sweep_folders(tmp_path)
    assert (precious / "file").exists()
