"""What runs load and read is open to their users, wherever it is installed."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from contract.checks import CheckType
from runners.scripting.harness import find_unavailable, open_harness
from sandbox.cleanup import sweep_folders
from sandbox.users import find_unreadable_path
from sandbox.workspace import HARNESSES, temporary_folder
from tests.builders.scripts import runtimes_here

ROOT = Path(__file__).parents[3]
PACKAGES = ("agent", "contract", "redaction", "runners", "sandbox")
BY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives runs their own users")
TRY_ALL = """
import asyncio, sys
import runners.scripting.harness as ours
from agent.self_test import API_WITH_SCRIPTS, Trial, boot_check
from contract.checks import CheckType
from runners.scripting.harness import find_unavailable, open_harness
from runners.scripting.node.runtimes import find_runtimes
from runners.registry import runner_for
from pathlib import Path

SCRIPTED = (CheckType.BROWSER, CheckType.MULTI_STEP, CheckType.PLAYWRIGHT)

async def main():
    found = find_runtimes(Path(sys.argv[1]))
    async with open_harness(found) as harness:
        trials = [API_WITH_SCRIPTS, *(Trial(check_type=kind) for kind in SCRIPTED)]
        for kind in SCRIPTED:
            if (missing := find_unavailable(kind, harness)) is not None:
                print(missing.sentence)
        for one in await boot_check(trials, runner_for=runner_for, harness=harness):
            print("works" if one.works else one.unavailable.sentence)
        code = harness.runtimes.get(None).harness
        print(ours.__file__, code, oct(code.stat().st_mode & 0o7777), code.stat().st_uid)
    print(code.exists())

asyncio.run(main())
"""


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder that only its owner can enter, as root's home is."""
    tmp_path.chmod(0o700)
    return tmp_path


@BY_ROOT
def test_scripts_run_from_a_checkout_in_a_home_that_only_root_can_enter(closed: Path) -> None:
    home = closed / "home"
    home.mkdir()
    for name in PACKAGES:
        shutil.copytree(ROOT / name, home / name)
    installed = next(iter(runtimes_here().by_id.values())).node.parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", TRY_ALL, str(installed)],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    *tried, copy, is_left = ran.stdout.splitlines()
    module, code, mode, owner = copy.split()
    assert tried == ["works"] * 4, ran.stderr
    assert module.startswith(str(home))
    assert Path(code).name.startswith(HARNESSES)
    assert (mode, owner, is_left) == ("0o755", "0", "False")


@BY_ROOT
async def test_runs_cannot_write_to_the_copy_of_our_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut = tmp_path / "harness"
    shutil.copytree(ROOT / "runners/harness", shut)
    monkeypatch.setattr("runners.scripting.harness.HARNESS", shut)
    async with open_harness(runtimes_here()) as harness:
        assert harness is not None
        code = harness.runtimes.get(None).harness
        parts = [code, *code.rglob("*")]
        assert code != shut
        assert {path.stat().st_uid for path in parts} == {0}
        assert all(find_unreadable_path(path) is None for path in parts)
        assert not any(path.stat().st_mode & 0o022 for path in parts)


@BY_ROOT
def test_the_copy_of_an_agent_that_was_killed_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / f"{HARNESSES}left"
    left.mkdir()
    with temporary_folder(tmp_path, prefix=HARNESSES) as kept:
        sweep_folders(tmp_path)
        assert kept.is_dir()
    assert not left.exists()


async def test_code_that_everyone_can_read_is_not_copied(tmp_path: Path) -> None:
    async with open_harness(runtimes_here()) as harness:
        assert harness is not None
        assert harness.runtimes.get(None).harness == ROOT / "runners/harness"


@BY_ROOT
async def test_runtimes_that_the_users_of_runs_cannot_enter_are_named_with_the_remedy(
    closed: Path,
) -> None:
    modules = closed / "modules"
    modules.mkdir()
    runtime = replace(next(iter(runtimes_here().by_id.values())), modules=modules)
    found = replace(runtimes_here(), by_id=MappingProxyType({runtime.id: runtime}))
    async with open_harness(found) as harness:
        missing = find_unavailable(CheckType.MULTI_STEP, harness)
    assert missing is not None
    above = missing.cause.partition("cannot enter ")[2].partition(",")[0]
    assert closed.is_relative_to(above)
    assert missing.sentence == (
        "MULTI_STEP checks cannot run here: the users that scripts run as (60600 to 60799) cannot "
        f"enter {above}, where runtime {runtime.id} is; run `chmod o+x {above}`, or set "
        "PICKET_RUNTIMES to a folder that everyone may enter."
    )


def _open_to_everyone(folder: Path) -> None:
    for one in (folder, *folder.parents[:3]):
        if one != Path("/tmp"):
            one.chmod(0o755)


@BY_ROOT
async def test_an_npm_that_the_users_of_runs_cannot_enter_is_named(tmp_path: Path) -> None:
    program = tmp_path / "lib/node_modules/npm/bin/npm-cli.js"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/npm").symlink_to(Path("..") / program.relative_to(tmp_path))
    runtime = next(iter(runtimes_here().by_id.values()))
    shutil.copy(runtime.node, tmp_path / "bin/node")
    _open_to_everyone(tmp_path)
    runtime = replace(runtime, node=tmp_path / "bin/node")
    found = replace(runtimes_here(), by_id=MappingProxyType({runtime.id: runtime}))
    async with open_harness(found) as harness:
        assert find_unavailable(CheckType.MULTI_STEP, harness) is None
        (npm := tmp_path / "lib/node_modules/npm").chmod(0o700)
        missing = find_unavailable(CheckType.MULTI_STEP, harness)
        shutil.rmtree(npm)
        damaged = find_unavailable(CheckType.MULTI_STEP, harness)
    assert missing is not None
    assert f"cannot enter {npm}, where runtime {runtime.id} is" in missing.cause
    assert damaged is not None
    assert f"{tmp_path}/bin/npm leads to no file, where runtime {runtime.id} is" in damaged.cause
    assert f"remove {tmp_path}, then run `picket setup`" in damaged.remedy


@BY_ROOT
async def test_a_browser_that_the_users_of_runs_cannot_read_costs_browser_checks_alone(
    closed: Path,
) -> None:
    browser = closed / "chromium"
    browser.touch(mode=0o755)
    async with open_harness(replace(runtimes_here(), browser=browser)) as harness:
        assert find_unavailable(CheckType.MULTI_STEP, harness) is None
        missing = find_unavailable(CheckType.BROWSER, harness)
    assert missing is not None
    assert "where Chromium is; " in missing.sentence
    assert "CHROMIUM_PATH" in missing.remedy
