"""A heavy program starts when there is memory for it, and holds it until its end."""

import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox import sandbox as sandbox_module
from sandbox.memory import MemoryReservations, TooLittleMemoryError
from sandbox.program import Limits, Program
from sandbox.sandbox import Sandbox
from sandbox.workspace import Workspace
from tests.builders.patience import LONG_S
from tests.sandbox.worlds import needs_root, play

GROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)
CONTAINER_BYTES = 300_000_000
"""Enough for an agent, and for the beginning of a script."""
HEAVY = Limits(memory_mb=1000)
FREE_MB = 400.0
"""Enough for one heavy program, and not for two."""


@pytest.fixture
def small_container() -> Iterator[Path]:
    """A group of processes that the system holds to less memory than a script may use."""
    base, limit = next(one for one in GROUPS if one[0].is_dir())
    group = base / f"picket-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(CONTAINER_BYTES))
    except OSError as problem:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no group of processes can be made here: {problem}")
    yield group / "cgroup.procs"
    until = time.monotonic() + LONG_S
    while group.exists() and time.monotonic() < until:
        with contextlib.suppress(OSError):  # what has ended leaves it a moment later
            group.rmdir()


@pytest.fixture
async def sandbox(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    monkeypatch.setattr(sandbox_module, "_MEMORY_WAIT_S", 0.0)
    opened = Sandbox()
    opened._memory = MemoryReservations(lambda: FREE_MB)
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


async def test_what_waits_holds_no_memory_and_is_promised_some_when_its_job_comes(
    sandbox: Sandbox, workspaces: tuple[Workspace, Workspace]
) -> None:
    spare, other = workspaces
    waiting = await sandbox.start(sleeper(spare), owner=spare, waits=True)
    heavy = await sandbox.start(sleeper(other), owner=other)
    with pytest.raises(TooLittleMemoryError):
        await waiting.reserve_memory()
    await heavy.kill()
    await waiting.reserve_memory()
    assert FREE_MB - HEAVY.expected_mb <= sandbox._memory.free_mb < FREE_MB
    await waiting.kill()
    assert sandbox._memory.free_mb == FREE_MB


@needs_root
def test_where_the_container_is_too_small_the_script_goes_and_it_is_our_fault(
    small_container: Path,
) -> None:
    light = {"memory_mb": 900}
    with pytest.raises(AssertionError, match=r"its limit is 900 MB: this location has too little"):
        play("root of a container", "allocates.js", limits=light, group=str(small_container))


@needs_root
def test_what_the_container_has_left_counts_not_what_the_machine_has(
    small_container: Path,
) -> None:
    with pytest.raises(AssertionError, match=r"MB of memory free for another script, which may"):
        play("root of a container", "closes_facts.py", group=str(small_container))


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
