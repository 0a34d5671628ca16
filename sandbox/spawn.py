"""Starts a process under its own user, with its limits set.

Says which variables of a check are larger than the system hands to a program.

They are looked at before anything starts: a program that gets its variables otherwise, as a process
that waited does, could not hand them on to a browser.
"""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from contract.result import CheckFailed, FailureKind
from sandbox.child_io import open_pipe
from sandbox.errors import HostError
from sandbox.keyrings import take_new_session
from sandbox.program import Limits, Program

_OWN_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these; a script is to feel them."""
_OOM_SCORE: Final = "800"
"""Where the system itself runs out of memory, it takes a script before the agent."""
_TRIES: Final = 20
_PAUSE_S: Final = 0.0005


class Spawned(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was just started, and our ends of its pipes."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    facts: int | None
    """None: the program has no such descriptor."""


def close_pipes(spawned: Spawned) -> None:
    """Close our ends, which nobody has got to read."""
    loop = asyncio.get_running_loop()
    for end in (spawned.stdin, spawned.stdout, spawned.stderr, spawned.facts):
        if end is not None:
            loop.remove_reader(end)
            loop.remove_writer(end)
            os.close(end)


def spawn(line: list[str], program: Program) -> Spawned:
    """Start a command line for a program, in a session of its own.

    Raises:
        OSError: it cannot be started.
    """
    with ExitStack() as on_failure, ExitStack() as theirs:
        stdin = _pipe(theirs, on_failure, we_write=True)
        out, err = (_pipe(theirs, on_failure, we_write=False) for _ in range(2))
        facts = _pipe(theirs, on_failure, we_write=False) if program.facts_fd else None
        ends = [stdin[1], out[1], err[1], *(() if facts is None else (facts[1],))]
        take_new_session()
        pid = _start(line, program.env, ends)
        on_failure.pop_all()
    _give_up_first(pid)
    return Spawned(
        pid=pid,
        stdin=stdin[0],
        stdout=out[0],
        stderr=err[0],
        facts=None if facts is None else facts[0],
    )


def _give_up_first(pid: int) -> None:
    """Let the system take it before the agent; where that is refused for good, it is as it was."""
    for _ in range(_TRIES):
        try:
            Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)
        except PermissionError:
            time.sleep(_PAUSE_S)  # for a moment of its start it belongs to root
        except OSError:
            return
        else:
            return


def _pipe(theirs: ExitStack, on_failure: ExitStack, *, we_write: bool) -> tuple[int, int]:
    """Our end and theirs."""
    read, write = open_pipe()
    our, their = (write, read) if we_write else (read, write)
    theirs.callback(os.close, their)
    on_failure.callback(os.close, our)
    return our, their


def _start(line: list[str], env: dict[str, str], ends: list[int]) -> int:
    return os.posix_spawn(
        line[0],
        line,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)],
        setsid=True,
        setsigmask=(),
        setsigdef=_OWN_SIGNALS,
    )


_MB: Final = 1024 * 1024
_SHELL: Final = "/bin/sh"
_TOOLS: Final = ("prlimit", "setpriv", "env")
_CHOWN, _DAC_OVERRIDE, _KILL, _SETGID, _SETUID = (1 << bit for bit in (0, 1, 5, 6, 7))
_SETPCAP: Final = 1 << 8
_FOR_OWN_USERS: Final = _CHOWN | _DAC_OVERRIDE | _KILL | _SETGID | _SETUID


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who a program is to the system, and how its processes are told from all others."""

    uid: int | None
    """Its own user, and group of the same number. None: it runs as the agent does."""
    tag: int
    """By it its processes are found, wherever they went (`run_tags`)."""


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The programs that set limits, by path."""

    prlimit: str
    setpriv: str
    env: str


def find_tools() -> Tools:
    """Where they are.

    Raises:
        HostError: one is missing; the sentence names it.
    """
    found = {name: shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin") for name in _TOOLS}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise HostError(
            f"Scripts cannot be run in isolation: {' and '.join(missing)} not found",
            remedy="install util-linux and coreutils",
        )
    return Tools(**{name: path for name, path in found.items() if path is not None})


@lru_cache(maxsize=1)
def capabilities() -> int:
    """The capabilities of this process, as a set of bits."""
    status = Path("/proc/thread-self/status").read_text()
    return int(status.split("CapEff:", 1)[1].split(None, 1)[0], 16)


def can_have_own_users() -> bool:
    """Whether this process may run programs as other users, and clear up after them."""
    return os.geteuid() == 0 and capabilities() & _FOR_OWN_USERS == _FOR_OWN_USERS


def command(tools: Tools, program: Program, identity: Identity) -> list[str]:
    """What to start so that the program runs limited, without privileges, as its own user."""
    return [
        tools.prlimit,
        *_limits(program.limits, identity),
        tools.setpriv,
        *_privileges(identity),
        tools.env,
        f"--chdir={program.folder}",
        *program.argv,
    ]


def require(program: Program) -> None:
    """Refuse a program that is not there.

    Raises:
        FileNotFoundError: it, or its folder, is missing.
    """
    binary = Path(program.argv[0])
    if not binary.is_absolute() or "=" in program.argv[0] or not os.access(binary, os.X_OK):
        raise FileNotFoundError(f"The program {binary} cannot be executed")
    if not program.folder.is_dir():
        raise FileNotFoundError(f"The folder {program.folder} is not there")


def end_user(tools: Tools, uid: int) -> None:
    """End all processes of a user at one blow, which none can dodge; it blocks."""
    kill = (tools.setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", _SHELL)
    subprocess.run([*kill, "-c", "kill -KILL -1"], check=False, capture_output=True)  # noqa: S603


def _limits(limits: Limits, identity: Identity) -> list[str]:
    wanted = {
        "data": (resource.RLIMIT_DATA, limits.data_mb * _MB),
        "fsize": (resource.RLIMIT_FSIZE, limits.file_mb * _MB),
        "nofile": (resource.RLIMIT_NOFILE, limits.open_files),
        "core": (resource.RLIMIT_CORE, 0),
    }
    if identity.uid is not None:
        # The count is the user's, on the whole machine: a shared user may be at any number.
        wanted["nproc"] = (resource.RLIMIT_NPROC, limits.processes)
    given = [f"--{name}={_at_most(kind, value)}" for name, (kind, value) in wanted.items()]
    return [*given, f"--locks={identity.tag}"]


def _at_most(kind: int, wanted: int) -> int:
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _privileges(identity: Identity) -> list[str]:
    dropped = ["--no-new-privs", "--pdeathsig=KILL", "--inh-caps=-all"]
    if capabilities() & _SETPCAP:
        dropped.append("--bounding-set=-all")
    if identity.uid is not None:
        dropped += [f"--reuid={identity.uid}", f"--regid={identity.uid}", "--clear-groups"]
    return dropped


LONGEST_BYTES: Final = 128 * 1024 - 1
"""Of one variable, with its name and the sign between: the system's own figure."""
_OURS: Final = "PICKET_"
_MOST_BYTES: Final = 6 * 1024 * 1024
"""The system hands no more to a program, however large its stack may be."""
_FOR_THE_REST_BYTES: Final = 128 * 1024
"""Arguments, and what a script's own programs are told beside."""
_EACH_BYTES: Final = 9
"""A variable has an end and an address."""


def require_variables(env: Mapping[str, str]) -> None:
    """Refuse what no program can be given; what is too long of ours is not told here.

    Raises:
        CheckFailed: of kind SCRIPT, with the largest one's name.
    """
    sizes = {
        name: len(os.fsencode(f"{name}={value}"))
        for name, value in env.items()
        if not name.startswith(_OURS)
    }
    name = max(sizes, key=sizes.__getitem__, default="")
    if sizes.get(name, 0) > LONGEST_BYTES:
        raise _refused(
            f"The variable {name} has {sizes[name]} bytes with its name; a program can be given "
            f"one of {LONGEST_BYTES} bytes at most."
        )
    together = sum(sizes.values()) + _EACH_BYTES * len(sizes)
    if together > _room_bytes():
        raise _refused(
            f"The variables have {together} bytes together; a program can be given "
            f"{_room_bytes()} at most. The largest is {name}."
        )


def _room_bytes() -> int:
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    share = _MOST_BYTES if stack == resource.RLIM_INFINITY else min(stack // 4, _MOST_BYTES)
    return share - _FOR_THE_REST_BYTES


def _refused(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message, {"code": "VARIABLES"})
