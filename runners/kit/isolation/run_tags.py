"""The mark that every process of a run inherits and none can take off: its limit of file locks.

Linux has long stopped to enforce that limit, shows it to everybody, hands it on at each fork and
exec, and lets a process without privileges lower it only. Whatever else has no such limit at all.
"""

import os
from pathlib import Path
from typing import Final

from runners.kit.isolation.processes import look_up

_PROC: Final = Path("/proc")
_NUMBER_BITS: Final = 12
_START_BITS: Final = 12
_AGENT_BITS: Final = 22
"""The system's largest process number has as many."""
_WORLD_BITS: Final = 16


class RunTags:
    """Makes the tags of one agent's runs: world, agent, when it started, and a number."""

    def __init__(self) -> None:
        agent = _world() << _AGENT_BITS | os.getpid()
        self._base = (agent << _START_BITS | (_start(os.getpid()) or 0)) << _NUMBER_BITS
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
    rest, started = divmod(tag >> _NUMBER_BITS, 1 << _START_BITS)
    world, agent = divmod(rest, 1 << _AGENT_BITS)
    return world == _world() and _start(agent) != started


def _start(pid: int) -> int | None:
    """When a process started, in a few bits: numbers come around. None: it is no more."""
    seen = look_up(pid)
    return None if seen is None or seen.has_ended else seen.started % (1 << _START_BITS)


def _world() -> int:
    """What tells this container's process numbers from those of others."""
    return (_PROC / "self/ns/pid").stat().st_ino % (1 << _WORLD_BITS)
