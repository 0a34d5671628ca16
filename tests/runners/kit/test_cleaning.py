"""Files are made clean in a process of their own; what becomes of it costs the file alone."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from agent.enclosures import Enclosures
from contract.result import Status
from runners.kit import cleaning
from runners.kit.cleaning import clean_in_child
from runners.kit.cleaning_child import verdict_on
from runners.kit.leak_scan.leak import MemberKind
from runners.kit.leak_scan.verdict import Passed, Withheld
from runners.kit.scrub import Scrubber
from runners.kit.workspace import RunFile, Workspace
from tests.builders.agents import metrics
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, a_secret

SECRET = "hunter2-hunter2"


def a_file(folder: Path, content: bytes, name: str = "a.txt") -> RunFile:
    workspace = Workspace(folder)
    (workspace.folder / name).write_bytes(content)
    return RunFile(workspace.folder / name, workspace.artifact(name, "log"))


async def test_a_file_is_scrubbed_scanned_and_described_as_it_is_now(tmp_path: Path) -> None:
    files = [a_file(tmp_path, f"token {SECRET}".encode()), a_file(tmp_path, b"nothing")]
    first, second = await clean_in_child(files, (SECRET,))
    assert isinstance(first, Passed)
    assert first.replacements == 1
    assert first.artifact.size_bytes == files[0].path.stat().st_size
    assert SECRET.encode() not in files[0].path.read_bytes()
    assert second == Passed(artifact=files[1].artifact)


async def test_the_process_gets_nothing_of_the_agents_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "pl_secret-key")
    told = tmp_path / "told"
    program = f"cat /proc/self/environ /proc/self/cmdline > {told}"
    monkeypatch.setattr(cleaning, "_LINE", ["/bin/sh", "-c", program])
    await clean_in_child([a_file(tmp_path, b"x")], (SECRET,))
    assert b"pl_secret-key" not in told.read_bytes()
    assert SECRET.encode() not in told.read_bytes()


@pytest.mark.parametrize(
    ("program", "limit_s", "how"),
    [
        ("kill -KILL $$", LONG_S, "its process ended with signal 9"),
        ("exit 3", LONG_S, "its process ended with 3"),
        # Without a process of its own for `sleep`, which would keep the pipe open for so long.
        ("exec sleep 600", 1, "it took more than 1 s"),
        ("echo '{\"verdict\":'; cat >/dev/null", LONG_S, "its process ended with 0"),
    ],
)
async def test_whatever_ends_the_process_withholds_the_file_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, limit_s: float, how: str
) -> None:
    monkeypatch.setattr(cleaning, "_LINE", ["/bin/sh", "-c", program])
    (verdict,) = await clean_in_child([a_file(tmp_path, b"x")], (), limit_s=limit_s)
    assert isinstance(verdict, Withheld)
    assert verdict.because == f"the agent could not search it for secrets: {how}"
    assert verdict.is_our_fault


async def test_a_run_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    task = asyncio.create_task(clean_in_child([a_file(tmp_path, b"x" * 50_000_000)], (SECRET,)))
    ours: list[int] = []
    async with asyncio.timeout(LONG_S):
        while not ours:
            await asyncio.sleep(0.01)
            ours = [pid for pid in _children() if b"cleaning_child" in _line(pid)]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not set(ours) & set(_children())


async def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"some words and more \n" * 500_000)
    cleaning_it = asyncio.create_task(clean_in_child([file], (SECRET,)))
    turns, began_s = 0, time.monotonic()
    while not cleaning_it.done() and time.monotonic() - began_s < 15:
        await asyncio.sleep(0.001)
        turns += 1
    await cleaning_it
    assert turns > 20


def test_what_the_scrubber_left_is_found_and_the_file_is_withheld(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"[104,117,110,116,101,114,50,45,104,117,110,116,101,114,50]")
    verdict = verdict_on(file, (SECRET,))
    assert isinstance(verdict, Withheld)
    assert verdict.leak is MemberKind.FILE
    assert verdict.because == "secret found in file (near byte 0)"


async def test_a_result_says_that_an_artifact_is_withheld_and_the_metrics_count_it(
    tmp_path: Path,
) -> None:
    meter, job = metrics(), a_job(variables=(a_secret("TOKEN", SECRET),))
    workspace = Workspace(tmp_path)
    (workspace.folder / "a.txt").write_text(str([*SECRET.encode()]))
    outcome = an_outcome(artifacts=(workspace.artifact("a.txt", "log"),))
    enclosed = await Enclosures(Scrubber(), clean_in_child, meter=meter).of(job, outcome, workspace)
    assert (enclosed.files, enclosed.outcome.artifacts) == ((), ())
    assert enclosed.outcome.status is Status.PASSED
    assert [line.message for line in enclosed.outcome.log] == [
        "The artifact a.txt is withheld: secret found in file (near byte 0)."
    ]
    assert b'picket_agent_leaks_withheld_total{member="file"} 1.0' in meter.text()


def _children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
