"""Agents that see each other's processes, but not each other's files, leave these alone."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from sandbox.processes import all_pids, read_tag, read_uid
from tests.sandbox.worlds import (
    PATIENCE_S,
    cast,
    disown_orphans,
    environment,
    line,
    needs_root,
)

WORLD = "root of a container"
OWN_RUN_FOLDER = 'mount -t tmpfs run /run && exec "$@"'
"""What two containers have that share the processes of a machine (`--pid=container:…`)."""


def in_own_mounts(command: list[str]) -> list[str]:
    enter = ["unshare", "--mount", "--propagation=private", "/bin/sh", "-c", OWN_RUN_FOLDER]
    return [*enter, "agent", *command]


def may_mount() -> bool:
    return subprocess.run(in_own_mounts(["true"]), capture_output=True, check=False).returncode == 0


class Agent(msgspec.Struct, frozen=True):
    """One with a script under way, which has left a daemon."""

    uid: int
    """The script's user."""

    def scripts(self) -> set[int]:
        return {
            pid for pid in all_pids() if read_uid(pid) == self.uid and read_tag(pid) is not None
        }


@pytest.fixture
def agent() -> Iterator[Agent]:
    if not may_mount():
        pytest.skip("only root that may mount can give each agent a /run of its own")
    disown_orphans()
    play = cast("daemon_then_waits.py", timeout_s=600, tells_facts="fact")
    process = subprocess.Popen(
        in_own_mounts(line(WORLD, play)), env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    _, uid, folder = process.stdout.readline().split()
    assert process.stdout.readline().split()[1] == '"daemon"'
    yield Agent(json.loads(uid)["uid"])
    process.kill()
    process.communicate()
    shutil.rmtree(Path(folder), ignore_errors=True)


@needs_root
def test_an_agent_that_starts_and_ends_leaves_the_scripts_of_another_alone(agent: Agent) -> None:
    before = agent.scripts()
    assert len(before) >= 2
    done = subprocess.run(
        in_own_mounts(line(WORLD, cast("closes_facts.py"))),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["uid"] != agent.uid
    assert told["survivors"] == []
    assert agent.scripts() == before
