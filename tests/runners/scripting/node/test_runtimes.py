"""What runs scripts is found where it was installed, and what is missing is said in a sentence."""

import json
from pathlib import Path

import pytest

from runners.scripting.node.runtimes import MissingRuntimeError, Runtimes, find_runtimes


def lay_out(
    folder: Path, runtime_id: str, *, playwright: str = "1.65.1", ready: bool = True
) -> None:
    """A runtime as `picket setup` leaves it, without what is large."""
    made_of = {"engines": {"node": "24.19.0"}, "dependencies": {"@playwright/test": playwright}}
    (folder / runtime_id).mkdir()
    (folder / runtime_id / "package.json").write_text(json.dumps(made_of))
    if ready:
        (folder / runtime_id / "ready").write_text("")


def browser(folder: Path, *, says: str = "Chromium 156.0.8078.79", mode: int = 0o755) -> Path:
    path = folder / "chromium"
    path.write_text(f'#!/bin/sh\ntest "$1" = --version && echo {says}\n')
    path.chmod(mode)
    return path


def test_a_check_that_names_no_runtime_gets_the_newest(tmp_path: Path) -> None:
    lay_out(tmp_path, "2025.04")
    lay_out(tmp_path, "2026.04")
    found = find_runtimes(tmp_path)
    assert found.installed == ("2026.04", "2025.04")
    assert found.get(None).id == "2026.04"
    assert found.get("2025.04").id == "2025.04"


def test_a_runtime_tells_where_its_parts_are_and_which_playwright_it_has(tmp_path: Path) -> None:
    lay_out(tmp_path, "2025.04", playwright="1.51.1")
    runtime = find_runtimes(tmp_path).get("2025.04")
    assert runtime.node == tmp_path / "2025.04/bin/node"
    assert runtime.modules == tmp_path / "2025.04/node_modules"
    assert (runtime.node_version, runtime.playwright) == ("24.19.0", "1.51.1")
    assert runtime.compile_cache is None


def test_libraries_are_named_by_the_place_that_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    lay_out(tmp_path / "disk", "2026.04")
    (tmp_path / "runtimes").symlink_to(tmp_path / "disk")
    runtime = find_runtimes(tmp_path / "runtimes").get(None)
    assert runtime.modules == tmp_path / "disk/2026.04/node_modules"


def test_a_compile_cache_is_used_where_there_is_one(tmp_path: Path) -> None:
    lay_out(tmp_path, "2026.04")
    (tmp_path / "2026.04/compile-cache").mkdir()
    assert find_runtimes(tmp_path).get(None).compile_cache == tmp_path / "2026.04/compile-cache"


def test_code_compiled_ahead_that_is_damaged_is_left_out_and_the_reason_is_told(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path, "2026.04")
    assert find_runtimes(tmp_path).get(None).code_cache_fault is None
    (tmp_path / "2026.04/code-cache").write_bytes(b"\0" * 4096)
    runtime = find_runtimes(tmp_path).get(None)
    assert runtime.code_cache is None
    assert runtime.code_cache_fault is not None


def test_a_runtime_whose_installation_broke_off_is_none(tmp_path: Path) -> None:
    lay_out(tmp_path, "2026.04", ready=False)
    assert find_runtimes(tmp_path).installed == ()


def test_a_missing_runtime_is_named_beside_those_that_are_there(tmp_path: Path) -> None:
    lay_out(tmp_path, "2026.04")
    with pytest.raises(MissingRuntimeError, match=r"2024\.09 is not .* has 2026\.04\."):
        find_runtimes(tmp_path).get("2024.09")


def test_a_machine_without_runtimes_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingRuntimeError, match="this machine has none"):
        find_runtimes(tmp_path / "nowhere").get(None)
    assert Runtimes().installed == ()


def test_the_browser_is_the_program_that_a_person_named(tmp_path: Path) -> None:
    found = find_runtimes(tmp_path / "nowhere", browser(tmp_path))
    assert found.browser == tmp_path / "chromium"
    assert found.browser_version == "156.0.8078.79"


def test_a_browser_beside_the_runtimes_goes_before_the_systems(tmp_path: Path) -> None:
    (tmp_path / "downloaded").mkdir()
    downloaded = browser(tmp_path / "downloaded", says="Google Chrome for Testing 149.0.7827.0")
    (tmp_path / "chromium").symlink_to(downloaded)
    found = find_runtimes(tmp_path)
    assert (found.browser, found.browser_version) == (downloaded, "149.0.7827.0")


@pytest.mark.parametrize(
    ("says", "mode"), [("Chromium 1.2.3.4", 0o644), ("hello", 0o755), ("; exit 127", 0o755)]
)
def test_a_browser_that_cannot_be_started_is_none(tmp_path: Path, says: str, mode: int) -> None:
    found = find_runtimes(tmp_path, browser(tmp_path, says=says, mode=mode))
    assert (found.browser, found.browser_version) == (None, None)


def test_a_browser_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert find_runtimes(tmp_path, tmp_path / "chromium").browser is None


def test_videos_need_the_ffmpeg_beside_the_runtimes(tmp_path: Path) -> None:
    assert find_runtimes(tmp_path).ffmpeg is None
    (tmp_path / "ffmpeg").symlink_to("/bin/sh")
    assert find_runtimes(tmp_path).ffmpeg == Path("/bin/sh").resolve()
