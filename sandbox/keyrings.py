"""Keeps runs away from the kernel keyrings of other runs and of the agent.

The keyrings of a user outlive its processes, and only that user may clear them, so a child process
changes to that user and clears them. A session keyring is inherited by every child, whatever its
user: without one of its own, each run would share the agent's.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
"""The number of the system call keyctl(2) on each architecture that the agent supports."""
_JOIN_SESSION: Final = 1
_CLEAR: Final = 7
_GET_PERSISTENT: Final = 22
_OF_PROCESS, _OF_USER, _OF_USERS_SESSION = -2, -4, -5
_LIBC: Final = ctypes.CDLL(None)
_COUNTS: Final = Path("/proc/key-users")


def take_new_session() -> None:
    """Give what this thread starts from now on a new and empty session keyring.

    Container engines may refuse the call, but then no process can have keys at all.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _LIBC.syscall(number, _JOIN_SESSION, None)


def clear_keyrings(uid: int) -> None:
    """Clear the keyrings of a user that has no process any more; it blocks."""
    if has_keys(uid):
        subprocess.run(  # noqa: S603 -- this file
            [sys.executable, "-I", "-S", __file__, str(uid)],
            check=False,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def has_keys(uid: int, counts: Path = _COUNTS) -> bool:
    """Whether the kernel keeps keys or keyrings for a user; most users never have any."""
    try:
        lines = counts.read_text().splitlines()
    except OSError:
        return False
    return any(line.split(":")[0].strip() == str(uid) for line in lines)


def _clear_as(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    keyctl, number = _LIBC.syscall, _KEYCTL[os.uname().machine]
    for ring in (_OF_USER, _OF_USERS_SESSION):
        keyctl(number, _CLEAR, ring)
    persistent = keyctl(number, _GET_PERSISTENT, -1, _OF_PROCESS)
    if persistent > 0:  # not every system has these
        keyctl(number, _CLEAR, persistent)


if __name__ == "__main__":
    _clear_as(int(sys.argv[1]))
