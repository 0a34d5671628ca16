"""An agent that is killed leaves nothing: its guard sweeps, and so does its successor."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sandbox.processes import all_pids, read_process, read_tag, read_uid
from tests.sandbox.worlds import cast, disown_orphans, environment, in_every_world, line, play_as

PATIENCE_S = 120
UNTIL_KILLED: Any = {"timeout_s": 600, "tells_facts": "fact"}


class Agent(msgspec.Struct, frozen=True):
    """One with a script under way, which has left a daemon."""

    process: subprocess.Popen[str]
    uid: int
    """The script's user."""
    folder: Path

    def guard(self) -> int:
        return next(pid for pid in children(self.process.pid) if b"after-death" in command(pid))

    def scripts(self) -> set[int]:
        """What runs of its script, and of nobody else who is that user."""
        return {pid for pid in running(self.uid) if read_tag(pid) is not None}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def agent(world: str) -> Iterator[Agent]:
    yield from started(line(world, cast("daemon_then_waits.py", **UNTIL_KILLED)))


@pytest.fixture
def beat() -> Iterator[Path]:
    """A file that grows for as long as a slippery script lives."""
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.chmod(0o666)
        yield path


@pytest.fixture
def doomed_test(world: str, beat: Path) -> Iterator[Agent]:
    """A process that has an agent, as a test has, and is what is killed."""
    plan = cast("slippery.py", env={"STAY": "1", "BEAT": str(beat)}, **UNTIL_KILLED)
    yield from started(["/bin/sh", "-c", '"$@" & wait', "test", *line(world, plan)])


def started(command: list[str]) -> Iterator[Agent]:
    disown_orphans()
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout
    _, uid, folder = process.stdout.readline().split()
    assert process.stdout.readline().split()[1] == '"daemon"'
    agent = Agent(process, json.loads(uid)["uid"], Path(folder))
    yield agent
    process.kill()
    process.communicate()
    for pid in running(agent.uid):  # where a test has killed the guard
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def kill_guard(agent: Agent) -> None:
    os.kill(agent.guard(), signal.SIGKILL)


def succeed(agent: Agent, world: str) -> None:
    """Start another agent, which is the same user."""
    number = agent.uid if world == "nobody" else None
    play_as(number, world, "closes_facts.py")


def children(pid: int) -> list[int]:
    return [child for child in all_pids() if (seen := read_process(child)) and seen.parent == pid]


def programs(agent: Agent) -> list[int]:
    return [pid for pid in children(agent.process.pid) if is_program(pid)]


def is_program(pid: int) -> bool:
    return b"daemon_then_waits" in command(pid)


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended, as helpers of an agent do at once
        return b""


def running(uid: int) -> list[int]:
    return [pid for pid in all_pids() if read_uid(pid) == uid and not has_ended(pid)]


def has_ended(pid: int) -> bool:
    """A slow first process may take its time to ask how an orphan ended."""
    seen = read_process(pid)
    return seen is None or seen.has_ended


def is_still(beat: Path) -> bool:
    before = beat.stat().st_size
    time.sleep(1)
    return beat.stat().st_size == before


def wait_for(fact: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < until
        time.sleep(0.02)


@in_every_world
def test_a_killed_agents_scripts_and_folders_are_gone_at_once(agent: Agent) -> None:
    assert len(running(agent.uid)) >= 2
    agent.kill()
    wait_for(lambda: not running(agent.uid))
    wait_for(lambda: not agent.folder.exists())


@in_every_world
def test_processes_that_change_their_number_do_not_outlive_a_test_that_is_killed(
    doomed_test: Agent, beat: Path
) -> None:
    doomed_test.kill()
    wait_for(lambda: not running(doomed_test.uid))
    wait_for(lambda: not doomed_test.folder.exists())
    assert beat.stat().st_size > 0
    wait_for(lambda: is_still(beat))


@in_every_world
def test_a_killed_agents_own_child_dies_with_it_whoever_sweeps(agent: Agent) -> None:
    kill_guard(agent)
    # The daemon goes by the program's name until its own exec.
    wait_for(lambda: len(programs(agent)) == 1)
    (child,) = programs(agent)
    agent.kill()
    wait_for(lambda: has_ended(child))


@in_every_world
def test_the_next_agent_sweeps_what_nobody_has(agent: Agent, world: str) -> None:
    scripts = agent.scripts()
    kill_guard(agent)
    agent.kill()
    assert scripts & agent.scripts(), "the daemon outlives a kill of all who could know of it"
    succeed(agent, world)
    # Others may be lent the same user by now, and may have begun to remove the folder.
    assert not scripts & agent.scripts()
    wait_for(lambda: not agent.folder.exists())


@in_every_world
def test_the_next_agent_leaves_the_living_alone(agent: Agent, world: str) -> None:
    before = agent.scripts()
    succeed(agent, world)
    assert len(before) >= 2
    assert before <= agent.scripts()
    assert (agent.folder / "work" / "left-behind").exists()
