"""Keeps runs from the kernel's keyrings of others.

The keyrings of a run's user outlive its processes, and only that user may empty them: a program of
its own becomes it. The keyring of a session is handed down from process to process, whoever they
run as: a run would have the agent's, and share it with all others.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
"""The number of the system call on each kind of machine that the agent is built for."""
_JOIN_SESSION: Final = 1
_CLEAR: Final = 7
_GET_PERSISTENT: Final = 22
_OF_PROCESS, _OF_USER, _OF_USERS_SESSION = -2, -4, -5
_LIBC: Final = ctypes.CDLL(None)
_COUNTS: Final = Path("/proc/key-users")


def take_new_session() -> None:
    """Let what this thread starts from now on have a session's keyring of its own, and empty.

    Where the system refuses, as container engines have it, nobody has any keys.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _LIBC.syscall(number, _JOIN_SESSION, None)


def clear_keyrings(uid: int) -> None:
    """Drop all keys that a user, which runs no process any more, has left; it blocks."""
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
    """Whether the system keeps any for a user, if only empty keyrings; most never have one."""
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
