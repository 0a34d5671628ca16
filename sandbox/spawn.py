"""Starts a process as its own user, with its limits set.

The size of a check's variables is checked first: a warm process gets them over a pipe, whatever
their size, but could not pass them on to the browser that it starts.
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
"""Signals that Python ignores, and that have their default action in a script."""
_OOM_SCORE: Final = "800"
"""With this score, the OOM killer ends a script before it ends the agent."""
_TRIES: Final = 20
_PAUSE_S: Final = 0.0005


class Spawned(msgspec.Struct, frozen=True, kw_only=True):
    """A process that was just started, and the agent's ends of its pipes."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    facts: int | None
    """The facts' pipe. None: the program has no such descriptor."""


def close_pipes(spawned: Spawned) -> None:
    """Close the agent's ends of the pipes, which nobody reads."""
    loop = asyncio.get_running_loop()
    for end in (spawned.stdin, spawned.stdout, spawned.stderr, spawned.facts):
        if end is not None:
            loop.remove_reader(end)
            loop.remove_writer(end)
            os.close(end)


def spawn(line: list[str], program: Program) -> Spawned:
    """Start a command line in a session of its own, with the program's environment.

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
    _prefer_for_oom_killer(pid)
    return Spawned(
        pid=pid,
        stdin=stdin[0],
        stdout=out[0],
        stderr=err[0],
        facts=None if facts is None else facts[0],
    )


def _prefer_for_oom_killer(pid: int) -> None:
    """Have the OOM killer prefer a process to the agent, where the kernel permits that."""
    for _ in range(_TRIES):
        try:
            Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)
        except PermissionError:
            time.sleep(_PAUSE_S)  # for a moment at its start it belongs to root
        except OSError:
            return
        else:
            return


def _pipe(theirs: ExitStack, on_failure: ExitStack, *, we_write: bool) -> tuple[int, int]:
    """Open a pipe, and return our end and the child's."""
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
    """The user of a program, and the tag that marks its processes."""

    uid: int | None
    """The id of its own user and group. None: it runs as the agent's user."""
    tag: int
    """The value of RLIMIT_LOCKS by which its processes are found (`sandbox.processes`)."""


class SystemTools(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of the programs that set limits and privileges."""

    prlimit: str
    setpriv: str
    env: str


def find_tools() -> SystemTools:
    """Find them in the system's folders for programs.

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
    return SystemTools(**{name: path for name, path in found.items() if path is not None})


@lru_cache(maxsize=1)
def capabilities() -> int:
    """Read the effective capabilities of this process, as a bit mask."""
    status = Path("/proc/thread-self/status").read_text()
    return int(status.split("CapEff:", 1)[1].split(None, 1)[0], 16)


def can_have_own_users() -> bool:
    """Whether this process may run programs as other users, and clean up after them."""
    return os.geteuid() == 0 and capabilities() & _FOR_OWN_USERS == _FOR_OWN_USERS


def build_command(tools: SystemTools, program: Program, identity: Identity) -> list[str]:
    """Build the command line that runs a program as its own user, limited and unprivileged."""
    return [
        tools.prlimit,
        *_limit_options(program.limits, identity),
        tools.setpriv,
        *_privilege_options(identity),
        tools.env,
        f"--chdir={program.folder}",
        *program.argv,
    ]


def require_executable(program: Program) -> None:
    """Require that a program and its folder exist.

    Raises:
        FileNotFoundError: it, or its folder, is missing.
    """
    binary = Path(program.argv[0])
    if not binary.is_absolute() or "=" in program.argv[0] or not os.access(binary, os.X_OK):
        raise FileNotFoundError(f"The program {binary} cannot be executed")
    if not program.folder.is_dir():
        raise FileNotFoundError(f"The folder {program.folder} does not exist")


def kill_user_processes(tools: SystemTools, uid: int) -> None:
    """Kill all processes of a user at once, so that none gets away; it blocks."""
    kill = (tools.setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", _SHELL)
    subprocess.run([*kill, "-c", "kill -KILL -1"], check=False, capture_output=True)  # noqa: S603


def _limit_options(limits: Limits, identity: Identity) -> list[str]:
    wanted = {
        "data": (resource.RLIMIT_DATA, limits.data_mb * _MB),
        "fsize": (resource.RLIMIT_FSIZE, limits.file_mb * _MB),
        "nofile": (resource.RLIMIT_NOFILE, limits.open_files),
        "core": (resource.RLIMIT_CORE, 0),
    }
    if identity.uid is not None:
        # The count is per user on the whole machine, so it says nothing of a shared user.
        wanted["nproc"] = (resource.RLIMIT_NPROC, limits.processes)
    given = [
        f"--{name}={_clamp_to_hard_limit(kind, value)}" for name, (kind, value) in wanted.items()
    ]
    return [*given, f"--locks={identity.tag}"]


def _clamp_to_hard_limit(kind: int, wanted: int) -> int:
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _privilege_options(identity: Identity) -> list[str]:
    dropped = ["--no-new-privs", "--pdeathsig=KILL", "--inh-caps=-all"]
    if capabilities() & _SETPCAP:
        dropped.append("--bounding-set=-all")
    if identity.uid is not None:
        dropped += [f"--reuid={identity.uid}", f"--regid={identity.uid}", "--clear-groups"]
    return dropped


MAX_VARIABLE_BYTES: Final = 128 * 1024 - 1
"""The size of one variable, as in `NAME=value`: the kernel's MAX_ARG_STRLEN without its NUL."""
_OURS: Final = "PICKET_"
_MOST_BYTES: Final = 6 * 1024 * 1024
"""The most that the kernel passes to a program, whatever the limit of its stack."""
_FOR_THE_REST_BYTES: Final = 128 * 1024
"""Room for arguments, and for variables that a script adds for its own programs."""
_EACH_BYTES: Final = 9
"""What each variable takes in addition to its text: a NUL and a pointer."""


def require_variables(env: Mapping[str, str]) -> None:
    """Require that a check's variables are small enough for a program; our own are not counted.

    Raises:
        CheckFailed: of kind SCRIPT, with the name of the largest variable.
    """
    sizes = {
        name: len(os.fsencode(f"{name}={value}"))
        for name, value in env.items()
        if not name.startswith(_OURS)
    }
    name = max(sizes, key=sizes.__getitem__, default="")
    if sizes.get(name, 0) > MAX_VARIABLE_BYTES:
        raise _refused(
            f"The variable {name} has {sizes[name]} bytes with its name; a program can be given "
            f"one of {MAX_VARIABLE_BYTES} bytes at most."
        )
    together = sum(sizes.values()) + _EACH_BYTES * len(sizes)
    if together > _environment_limit_bytes():
        raise _refused(
            f"The variables have {together} bytes together; a program can be given "
            f"{_environment_limit_bytes()} at most. The largest is {name}."
        )


def _environment_limit_bytes() -> int:
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    share = _MOST_BYTES if stack == resource.RLIM_INFINITY else min(stack // 4, _MOST_BYTES)
    return share - _FOR_THE_REST_BYTES


def _refused(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message, {"code": "VARIABLES"})
