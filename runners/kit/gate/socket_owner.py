"""Whose a connection on loopback is, as the kernel itself tells; it takes it 15 µs.

The message is that of sock_diag(7) which asks for one connection. Not every kernel answers it.
"""

import errno
import os
import socket
import struct
import sys
from functools import cache
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_NETLINK: Final = getattr(socket, "AF_NETLINK", None)
"""None: the system has no such sockets."""
_OF_SOCKETS: Final = 4
"""NETLINK_SOCK_DIAG."""
_BY_FAMILY: Final = 20
"""SOCK_DIAG_BY_FAMILY, of questions and answers."""
_REQUEST: Final = 1
_HEAD: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBxI")
_PORTS: Final = struct.Struct("!HH")
_REST: Final = struct.Struct("=16s16sIII")
_ANY: Final = 0xFFFFFFFF
"""All states; no cookie."""
_PORTS_AT: Final = _HEAD.size + 4
_OWNER_AT: Final = _HEAD.size + 64
_NO_ROOM: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))


@cache
def kernel_tells() -> bool:
    """Whether this one answers.

    Raises:
        OSError: there is no port or descriptor left.
    """
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        try:
            told = owner_told(client.getsockname()[1], server.getsockname()[1])
        except OSError as problem:
            if problem.errno in _NO_ROOM:
                raise
            return False
    return told == os.geteuid()


def owner_told(port: int, to: int) -> int | None:
    """The user that has connected from one port of loopback to another. None: nobody has.

    Raises:
        OSError: the kernel takes no such question.
    """
    if _NETLINK is None:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    with socket.socket(_NETLINK, socket.SOCK_RAW, _OF_SOCKETS) as kernel:
        kernel.sendto(_question(port, to), (0, 0))
        answer = kernel.recv(4096, socket.MSG_DONTWAIT)
    if _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    # Where the connection has gone, this may be whoever listens on its port.
    if _PORTS.unpack_from(answer, _PORTS_AT) != (port, to):
        return None
    return int.from_bytes(answer[_OWNER_AT : _OWNER_AT + 4], sys.byteorder)


def _question(port: int, to: int) -> bytes:
    here = socket.inet_aton(LOOPBACK)
    body = (
        _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, _ANY)
        + _PORTS.pack(port, to)
        + _REST.pack(here, here, 0, _ANY, _ANY)
    )
    return _HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, 0, 0) + body
