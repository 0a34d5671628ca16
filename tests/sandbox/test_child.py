"""A child that goes wrong in an unusual way leaves no descriptor open."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from sandbox.processes import ProcessTree, read_process
from sandbox.program import Limits, Program
from sandbox.sandbox import Sandbox
from sandbox.workspace import Workspace
from tests.builders.agents import until
from tests.builders.patience import LONG_S, descriptors


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


def shell(workspace: Workspace, command: str) -> Program:
    return Program(
        argv=("/bin/sh", "-c", command),
        folder=workspace.folder,
        env={},
        limits=Limits(memory_mb=500),
    )


async def test_a_process_that_cannot_be_ended_keeps_its_user_and_no_pipe(
    sandbox: Sandbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = shell(workspace, "sleep 600")
    before_it = await sandbox.start(program, owner=workspace)
    await before_it.kill()  # whatever is opened once is open
    before = descriptors()

    def refuse(tree: ProcessTree) -> None:
        raise OSError(f"processes of {tree.uid} cannot be ended")

    child = await sandbox.start(program, owner=workspace)
    lent = workspace.user
    with monkeypatch.context() as patched:
        patched.setattr(ProcessTree, "kill", refuse)
        with pytest.raises(OSError, match="cannot be ended"):
            await child.kill()
    kept = 0 if lent is None else 2  # the locks of its user
    await until(lambda: len(descriptors() - before) <= kept)
    assert workspace.user == lent
    tree = child._context.tree
    tree.kill()
    tree.reap()
    await child._context.release()
    await until(lambda: descriptors() <= before)
    assert workspace.user is None


async def test_a_process_that_cannot_be_ended_saves_no_other(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, other = Sandbox(), Workspace()
    first = await opened.start(shell(workspace, "sleep 600"), owner=workspace)
    second = await opened.start(shell(other, "sleep 600"), owner=other)
    stuck, kill = first._context.tree, ProcessTree.kill

    def refuse(tree: ProcessTree) -> None:
        if tree is stuck:
            raise OSError("it cannot be ended")
        kill(tree)

    with monkeypatch.context() as patched:
        patched.setattr(ProcessTree, "kill", refuse)
        with pytest.raises(OSError, match="it cannot be ended"):
            await opened.close()
    assert read_process(second._pid) is None
    stuck.kill()
    stuck.reap()
    if opened._users is not None and workspace.user is not None:
        opened._users.give_back(workspace.user)
    other.remove()


async def test_a_listener_that_fails_leaves_no_pipe_and_no_process(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    def fail(_: bytes) -> None:
        raise ValueError("no such fact")

    first = await sandbox.start(shell(workspace, "true"), owner=workspace)
    await first.kill()
    before = descriptors()
    child = await sandbox.start(shell(workspace, "echo fact >&3"), owner=workspace)
    while not child._exit.is_seen:
        await child._exit.wait(LONG_S)
    with contextlib.suppress(ValueError):  # the loop has it, or we
        await child.wait(timeout_s=LONG_S, on_fact=fail)
    await until(lambda: descriptors() <= before)
    assert workspace.user is None
    assert read_process(child._pid) is None
