"""The command line that puts a program under its limits before its first instruction."""

import os
import resource
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from runners.kit.isolation.host_error import HostError
from runners.kit.isolation.program import Limits, Program

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
