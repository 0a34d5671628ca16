"""A test that leaves something open fails itself, not the test that runs after it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

LEAKS = {
    "a socket": ("kept = [socket.socket()]; kept.append(kept)", "unclosed <socket"),
    "a file": ("kept = [open('/dev/null')]; kept.append(kept)", "unclosed file"),
    "a process": ("kept = [subprocess.Popen(['true'])]; kept.append(kept)", "is still running"),
}
FIXTURE = """\
@pytest.fixture
def leak():
    async def waits(): await asyncio.sleep(60)
    async def begin(): leak.task = asyncio.get_running_loop().create_task(waits())
    runner = asyncio.Runner()
    runner.run(begin())
    yield
    runner.close()

def test_first(leak): pass
def test_next(): pass
"""


def _run(folder: Path, body: str) -> str:
    test = folder / "test_leak.py"
    test.write_text(f"import asyncio, socket, subprocess\nimport pytest\n\n{body}")
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", f"--rootdir={folder}"]
    plugins = ["tests.leftovers", "no:cacheprovider", "no:randomly", "no:asyncio"]
    ran = subprocess.run(
        [*command, *(f"-p{one}" for one in plugins), "-W", "error", test],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout


@pytest.mark.parametrize(("leak", "named"), LEAKS.values(), ids=LEAKS)
def test_what_a_test_leaves_open_fails_it(tmp_path: Path, leak: str, named: str) -> None:
    said = _run(tmp_path, f"def test_first():\n    {leak}\n\ndef test_next(): pass\n")
    assert "the test left open: " in said
    assert named in said
    assert "ERROR" in said
    assert "test_leak.py::test_first" in said
    assert "2 passed, 1 error" in said


def test_a_task_that_outlives_its_test_fails_it(tmp_path: Path) -> None:
    said = _run(tmp_path, FIXTURE)
    assert "the test left open: task <coroutine object leak.<locals>.waits" in said
    assert "2 passed, 1 error" in said


def test_a_test_that_closes_what_it_opens_passes(tmp_path: Path) -> None:
    said = _run(tmp_path, "def test_first():\n    socket.socket().close()\n")
    assert "1 passed" in said
