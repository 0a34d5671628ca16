"""An installation that cannot be finished says why, and leaves nothing that is used."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runners.installation import runtimes
from runners.installation.places import is_current, runtime_ids
from runners.installation.runtimes import InstallationError, has_ffmpeg, install

ROOT = Path(__file__).parents[3]


class Release:
    """A copy of what installs runtimes, and the folder that they go to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources = root / "runners/harness/runtimes"
        self.folder = root / "runtimes"
        shutil.copytree(ROOT / "runners/installation", root / "runners/installation")
        shutil.copytree(ROOT / "runners/harness/runtimes", self.sources)
        shutil.copy(ROOT / "runners/__init__.py", root / "runners")

    def install(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-P", "-B", "-c", RUN, str(self.root))
        return subprocess.run(
            (*command, "--folder", str(self.folder), *words),
            cwd=self.root,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )


RUN = """
import sys
root = sys.argv.pop(1)
sys.path.insert(0, root)
from runners.installation.__main__ import main
assert main.__code__.co_filename.startswith(root)
sys.exit(main())
"""


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def test_a_registry_that_is_away_is_named_and_leaves_no_runtime(
    release: Release, tmp_path: Path
) -> None:
    away = {
        "npm_config_registry": "http://127.0.0.1:9/",
        "npm_config_fetch_retries": "0",
        "npm_config_cache": str(tmp_path / "cache"),
    }
    done = release.install("2026.04", **away)
    assert done.returncode == 1
    assert "http://127.0.0.1:9/" in done.stderr
    assert "setup: failed: " in done.stderr or "\nfailed: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not is_current(release.folder, "2026.04")
    assert has_ffmpeg(release.folder)


NODE = """#!/bin/sh
case "$*" in
*" ci "*) mkdir -m 700 node_modules; : >node_modules/index.js; chmod 600 node_modules/index.js ;;
*warm.cjs) mkdir -p "$NODE_COMPILE_CACHE/v1-x64-0"; : >"$NODE_COMPILE_CACHE/v1-x64-0/a" ;;
esac
"""
"""Does what Node is started for, with the modes that a umask of 077 gives."""


def test_users_of_runs_can_read_all_of_a_runtime_whatever_the_modes_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "wheel"
    programs = wheel / "lib/node_modules/npm/bin"
    for folder in (programs, wheel / "bin"):
        folder.mkdir(parents=True)
    (wheel / "bin/node").write_text(NODE)
    for name in ("npm-cli.js", "npx-cli.js", "../index.js"):
        (programs / name).touch()
    for path in (wheel, *wheel.rglob("*")):
        path.chmod(0o700 if path.is_dir() or path.name == "node" else 0o600)
    monkeypatch.setattr(runtimes, "_wheels_node", lambda: wheel)
    install(tmp_path / "runtimes", ["2026.04"])
    runtime = tmp_path / "runtimes/2026.04"
    parts = [runtime, *runtime.rglob("*")]
    assert len([path for path in parts if path.is_file()]) > len([*programs.iterdir()])
    for path in parts:
        needed = 0o555 if path.is_dir() or path.parent.name == "bin" else 0o444
        if not path.is_relative_to(runtime / "lib"):
            assert path.stat().st_mode & needed == needed, path
        assert path.stat().st_mode & 0o444 == 0o444, path
        assert not path.stat().st_mode & 0o022, path
    cached = [path for path in parts if path.is_relative_to(runtime / "compile-cache")]
    assert cached
    assert not any(path.stat().st_mode & 0o222 for path in cached)


def test_a_program_that_does_not_end_is_stopped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "_LIMIT_S", 0.01)
    with pytest.raises(InstallationError, match=r"^stopped after 0\.01 s: .*/node .* ci "):
        install(tmp_path, ["2026.04"])
    assert not is_current(tmp_path, "2026.04")


def test_a_disk_without_room_is_named_before_anything_is_downloaded(release: Release) -> None:
    package = release.sources / "2026.04/package.json"
    said = json.loads(package.read_bytes())
    package.write_text(json.dumps({**said, "config": {"downloadMb": 1, "diskMb": 10**9}}))
    done = release.install("2026.04")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"setup: {release.folder} has ")
    assert line.endswith(" MB left; 1000000001 MB are needed")


def test_two_installations_do_not_meet_in_one_folder(release: Release) -> None:
    release.folder.mkdir()
    with (release.folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = release.install("2026.04")
    assert done.returncode == 1
    assert done.stderr == f"setup: another installation is running in {release.folder}\n"


def test_a_folder_that_cannot_be_made_is_named(release: Release) -> None:
    release.folder.touch()
    done = release.install("2026.04")
    assert done.returncode == 1
    assert str(release.folder) in done.stderr
    assert "Traceback" not in done.stderr


def test_an_id_that_no_runtime_has_is_refused(release: Release) -> None:
    done = release.install("2024.09")
    assert done.returncode == 2
    assert "2024.09" in done.stderr
    assert runtime_ids()[-1] in done.stderr


def test_a_runtime_is_current_until_what_it_is_made_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.installation.places.SOURCES", tmp_path / "sources")
    (tmp_path / "sources/2026.04").mkdir(parents=True)
    lock = tmp_path / "sources/2026.04/package-lock.json"
    lock.write_text("{}")
    from runners.installation.places import fingerprint  # noqa: PLC0415 - it reads the place late

    assert not is_current(tmp_path, "2026.04")
    (tmp_path / "2026.04").mkdir()
    (tmp_path / "2026.04/ready").write_text(fingerprint("2026.04"))
    assert is_current(tmp_path, "2026.04")
    lock.write_text('{"packages": {}}')
    assert not is_current(tmp_path, "2026.04")
