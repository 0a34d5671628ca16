"""What the system shows of its processes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

_PROC: Final = Path("/proc")
_ENDED: Final = "ZX"
_STARTED: Final = 19
"""Fields counted from the state on, which follows the name."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the system's table."""

    name: str
    """Of the program that it executed last, cut to 15 characters, unless it chose another."""
    parent: int
    group: int
    started: int
    """In ticks since the system's start."""
    has_ended: bool
    """It is there only until its parent asks how it ended."""


def all_pids() -> Iterator[int]:
    """Every process that this one can see."""
    names = os.listdir(_PROC)  # noqa: PTH208 -- thousands of names, four times a second
    return (int(name) for name in names if name.isdecimal())


def newest_pid() -> int:
    """The number that the system gave last."""
    return int((_PROC / "loadavg").read_text().split()[-1])


def user_of(pid: int) -> int | None:
    """The user that a process runs as. None: there is no such process."""
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 -- of each process, many times
    except OSError:
        return None


def look_up(pid: int) -> Process | None:
    """What is known of a process. None: there is no such process."""
    try:
        head, _, rest = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")
    except OSError:
        return None
    fields = rest.decode().split()
    return Process(
        name=head.partition(b"(")[2].decode(errors="replace"),
        parent=int(fields[1]),
        group=int(fields[2]),
        started=int(fields[_STARTED]),
        has_ended=fields[0] in _ENDED,
    )


def is_in_a_container(pid: int) -> bool:
    """Whether a process counts its numbers in a world of its own, below ours."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    _, _, rest = status.partition("NSpid:")
    return len(rest.partition("\n")[0].split()) > 1
