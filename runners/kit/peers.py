"""Who is at the other end of a connection on this machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

_CONNECTIONS: Final = Path("/proc/net/tcp")
_LOOPBACK: Final = "0100007F"
_LOCAL, _OWNER = 1, 7
"""Columns."""
_LOOKS: Final = 20


def came_from(folder: Path) -> Callable[[int], bool]:
    """Tells whether a port of loopback is the folder's owner's: a run owns its folder.

    Without users of their own, all runs are the agent's, and may.
    """
    return lambda port: owner_of_port(port) == folder.stat().st_uid


def owner_of_port(port: int) -> int | None:
    """The user whose socket is bound to this port of 127.0.0.1. None: nobody's is."""
    # The table comes in pieces, and loses lines when others come and go in between.
    looks = (_owner_in(_CONNECTIONS.read_text(), port) for _ in range(_LOOKS))
    return next((owner for owner in looks if owner is not None), None)


def _owner_in(table: str, port: int) -> int | None:
    local = f"{_LOOPBACK}:{port:04X}"
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[_LOCAL] == local:
            return int(fields[_OWNER])
    return None
