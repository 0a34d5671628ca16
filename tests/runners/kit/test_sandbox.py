"""A program runs in the sandbox, and nothing of it is left."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from runners.kit.endings import LaunchError
from runners.kit.process_tree import is_adopted
from runners.kit.processes import all_pids
from runners.kit.program import Limits, Program
from runners.kit.run_tags import tag_of
from runners.kit.sandbox import Sandbox
from runners.kit.workspace import Workspace
from tests.runners.kit.isolation.worlds import needs_root

PYTHON = os.path.realpath(sys.executable)
LONG_S = 60


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    opened = Sandbox()
    yield opened
    await opened.close()


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    made = Workspace()
    yield made
    made.remove()


def python(workspace: Workspace, script: str, **limits: int) -> Program:
    return Program(
        argv=(PYTHON, "-c", script),
        folder=workspace.folder,
        env={"LANG": "C.UTF-8"},
        limits=Limits(**({"memory_mb": 500} | limits)),
    )


async def test_a_program_tells_by_log_facts_and_exit_code(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    facts: list[bytes] = []
    script = """if True:
        import os, sys
        print("out")
        print("err", file=sys.stderr)
        os.write(3, b"{}\\n[1]\\n")
        sys.exit(7)
    """
    child = await sandbox.start(python(workspace, script), owner=workspace)
    ended = await child.ended(timeout_s=LONG_S, on_fact=facts.append)
    assert (ended.exit_code, ended.signal, ended.timed_out) == (7, None, False)
    assert {(line.level, line.message) for line in ended.log} == {("INFO", "out"), ("ERROR", "err")}
    assert facts == [b"{}", b"[1]"]


async def test_a_program_gets_its_job_on_stdin(sandbox: Sandbox, workspace: Workspace) -> None:
    script = "import sys; print(len(sys.stdin.read()))"
    child = await sandbox.start(python(workspace, script), owner=workspace)
    await child.feed(b"x" * 1_000_000)
    ended = await child.ended(timeout_s=LONG_S, on_fact=lambda _: None)
    assert [line.message for line in ended.log] == ["1000000"]


async def test_a_program_that_hangs_is_ended_at_the_limit(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    ended = await child.ended(timeout_s=0.5, on_fact=lambda _: None)
    assert ended.timed_out
    assert ended.exit_code is None


async def test_a_kill_ends_whoever_waits(sandbox: Sandbox, workspace: Workspace) -> None:
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    waiting = asyncio.create_task(child.ended(timeout_s=LONG_S, on_fact=lambda _: None))
    await child.kill()
    assert (await waiting).signal == 9


async def test_a_program_that_is_not_there_is_our_fault(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    program = Program(
        argv=("/nowhere/node",), folder=workspace.folder, env={}, limits=Limits(memory_mb=10)
    )
    with pytest.raises(FileNotFoundError, match="/nowhere/node"):
        await sandbox.start(program, owner=workspace)


async def test_a_program_has_the_environment_that_it_was_given_and_no_more(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    program = Program(
        argv=("/usr/bin/env",),
        folder=workspace.folder,
        env={"A": "1", "B": "two words"},
        limits=Limits(memory_mb=500),
    )
    child = await sandbox.start(program)
    ended = await child.ended(timeout_s=LONG_S, on_fact=lambda _: None)
    assert sorted(line.message for line in ended.log) == ["A=1", "B=two words"]


async def test_whoever_stops_waiting_ends_the_program(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    others = tagged()
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    waiting = asyncio.create_task(child.ended(timeout_s=LONG_S, on_fact=lambda _: None))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert tagged() <= others


@needs_root
async def test_a_program_that_its_user_may_not_run_is_our_fault(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    closed = Workspace()
    binary = closed.folder / "program"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    program = Program(
        argv=(str(binary),), folder=workspace.folder, env={}, limits=Limits(memory_mb=500)
    )
    child = await sandbox.start(program, owner=workspace)
    with pytest.raises(LaunchError, match="Permission denied"):
        await child.ended(timeout_s=LONG_S, on_fact=lambda _: None)
    await asyncio.to_thread(closed.remove)


async def test_two_hundred_runs_leave_nothing_behind() -> None:
    before, others = open_files(), tagged()
    opened = Sandbox()
    for _ in range(50):
        await asyncio.gather(*(run_once(opened) for _ in range(4)))
    await opened.close()
    assert open_files() == before
    assert len(asyncio.all_tasks()) == 1
    assert tagged() <= others


def tagged() -> set[int]:
    """Processes of runs below this one; another test may still have some."""
    return {pid for pid in all_pids() if tag_of(pid) and is_adopted(pid)}


async def run_once(opened: Sandbox) -> None:
    workspace = Workspace()
    program = Program(
        argv=("/bin/true",), folder=workspace.folder, env={}, limits=Limits(memory_mb=500)
    )
    child = await opened.start(program, owner=workspace)
    ended = await child.ended(timeout_s=LONG_S, on_fact=lambda _: None)
    folder = workspace.folder
    await asyncio.to_thread(workspace.remove)
    assert (ended.exit_code, folder.exists()) == (0, False)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
