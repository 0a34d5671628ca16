"""What a run of Playwright calls is compiled once, and all runs may read it."""

import json
from pathlib import Path

import pytest

from runners.scripting.node.runtimes import CODE_CACHE, Runtimes, find_runtimes
from runners.scripting.playwright.compile_cache import main, warm
from tests.builders.scripts import runtimes_here

FOUND = runtimes_here()


def linked(folder: Path, runtime_id: str) -> Runtimes:
    """The runtimes of this machine, one of them in a folder that can be written to."""
    place = folder / runtime_id
    place.mkdir()
    for part in FOUND.by_id[runtime_id].node.parents[1].iterdir():
        if part.name != CODE_CACHE:
            (place / part.name).symlink_to(part)
    return find_runtimes(folder, FOUND.browser)


@pytest.mark.parametrize("runtime_id", FOUND.installed)
def test_a_runtime_is_warmed_by_a_run(runtime_id: str, tmp_path: Path) -> None:
    runtimes = linked(tmp_path, runtime_id)
    runtime = runtimes.get(runtime_id)
    assert runtime.code_cache is None
    made = warm(runtime, runtimes)
    assert find_runtimes(tmp_path, FOUND.browser).get(runtime_id).code_cache == made
    index = made.read_bytes().split(b"\n", 2)[1].decode()
    assert f"{runtime.modules}/playwright-core/" in index
    assert made.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("is_there", [True, False])
def test_a_machine_that_cannot_be_warmed_says_so_in_the_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_there: bool,
) -> None:
    if is_there:
        runtime = tmp_path / "runtimes/2026.04"
        runtime.mkdir(parents=True)
        (runtime / "ready").touch()
        made_of = {"engines": {"node": "24"}, "dependencies": {"@playwright/test": "1.65.1"}}
        (runtime / "package.json").write_text(json.dumps(made_of))
    monkeypatch.setattr(
        "runners.scripting.node.runtimes.runtimes_folder", lambda: tmp_path / "runtimes"
    )
    assert main() == 1
    said = "The runtime 2026.04 could not be warmed" if is_there else "No runtime is installed"
    assert said in capsys.readouterr().err
