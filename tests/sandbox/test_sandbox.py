"""A program runs in the sandbox, and nothing of it is left."""

import asyncio
import errno
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.result import CheckFailed, FailureKind
from sandbox import child as child_module
from sandbox import sandbox as sandbox_module
from sandbox.child import Child
from sandbox.exit_status import LaunchError
from sandbox.processes import all_pids, is_adopted, read_tag
from sandbox.program import Limits, Program
from sandbox.sandbox import Sandbox
from sandbox.spawn import Spawned
from sandbox.users import grant_folder
from sandbox.workspace import Workspace
from tests.builders.agents import until
from tests.builders.patience import descriptors, eventually
from tests.sandbox.worlds import needs_root

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
    ended = await child.wait(timeout_s=LONG_S, on_fact=facts.append)
    assert (ended.exit_code, ended.signal, ended.timed_out) == (7, None, False)
    assert {(line.level, line.message) for line in ended.log} == {("INFO", "out"), ("ERROR", "err")}
    assert facts == [b"{}", b"[1]"]


async def test_a_program_gets_its_job_on_stdin(sandbox: Sandbox, workspace: Workspace) -> None:
    script = "import sys; print(len(sys.stdin.read()))"
    child = await sandbox.start(python(workspace, script), owner=workspace)
    await child.write_stdin(b"x" * 1_000_000)
    ended = await child.wait(timeout_s=LONG_S, on_fact=lambda _: None)
    assert [line.message for line in ended.log] == ["1000000"]


async def test_a_program_that_hangs_is_ended_at_the_limit(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    ended = await child.wait(timeout_s=0.5, on_fact=lambda _: None)
    assert ended.timed_out
    assert ended.exit_code is None


async def test_a_kill_ends_whoever_waits(sandbox: Sandbox, workspace: Workspace) -> None:
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    waiting = asyncio.create_task(child.wait(timeout_s=LONG_S, on_fact=lambda _: None))
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
    ended = await child.wait(timeout_s=LONG_S, on_fact=lambda _: None)
    assert sorted(line.message for line in ended.log) == ["A=1", "B=two words"]


async def test_whoever_stops_waiting_ends_the_program(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    others = tagged()
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    waiting = asyncio.create_task(child.wait(timeout_s=LONG_S, on_fact=lambda _: None))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert tagged() <= others


async def test_a_program_that_says_what_a_launcher_would_is_not_our_fault(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    program = Program(
        argv=("/bin/sh", "-c", "echo \"env: 'ruby': No such file\" >&2; exit 127"),
        folder=workspace.folder,
        env={},
        limits=Limits(memory_mb=500),
        facts_fd=False,
    )
    child = await sandbox.start(program, owner=workspace)
    assert (await child.wait(timeout_s=LONG_S, on_fact=lambda _: None)).exit_code == 127


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"A": "1", "LARGE": "x" * 131_066}, "The variable LARGE has 131072 bytes with its name"),
        ({f"V{n}": "x" * 131_000 for n in range(100)}, "The variables have 13101290 bytes"),
    ],
)
async def test_variables_that_no_program_can_be_given_are_the_checks_fault(
    sandbox: Sandbox, workspace: Workspace, variables: dict[str, str], said: str
) -> None:
    program = msgspec.structs.replace(python(workspace, "pass"), env=variables)
    with pytest.raises(CheckFailed, match=said) as refused:
        await sandbox.start(program, owner=workspace)
    assert refused.value.failure.kind is FailureKind.SCRIPT
    assert lent(sandbox) == {}


async def test_the_largest_variable_that_the_system_takes_arrives(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    script = "import os; print(len(os.environ['LARGE']))"
    program = msgspec.structs.replace(
        python(workspace, script), env={"LARGE": "x" * (131_071 - len("LARGE="))}
    )
    child = await sandbox.start(program, owner=workspace)
    ended = await child.wait(timeout_s=LONG_S, on_fact=lambda _: None)
    assert [line.message for line in ended.log] == ["131065"]


async def test_a_program_that_nobody_could_watch_leaves_nothing(
    sandbox: Sandbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_once(sandbox)  # whatever is opened once is open
    program = python(workspace, "import time; time.sleep(600)")
    before, others = descriptors(), tagged()

    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(child_module, "ChildExit", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        await sandbox.start(program, owner=workspace)
    await until(lambda: descriptors() <= before)
    assert tagged() <= others
    assert lent(sandbox) == {}


@needs_root
async def test_a_start_that_is_given_up_takes_back_the_user_when_it_is_lent(
    sandbox: Sandbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, go_on = threading.Event(), threading.Event()

    def give_slowly(folder: Path, uid: int) -> None:
        under_way.set()
        assert go_on.wait(LONG_S)
        grant_folder(folder, uid)

    monkeypatch.setattr(sandbox_module, "grant_folder", give_slowly)
    starting = asyncio.create_task(sandbox.start(python(workspace, "pass"), owner=workspace))
    await asyncio.to_thread(under_way.wait, LONG_S)
    for _ in range(2):
        starting.cancel()
        await asyncio.sleep(0)
    assert len(lent(sandbox)) == 1, "its folder is still being given"
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await sandbox.close()
    assert lent(sandbox) == {}
    assert stat.S_IMODE(workspace.folder.stat().st_mode) == 0o700
    assert workspace.user is None


@needs_root
async def test_a_workspace_knows_whom_it_is_lent_to(sandbox: Sandbox, workspace: Workspace) -> None:
    child = await sandbox.start(python(workspace, "import time; time.sleep(600)"), owner=workspace)
    assert lent(sandbox).keys() == {workspace.user}
    await child.kill()
    assert workspace.user is None


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
        await child.wait(timeout_s=LONG_S, on_fact=lambda _: None)
    await asyncio.to_thread(closed.remove)


async def test_two_hundred_runs_leave_nothing_behind() -> None:
    before, others = descriptors(), tagged()
    opened = Sandbox()
    for _ in range(50):
        await asyncio.gather(*(run_once(opened) for _ in range(4)))
    await opened.close()
    await until(lambda: descriptors() <= before)
    assert len(asyncio.all_tasks()) == 1
    assert tagged() <= others


def tagged() -> set[int]:
    """Processes of runs below this one; another test may still have some."""
    return {pid for pid in all_pids() if read_tag(pid) and is_adopted(pid)}


def lent(sandbox: Sandbox) -> dict[int, int]:
    """The users that scripts have now."""
    return {} if sandbox._users is None else dict(sandbox._users._lent)


async def run_once(opened: Sandbox) -> None:
    workspace = Workspace()
    program = Program(
        argv=("/bin/true",), folder=workspace.folder, env={}, limits=Limits(memory_mb=500)
    )
    child = await opened.start(program, owner=workspace)
    ended = await child.wait(timeout_s=LONG_S, on_fact=lambda _: None)
    folder = workspace.folder
    await asyncio.to_thread(workspace.remove)
    assert (ended.exit_code, folder.exists()) == (0, False)


@needs_root
async def test_what_takes_long_to_clear_away_keeps_no_other_run_waiting(
    sandbox: Sandbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_clear = threading.Event()
    monkeypatch.setattr(sandbox_module, "remove_leftovers", lambda *_: is_clear.wait(LONG_S))
    ended = [await sandbox.start(python(workspace, "input()")) for _ in range(4)]
    ends = [asyncio.create_task(child.kill()) for child in ended]
    await until(lambda: all(child._exit.is_seen for child in ended))
    async with asyncio.timeout(LONG_S / 2):
        other = await sandbox.start(python(workspace, "pass"))
    is_clear.set()
    await asyncio.gather(*ends, other.kill())


async def test_a_program_that_begins_is_no_stray_of_one_that_ends(
    sandbox: Sandbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both run as the agent's own user: whoever takes the other for a stray kills and reaps it."""
    sandbox._users = None
    other = Workspace()
    ending = await sandbox.start(python(other, "import time; time.sleep(60)"), owner=other)
    ends = ending._context.tree
    taken: list[bool] = []
    real_child = sandbox_module.Child

    def slow_child(spawned: Spawned, *more: Any) -> Child:
        eventually(lambda: read_tag(spawned.pid) is not None)
        taken.append(ends.contains(spawned.pid))
        return real_child(spawned, *more)

    monkeypatch.setattr(sandbox_module, "Child", slow_child)
    began = await sandbox.start(python(workspace, "pass"), owner=workspace)
    assert (await began.wait(timeout_s=LONG_S, on_fact=lambda _: None)).exit_code == 0
    assert taken == [False]
    await ending.kill()
    other.remove()
