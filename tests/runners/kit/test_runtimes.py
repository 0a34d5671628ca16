"""What runs scripts is found where it was installed, and what is missing is said in a sentence."""

import json
from pathlib import Path

import pytest

from runners.kit.runtimes import MissingRuntimeError, Runtimes, find_runtimes


def lay_out(
    folder: Path, runtime_id: str, *, playwright: str = "1.65.1", ready: bool = True
) -> None:
    """A runtime as `scripts/runtimes.sh` leaves it, without what is large."""
    package = folder / runtime_id / "node_modules/@playwright/test/package.json"
    package.parent.mkdir(parents=True)
    package.write_text(json.dumps({"version": playwright}))
    if ready:
        (folder / runtime_id / "ready").write_text("")


def program(path: Path, mode: int = 0o755) -> Path:
    path.write_text("#!/bin/sh\n")
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
    assert runtime.playwright == "1.51.1"
    assert runtime.compile_cache is None


def test_a_compile_cache_is_used_where_there_is_one(tmp_path: Path) -> None:
    lay_out(tmp_path, "2026.04")
    (tmp_path / "2026.04/compile-cache").mkdir()
    assert find_runtimes(tmp_path).get(None).compile_cache == tmp_path / "2026.04/compile-cache"


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
    browser = program(tmp_path / "chromium")
    assert find_runtimes(tmp_path, browser).browser == browser


@pytest.mark.parametrize("mode", [None, 0o644], ids=["absent", "no program"])
def test_a_browser_that_cannot_be_started_is_none(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "chromium"
    if mode is not None:
        program(path, mode)
    assert find_runtimes(tmp_path, path).browser is None
