"""The mark that every process of a run inherits and none can take off: its limit of file locks.

Linux has long stopped to enforce that limit, shows it to everybody, hands it on at each fork and
exec, and lets a process without privileges lower it only. Whatever else has no such limit at all.
"""

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_NUMBER_BITS: Final = 16
_AGENT_BITS: Final = 22
"""The system's largest process number has as many."""
_WORLD_BITS: Final = 24


class RunTags:
    """Makes the tags of one agent's runs: world, agent and a number."""

    def __init__(self) -> None:
        self._base = (_world() << _AGENT_BITS | os.getpid()) << _NUMBER_BITS
        self._made = 0

    def make(self) -> int:
        """The next tag."""
        self._made = self._made % ((1 << _NUMBER_BITS) - 1) + 1
        return self._base | self._made


def tag_of(pid: int) -> int | None:
    """The tag of a process. None: it has none, as whatever no sandbox has started, or is gone."""
    try:
        limits = (_PROC / str(pid) / "limits").read_bytes()
    except OSError:
        return None
    _, found, rest = limits.partition(b"Max file locks")
    hard = rest.split(None, 2)[1] if found else b"unlimited"
    return None if hard == b"unlimited" else int(hard)


def is_of_a_dead_agent(tag: int) -> bool:
    """Whether a tag was made here, by an agent that is no more.

    Another container has other numbers for its processes, so its tags say nothing here.
    """
    agent = (tag >> _NUMBER_BITS) & ((1 << _AGENT_BITS) - 1)
    made_here = tag >> (_NUMBER_BITS + _AGENT_BITS) == _world()
    return made_here and not (_PROC / str(agent)).exists()


def _world() -> int:
    """What tells this container's process numbers from those of others."""
    return (_PROC / "self/ns/pid").stat().st_ino & ((1 << _WORLD_BITS) - 1)
