"""Who is at the other end of a connection on this machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

_CONNECTIONS: Final = Path("/proc/net/tcp")
_LOOPBACK: Final = "0100007F"
_LOCAL, _REMOTE, _OWNER = 1, 2, 7
"""Columns."""
_LOOKS: Final = 20


def came_from(folder: Path) -> Callable[[int, int], bool]:
    """Tells whether a connection, by its ports of loopback, is the folder's owner's; it blocks.

    A run owns its folder. Without users of their own, all runs are the agent's, and may.
    """
    return lambda port, to: owner_of_connection(port, to) == folder.stat().st_uid


def owner_of_connection(port: int, to: int) -> int | None:
    """The user that has connected from one port of 127.0.0.1 to another. None: nobody has.

    Both ends are asked for: one port may be that of several users' connections.
    """
    # The table comes in pieces, and loses lines when others come and go in between.
    looks = (_owner_in(_CONNECTIONS.read_text(), port, to) for _ in range(_LOOKS))
    return next((owner for owner in looks if owner is not None), None)


def _owner_in(table: str, port: int, to: int) -> int | None:
    ends = [f"{_LOOPBACK}:{number:04X}" for number in (port, to)]
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[_LOCAL : _REMOTE + 1] == ends:
            return int(fields[_OWNER])
    return None
