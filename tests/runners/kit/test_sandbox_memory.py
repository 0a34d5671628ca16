"""A heavy program starts when there is memory for it, and holds it until its end."""

from collections.abc import AsyncIterator, Iterator

import pytest

from runners.kit import sandbox as sandbox_module
from runners.kit.memory_promises import MemoryPromises, TooLittleMemoryError
from runners.kit.program import Limits, Program
from runners.kit.sandbox import Sandbox
from runners.kit.workspace import Workspace

HEAVY = Limits(memory_mb=1000)
FREE_MB = 400.0
"""Enough for one heavy program, and not for two."""


@pytest.fixture
async def sandbox(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    monkeypatch.setattr(sandbox_module, "_MEMORY_WAIT_S", 0.0)
    opened = Sandbox()
    opened._memory = MemoryPromises(lambda: FREE_MB)
    yield opened
    await opened.close()


@pytest.fixture
def workspaces() -> Iterator[tuple[Workspace, Workspace]]:
    both = (Workspace(), Workspace())
    yield both
    for one in both:
        one.remove()


def sleeper(workspace: Workspace, limits: Limits = HEAVY) -> Program:
    return Program(argv=("/bin/sleep", "600"), folder=workspace.folder, env={}, limits=limits)


async def test_a_heavy_program_for_which_there_is_no_memory_is_our_fault(
    sandbox: Sandbox, workspaces: tuple[Workspace, Workspace]
) -> None:
    first, second = workspaces
    child = await sandbox.start(sleeper(first), owner=first)
    with pytest.raises(TooLittleMemoryError, match="150 MB of memory free"):
        await sandbox.start(sleeper(second), owner=second)
    await child.kill()
    child = await sandbox.start(sleeper(second), owner=second)
    await child.kill()
    assert sandbox._memory.free_mb == FREE_MB


async def test_a_light_program_asks_for_none(
    sandbox: Sandbox, workspaces: tuple[Workspace, Workspace]
) -> None:
    first, second = workspaces
    heavy = await sandbox.start(sleeper(first), owner=first)
    light = await sandbox.start(sleeper(second, Limits(memory_mb=512)), owner=second)
    assert sandbox._memory.free_mb == FREE_MB - HEAVY.expected_mb
    await heavy.kill()
    await light.kill()


async def test_a_program_that_cannot_be_started_holds_none(
    sandbox: Sandbox,
    workspaces: tuple[Workspace, Workspace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(sandbox_module, "spawn", refuse)
    with pytest.raises(OSError, match="no more processes"):
        await sandbox.start(sleeper(workspaces[0]), owner=workspaces[0])
    assert sandbox._memory.free_mb == FREE_MB
