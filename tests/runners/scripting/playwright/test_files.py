"""What a run left is kept when it is a plain file of the run's own, wherever its names lead."""

import json
import os
from pathlib import Path

import pytest

from runners.scripting.playwright.outputs import (
    MOST_FILES,
    FileNames,
    KeptFiles,
    keep_files,
    read_degraded,
)
from sandbox.program import Deadline
from sandbox.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def put(folder: Path, path: str, content: bytes = b"x") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def kept_of(
    workspace: Workspace,
    *,
    within_s: float = 60,
    names: FileNames | None = None,
    failed: tuple[str, ...] = (),
) -> KeptFiles:
    return keep_files(
        workspace,
        workspace.folder / "out",
        into=workspace,
        until=Deadline.after(within_s),
        names=names or FileNames(),
        failed=failed,
    )


def kept(workspace: Workspace, secret: str = "none of them") -> set[str]:
    found = kept_of(workspace, names=FileNames((secret,)))
    return {one.name for one in found.artifacts}


def test_files_of_known_kinds_are_kept_under_their_own_names(workspace: Workspace) -> None:
    out = workspace.folder / "out"
    for name in ("a/trace.zip", "a/video.webm", "deep/er/shot.PNG", "notes.md", ".last-run.json"):
        put(out, name)
    assert kept(workspace) == {"trace.zip", "video.webm", "shot.PNG"}
    assert (workspace.folder / "trace.zip").read_bytes() == b"x"


def test_the_context_of_an_error_is_kept_as_a_file(workspace: Workspace) -> None:
    put(workspace.folder / "out", "shop/error-context.md")
    (found,) = kept_of(workspace).artifacts
    assert (found.name, found.kind) == ("error-context.md", "file")


def test_files_of_failed_tests_come_first_in_the_order_of_the_tests(workspace: Workspace) -> None:
    for name in ("a", "b", "c", "d"):
        put(workspace.folder / "out", f"{name}/trace.zip", name.encode())
    found = kept_of(workspace, failed=("d", "b"))
    order = [(workspace.folder / one.name).read_bytes() for one in found.artifacts]
    assert order == [b"d", b"b", b"a", b"c"]


def test_files_that_there_is_no_time_for_are_counted(workspace: Workspace) -> None:
    put(workspace.folder / "out", "a.png")
    assert kept_of(workspace, within_s=0) == KeptFiles(artifacts=(), out_of_time=1)


def test_files_of_one_name_are_told_apart_by_their_folders(workspace: Workspace) -> None:
    for name in ("one/trace.zip", "t wo/trace.zip", "deep/one/trace.zip"):
        put(workspace.folder / "out", name)
    assert len(kept(workspace)) == 3


def test_a_name_that_would_show_a_piece_of_a_secret_is_a_number(workspace: Workspace) -> None:
    secret = "hunter2-very-secret"
    put(workspace.folder / "out", f"{secret}{'z' * 134}.png")
    put(workspace.folder / "out", "plain.png")
    assert kept(workspace, secret) == {"screenshot-1.png", "plain.png"}


def test_no_link_leads_us_out_of_the_run(workspace: Workspace, tmp_path: Path) -> None:
    secret = put(tmp_path, "secret.png")
    out = workspace.folder / "out"
    put(out, "mine.png")
    (out / "soft.png").symlink_to(secret)
    os.link(secret, out / "hard.png")
    (out / "folder").symlink_to(tmp_path)
    os.mkfifo(out / "pipe.png")
    assert kept(workspace) == {"mine.png"}


def test_folders_nested_without_end_hide_nothing_else_and_break_nothing(
    workspace: Workspace,
) -> None:
    out = workspace.folder / "out"
    put(out, "z/late.png")
    handle = os.open(out, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    assert kept(workspace) == {"late.png"}
    workspace.remove()


def test_no_more_files_are_kept_than_a_result_names(workspace: Workspace) -> None:
    for number in range(MOST_FILES + 5):
        put(workspace.folder / "out", f"{number}.png")
    assert len(kept(workspace)) == MOST_FILES


@pytest.mark.parametrize(
    ("written", "because"),
    [
        (json.dumps({"messages": ["slow", "again"]}), "slow again"),
        (json.dumps({"messages": ["x" * 501]}), "x" * 499 + "…"),
        (
            json.dumps({"messages": []}),
            "The script declared its check degraded, without a message.",
        ),
        (json.dumps({"messages": [7]}), None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_a_script_says_by_a_file_that_its_check_is_degraded(
    tmp_path: Path, written: str, because: str | None
) -> None:
    put(tmp_path, "degraded.json", written.encode())
    assert read_degraded(tmp_path) == because


def test_a_script_that_says_nothing_is_not_degraded(tmp_path: Path) -> None:
    (tmp_path / "degraded.json").symlink_to(put(tmp_path, "x.json", b'{"messages":["a"]}'))
    assert read_degraded(tmp_path) is None


def test_a_folder_that_became_a_link_leads_to_no_other_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    theirs = put(tmp_path, "run-of-others/shot.png")
    (workspace.folder / "out").symlink_to(tmp_path)
    assert kept(workspace) == set()
    assert theirs.exists()
