import asyncio
import os
import signal
from pathlib import Path

import pytest

from picket.up.processes import Child, ChildDiedError, Program
from tests.builders.patience import LONG_S

POLITE = """
import os, signal, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
def stop(*_):
    print("stopping", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("up", child.pid, os.environ.get("SETTING"), sorted(os.environ), flush=True)
time.sleep(600)
"""
# A signal may interrupt the first line: `print` in the handler would fail then.
STUBBORN = (
    POLITE.replace('print("stopping", flush=True)', "pass")
    .replace("sys.exit(0)", "pass")
    .replace("time.sleep(600)", "[time.sleep(1) for _ in range(600)]")
)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a program that children can be started from, beside one that is not ours."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "program.py").write_text("print('somebody else')")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "program.py"


async def start(module: Path, text: str) -> Child:
    module.write_text(text)  # noqa: ASYNC240 - a few bytes, in a test
    log = module.with_suffix(".log")
    settings = {"SETTING": "given", "PYTHONPATH": str(module.parent)}
    child = await Child.start(Program(module="program", settings=settings, log=log))
    async with asyncio.timeout(LONG_S):
        while not child.last_lines(1) and child.exit_code is None:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)
    return child


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_child_is_stopped_politely_with_what_it_started(module: Path) -> None:
    child = await start(module, POLITE)
    grandchild = int(child.last_lines(1)[0].split()[1])
    await child.stop(limit_s=LONG_S)
    assert child.exit_code == 0
    assert child.last_lines(1) == ["stopping"]
    async with asyncio.timeout(LONG_S):
        while is_alive(grandchild):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def test_a_child_that_does_not_listen_is_killed(module: Path) -> None:
    child = await start(module, STUBBORN)
    await child.stop(limit_s=0.2)
    assert child.exit_code == -signal.SIGKILL


async def test_a_child_gets_its_settings_and_of_ours_what_describes_the_machine(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_SECRET_TOKEN", "ours")
    monkeypatch.setenv("HTTPS_PROXY", "http://ours")
    monkeypatch.setenv("DATABASE_URL", "ours")
    monkeypatch.setenv("PICKET_RUNTIMES", "/of/this/machine")
    child = await start(module, POLITE)
    (line,) = child.last_lines(1)
    await child.stop(limit_s=LONG_S)
    assert "given" in line
    assert "PICKET_RUNTIMES" in line
    for name in ("SERVICE_SECRET_TOKEN", "HTTPS_PROXY", "DATABASE_URL"):
        assert name not in line


async def test_the_end_of_the_log_explains_an_early_end(module: Path) -> None:
    child = await start(module, "raise SystemExit('API_KEY is not set')")
    assert await child.wait() == 1
    assert child.last_lines(5) == ["API_KEY is not set"]
    await child.stop(limit_s=LONG_S)


async def test_lines_of_an_earlier_start_do_not_explain_the_end_of_this_one(module: Path) -> None:
    for reason in ("the first reason", "the second reason"):
        child = await start(module, f"raise SystemExit({reason!r})")
        await child.wait()
        assert child.last_lines(5) == [reason]
        await child.stop(limit_s=LONG_S)


async def test_a_child_leads_its_own_group(module: Path) -> None:
    child = await start(module, POLITE)
    pid = int(repr(child).split("pid=")[1].split(",")[0])
    assert os.getpgid(pid) == pid != os.getpgid(0)
    await child.stop(limit_s=LONG_S)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("sys.exit(3)", "the program ended with exit code 3; its log ("),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "the program was killed (SIGKILL; perhaps the machine was out of memory); its log (",
        ),
        ("os.abort()", "the program was ended by a signal (SIGABRT); its log ("),
        ("os.kill(os.getpid(), 40)", "the program was ended by a signal (40); its log ("),
    ],
)
async def test_how_a_child_ended_is_said_in_words(module: Path, how: str, words: str) -> None:
    child = await start(module, f"import os, signal, sys\n{how}\n")
    await child.wait()
    assert str(ChildDiedError(child)).startswith(words)
    await child.stop(limit_s=LONG_S)
