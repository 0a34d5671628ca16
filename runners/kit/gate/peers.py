"""Who is at the other end of a connection on this machine."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from runners.kit.gate.socket_owner import kernel_tells, owner_told

_CONNECTIONS: Final = Path("/proc/net/tcp")
_LOOPBACK: Final = "0100007F"
_OWNER: Final = 4
"""Its column, counted from that of the far end."""
_LINE: Final = 150
"""Characters of one, at most."""
_LOOKS: Final = 20

Admits = Callable[[int, int], Awaitable[bool]]
"""Whether whoever connects from one port of loopback to another may come in."""


def came_from(folder: Path) -> Admits:
    """Tells whether a connection, by its ports of loopback, is the folder's owner's.

    A run owns its folder. Without users of their own, all runs are the agent's, and may.

    Raises:
        OSError: there is no port or descriptor left.
    """
    table = None if kernel_tells() else ConnectionTable(_CONNECTIONS)

    async def admits(port: int, to: int) -> bool:
        owner = owner_told(port, to) if table is None else await table.owner(port, to)
        return owner == _owner_of(folder)

    return admits


def _owner_of(folder: Path) -> int:
    return folder.stat().st_uid


class ConnectionTable:
    """The kernel's list of connections, for where it answers no questions; read for all that wait.

    Of one gate: when one of those who wait is cancelled, all are.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str] | None = None
        """The look that has not begun yet. None: nobody waits for one."""

    async def owner(self, port: int, to: int) -> int | None:
        """The user that has connected from one port of 127.0.0.1 to another. None: nobody has."""
        # The table comes in pieces, and loses lines when others come and go in between.
        for _ in range(_LOOKS):
            found = _owner_in(await self._look(), port, to)
            if found is not None:
                return found
        return None

    async def _look(self) -> str:
        if self._next is None:
            self._next = asyncio.create_task(self._read(), name="connection-table")
        return await self._next

    async def _read(self) -> str:
        async with self._turn:
            self._next = None
            return await asyncio.to_thread(self._path.read_text)


def _owner_in(table: str, port: int, to: int) -> int | None:
    """Both ends are asked for: one port may be that of several users' connections."""
    _, _, found = table.partition(f" {_LOOPBACK}:{port:04X} {_LOOPBACK}:{to:04X} ")
    return int(found[:_LINE].split()[_OWNER]) if found else None
