"""`picket setup` says what is there, and names what is not with the way to get it."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from picket.__main__ import main
from runners.installation.places import SOURCES, fingerprint, runtime_ids
from runners.installation.runtimes import _ffmpeg
from runners.scripting.playwright.compile_cache import is_warm
from tests.builders.scripts import runtimes_here

FOUND = runtimes_here()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PICKET_RUNTIMES", str(tmp_path))
    monkeypatch.setenv("CHROMIUM_PATH", "/nowhere/chromium")
    return tmp_path


def lay_out(folder: Path, runtime_id: str) -> Path:
    """A runtime that is whole by its own word; its Node runs shell scripts."""
    home = folder / runtime_id
    (home / "bin").mkdir(parents=True)
    (home / "bin/node").symlink_to("/bin/sh")
    shutil.copy(SOURCES / runtime_id / "package.json", home)
    (home / "ready").write_text(fingerprint(runtime_id))
    return home


@pytest.mark.skipif(not (FOUND.installed and FOUND.browser), reason="not all is installed here")
def test_all_that_is_installed_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--check"]) == 0
    said = capsys.readouterr().out
    assert "missing" not in said
    for one in runtime_ids():
        assert f"Runtime {one}: installed, " in said


@pytest.mark.usefixtures("folder")
def test_what_is_missing_is_named_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--check"]) == 1
    *runtimes, ffmpeg, chromium = capsys.readouterr().out.splitlines()
    assert all("missing in " in line and "run picket setup" in line for line in runtimes)
    assert "missing" in ffmpeg
    assert "apt-get install" in chromium or "picket setup" in chromium


def test_a_runtime_of_another_release_is_not_taken_for_ours(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lay_out(folder, "2026.04")
    (home / "ready").write_text("of another release")
    assert main(["setup", "--check"]) == 1
    assert f"Runtime 2026.04: incomplete or from another release, {home}" in capsys.readouterr().out


def test_a_distribution_without_apt_gets_the_build_of_playwright(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest runtime's own command is asked for it, into the folder of the runtimes."""
    for one in runtime_ids():
        lay_out(folder, one)
    shutil.copy2(_ffmpeg(), folder / "ffmpeg")
    program = folder / "browsers/chromium-1/chrome-headless-shell"
    cli = folder / max(runtime_ids()) / "node_modules/@playwright/test/cli.js"
    cli.parent.mkdir(parents=True)
    cli.write_text(
        f'test "$*" = "install --only-shell chromium" || exit 1\n'
        f"test $PLAYWRIGHT_BROWSERS_PATH = {folder}/browsers || exit 1\n"
        f"/bin/mkdir -p {program.parent}\n"
        f"printf '#!/bin/sh\\necho Chromium 1.2.3.4\\n' >{program}\n"
        f"/bin/chmod +x {program}\n"
    )
    monkeypatch.setenv("PATH", str(folder))
    main(["setup"])
    assert (folder / "chromium").resolve() == program
    monkeypatch.delenv("CHROMIUM_PATH")
    capsys.readouterr()
    main(["setup", "--check"])
    assert f"Chromium: version 1.2.3.4, {program}" in capsys.readouterr().out


@pytest.mark.skipif(not (FOUND.installed and FOUND.browser), reason="not all is installed here")
def test_what_was_compiled_without_the_browser_is_compiled_anew_when_there_is_one() -> None:
    runtime = FOUND.get(None)
    without = dataclasses.replace(FOUND, browser=None)
    assert is_warm(runtime, FOUND)
    assert is_warm(runtime, without)
    made = runtime.node.parents[1] / "warmed"
    kept = made.read_text()
    try:
        made.write_text("without a browser\n")
        assert not is_warm(runtime, FOUND)
        assert is_warm(runtime, without)
    finally:
        made.write_text(kept)
