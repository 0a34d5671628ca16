"""A run's folder is locked while it is in use, and goes whatever is in it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sandbox.cleanup import sweep_folders
from sandbox.workspace import (
    ScreenshotReview,
    Workspace,
    is_abandoned,
    secret_digest,
    temporary_folder,
)

KILLED = """
import os, signal
from sandbox.workspace import temporary_folder
with temporary_folder() as folder:
    (folder / "packages").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_in_use_is_not_swept_and_a_deserted_one_is(tmp_path: Path) -> None:
    used = Workspace(tmp_path)
    (used.folder / "file").write_text("x")
    deserted = tmp_path / "picket-run-of-a-dead-agent"
    deserted.mkdir()
    (deserted / "file").write_text("x")
    other = tmp_path / "somebody-elses"
    other.mkdir()
    sweep_folders(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([used.folder, other])
    used.remove()


@pytest.mark.parametrize("prefix", ["picket-files-", "picket-roots-"])
def test_folders_of_an_agent_itself_are_swept_when_it_is_no_more(
    tmp_path: Path, prefix: str
) -> None:
    used = Workspace(tmp_path, prefix=prefix)
    assert used.folder.name.startswith(prefix)
    (tmp_path / f"{prefix}of-a-dead-agent").mkdir()
    sweep_folders(tmp_path)
    assert list(tmp_path.iterdir()) == [used.folder]
    used.remove()


def test_a_folder_that_was_never_locked_is_swept_when_it_is_old(tmp_path: Path) -> None:
    fresh, old = tmp_path / "new-picket-run-fresh", tmp_path / "new-picket-run-old"
    fresh.mkdir()
    old.mkdir()
    os.utime(old, (1, 1))
    sweep_folders(tmp_path)
    assert list(tmp_path.iterdir()) == [fresh]


def test_a_folder_is_deserted_when_nobody_holds_it(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert not is_abandoned(workspace.folder)
    workspace.remove()
    assert not is_abandoned(tmp_path / "picket-run-that-never-was")


def test_a_link_with_a_runs_name_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (tmp_path / "picket-run-link").symlink_to(precious)
    sweep_folders(tmp_path)
    assert (precious / "file").exists()


def test_a_temporary_folder_of_a_killed_agent_is_swept_and_one_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", KILLED], env=env, check=False)
    (left,) = tmp_path.iterdir()
    assert (left / "packages").is_dir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder() as used:
        sweep_folders(tmp_path)
        sweep_folders(used.parent)
        assert used.is_dir()
    assert not left.exists()


def test_what_was_said_of_pictures_holds_for_the_secrets_that_were_looked_for(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path)
    (workspace.folder / "a.png").write_bytes(b"pixels")
    artifact = workspace.artifact("a.png", "screenshot")
    workspace.add_secret("first")
    assert workspace.run_file(artifact).review is ScreenshotReview.UNREVIEWED
    named = secret_digest("first", artifact.sha256)
    workspace.record_picture(artifact.sha256, is_masked=True, knew=(named, "of another"))
    assert workspace.run_file(artifact).review is ScreenshotReview.MASKED
    workspace.add_secret("second")
    assert workspace.run_file(artifact).review is ScreenshotReview.UNREVIEWED
    named = secret_digest("second", artifact.sha256)
    workspace.record_picture(artifact.sha256, is_masked=False, knew=(named,))
    assert workspace.run_file(artifact).review is ScreenshotReview.NO_SECRETS
    workspace.set_script_secrets(("of the location",))
    assert workspace.run_file(artifact).review is ScreenshotReview.UNREVIEWED
    workspace.remove()
