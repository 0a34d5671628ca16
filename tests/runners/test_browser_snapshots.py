"""Snapshots of browser checks, compared in real Chromium."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from contract.checks import Snapshot
from contract.result import FailureKind, Outcome
from contract.scripts import MAX_SNAPSHOTS
from runners.scripting.playwright.snapshots import take_snapshots
from sandbox.workspace import Workspace
from tests.builders.browser_checks import a_test, evidence, look
from tests.builders.scripts import runtimes_here
from tests.builders.suites import a_suite_context

SCRIPT = "checks/front.spec.ts"
FOLDER = f"{SCRIPT}-snapshots"


def a_comparison(colour: str, *, name: str = "front") -> str:
    page = f"<body style='background: {colour}'></body>"
    return a_test(
        f'await page.setContent("{page}");\nawait expect(page).toHaveScreenshot("{name}.png");'
    )


async def seen(folder: Path, script: str, **changes: Any) -> tuple[Outcome, dict[str, bytes]]:
    """A run's outcome, and the bytes of its files by their names."""
    async with a_suite_context(folder) as ctx:
        outcome = await look(ctx, script, script_path=SCRIPT, **changes)
        files = {one.name: (ctx.workspace.folder / one.name) for one in outcome.artifacts}
        return outcome, {name: path.read_bytes() for name, path in files.items()}


async def a_baseline(folder: Path, script: str, **changes: Any) -> Snapshot:
    """What a run writes anew, stored as the service stores it."""
    outcome, files = await seen(folder, script, update_snapshots=True, **changes)
    assert outcome.failure is None
    (written,) = evidence(outcome).snapshots
    body = files[written.artifact]
    sha256 = hashlib.sha256(body).hexdigest()
    (folder / sha256).write_bytes(body)
    return Snapshot(path=written.path, sha256=sha256)


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_page_that_looks_as_its_snapshot_passes(tmp_path: Path, runtime_id: str) -> None:
    baseline = await a_baseline(tmp_path, a_comparison("teal"), runtime_id=runtime_id)
    assert baseline.path == f"{FOLDER}/front-linux.png"
    outcome, files = await seen(
        tmp_path, a_comparison("teal"), snapshots=(baseline,), runtime_id=runtime_id
    )
    assert outcome.failure is None
    assert evidence(outcome).snapshots == ()
    assert not [name for name in files if "front" in name or "snapshot" in name]


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_page_that_looks_otherwise_fails_with_both_pictures_and_their_difference(
    tmp_path: Path, runtime_id: str
) -> None:
    baseline = await a_baseline(tmp_path, a_comparison("teal"), runtime_id=runtime_id)
    outcome, files = await seen(
        tmp_path, a_comparison("red"), snapshots=(baseline,), runtime_id=runtime_id
    )
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "toHaveScreenshot" in outcome.failure.message
    assert {"front-expected.png", "front-actual.png", "front-diff.png"} <= files.keys()
    assert hashlib.sha256(files["front-expected.png"]).hexdigest() == baseline.sha256


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_page_without_a_snapshot_fails_and_writes_none(
    tmp_path: Path, runtime_id: str
) -> None:
    outcome, files = await seen(tmp_path, a_comparison("teal"), runtime_id=runtime_id)
    assert outcome.failure is not None
    assert f"A snapshot doesn't exist at {FOLDER}/front-linux.png" in outcome.failure.message
    assert "update-snapshots" in outcome.failure.message
    assert evidence(outcome).snapshots == ()
    assert not [name for name in files if name.startswith("snapshot")]


async def test_an_update_hands_over_what_differs_only(tmp_path: Path) -> None:
    both = a_test(
        "await page.setContent('<body></body>');\n"
        "expect('same').toMatchSnapshot('same.txt');\n"
        "expect('new').toMatchSnapshot('words.txt');"
    )
    told = {"same": "same", "words": "old"}
    kept = []
    for name, text in told.items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        (tmp_path / sha256).write_text(text)
        kept.append(Snapshot(path=f"{FOLDER}/{name}-linux.txt", sha256=sha256))
    outcome, files = await seen(tmp_path, both, snapshots=tuple(kept), update_snapshots=True)
    assert outcome.failure is None
    (written,) = evidence(outcome).snapshots
    assert written.path == f"{FOLDER}/words-linux.txt"
    assert files[written.artifact] == b"new"


async def test_a_link_in_the_place_of_a_snapshot_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "kept.txt").write_text("not the script's")
    script = a_test(
        "const fs = require('node:fs');\n"
        f"fs.mkdirSync('checks', {{ recursive: true }});\n"
        f"fs.symlinkSync('{tmp_path}/secret', '{FOLDER}');\n"
        f"fs.mkdirSync('a-snapshots');\n"
        f"fs.symlinkSync('{tmp_path}/secret/kept.txt', 'a-snapshots/kept.txt');"
    )
    outcome, files = await seen(tmp_path, script, update_snapshots=True)
    assert outcome.failure is None
    assert evidence(outcome).snapshots == ()
    assert b"not the script's" not in files.values()
    assert (tmp_path / "secret" / "kept.txt").is_file()


@pytest.mark.parametrize(("are_updated", "files", "read"), [(False, 20, 0), (True, 250, 200)])
def test_files_without_number_are_removed_and_not_all_are_read(
    tmp_path: Path, *, are_updated: bool, files: int, read: int
) -> None:
    workspace = Workspace(tmp_path)
    folder = workspace.folder / "check" / FOLDER
    folder.mkdir(parents=True)
    for number in range(files):
        with (folder / f"{number}.txt").open("wb") as file:
            file.truncate(1 << 20)
    before = bytes_read()
    take_snapshots(
        workspace, workspace.folder / "check", (), into=workspace, are_updated=are_updated
    )
    # What becomes an artifact is read a second time, for its digest.
    assert bytes_read() - before < (read + MAX_SNAPSHOTS * are_updated + 1) << 20
    assert list(folder.iterdir()) == []
    workspace.remove()


def bytes_read() -> int:
    """What this process has read so far, from files of any kind."""
    counted = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in counted)["rchar"])
