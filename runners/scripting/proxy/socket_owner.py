"""Finds the user that owns the other end of a connection on loopback.

The kernel is asked by sock_diag(7), which takes 15 µs. Where it does not answer, /proc/net/tcp is
read.
"""

import asyncio
import errno
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_NETLINK: Final = getattr(socket, "AF_NETLINK", None)
"""None: the system has no such sockets."""
_SOCK_DIAG: Final = 4
"""The netlink family NETLINK_SOCK_DIAG."""
_BY_FAMILY: Final = 20
"""The type SOCK_DIAG_BY_FAMILY of requests and replies."""
_REQUEST: Final = 1
_HEAD: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBxI")
_PORTS: Final = struct.Struct("!HH")
_REST: Final = struct.Struct("=16s16sIII")
_ANY: Final = 0xFFFFFFFF
"""Stands for all states, and for no cookie."""
_PORTS_AT: Final = _HEAD.size + 4
_OWNER_AT: Final = _HEAD.size + 64
_NO_ROOM: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))


@cache
def kernel_answers() -> bool:
    """Whether this kernel answers sock_diag requests.

    Raises:
        OSError: there is no port or descriptor left.
    """
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        try:
            told = ask_owner(client.getsockname()[1], server.getsockname()[1])
        except OSError as problem:
            if problem.errno in _NO_ROOM:
                raise
            return False
    return told == os.geteuid()


def ask_owner(port: int, to: int) -> int | None:
    """Ask the kernel which user connected one port of loopback to another. None: nobody did.

    Raises:
        OSError: the kernel does not support the request.
    """
    if _NETLINK is None:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    with socket.socket(_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.sendto(_build_question(port, to), (0, 0))
        answer = kernel.recv(4096, socket.MSG_DONTWAIT)
    if _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    # If the connection is gone, this may be the socket that listens on its port.
    if _PORTS.unpack_from(answer, _PORTS_AT) != (port, to):
        return None
    return int.from_bytes(answer[_OWNER_AT : _OWNER_AT + 4], sys.byteorder)


def _build_question(port: int, to: int) -> bytes:
    here = socket.inet_aton(LOOPBACK)
    body = (
        _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, _ANY)
        + _PORTS.pack(port, to)
        + _REST.pack(here, here, 0, _ANY, _ANY)
    )
    return _HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, 0, 0) + body


_CONNECTIONS: Final = Path("/proc/net/tcp")
_LOOPBACK: Final = "0100007F"
_OWNER: Final = 4
"""The index of the user id among the columns after the addresses."""
_LINE: Final = 150
"""The most characters of a line."""
_READS: Final = 20

Admits = Callable[[int, int], Awaitable[bool]]
"""Decides whether a client on one port of loopback may connect to another."""


def admit_owner_of(folder: Path) -> Admits:
    """Make a function that admits only connections of the folder's owner.

    The folder belongs to the run's user. Without slot users, all runs have the agent's, and all are
    admitted.

    Raises:
        OSError: there is no port or descriptor left.
    """
    table = None if kernel_answers() else ConnectionTable(_CONNECTIONS)

    async def admits(port: int, to: int) -> bool:
        owner = ask_owner(port, to) if table is None else await table.owner(port, to)
        return owner == _read_owner(folder)

    return admits


def _read_owner(folder: Path) -> int:
    return folder.stat().st_uid


class ConnectionTable:
    """The kernel's list of connections, where sock_diag is missing; one read serves all waiters.

    Each proxy has a table of its own: if one waiter is cancelled, all are.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str] | None = None
        """The next read, which has not begun. None: nobody waits for one."""

    async def owner(self, port: int, to: int) -> int | None:
        """Find which user connected one port of 127.0.0.1 to another. None: nobody did."""
        # The kernel returns the table in pieces, and misses lines when others change meanwhile.
        for _ in range(_READS):
            found = _find_owner(await self._read_shared(), port, to)
            if found is not None:
                return found
        return None

    async def _read_shared(self) -> str:
        if self._next is None:
            self._next = asyncio.create_task(self._read(), name="connection-table")
        return await self._next

    async def _read(self) -> str:
        async with self._turn:
            self._next = None
            return await asyncio.to_thread(self._path.read_text)


def _find_owner(table: str, port: int, to: int) -> int | None:
    """Find the owner by both ports, as several users' connections may share one port."""
    _, _, found = table.partition(f" {_LOOPBACK}:{port:04X} {_LOOPBACK}:{to:04X} ")
    return int(found[:_LINE].split()[_OWNER]) if found else None
