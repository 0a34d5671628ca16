"""Opening TCP connections, and telling the target's faults from ours."""

import errno
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from contract.requests import IpFamily
from contract.result import FailureKind
from runners.kit.addresses import SOCKET_FAMILY, shown, socket_address
from runners.kit.failures import CheckFailed
from runners.kit.readiness import writable

Wait = Callable[[socket.socket], Awaitable[None]]
"""Waits until a socket can be written, or has an error."""

TARGET_FAULTS: Final[Mapping[int, str]] = {
    errno.ECONNREFUSED: "refused the connection",
    errno.ECONNRESET: "reset the connection",
    errno.ECONNABORTED: "aborted the connection",
    errno.EPIPE: "closed the connection",
    errno.ETIMEDOUT: "did not answer",
    errno.EHOSTUNREACH: "cannot be reached (no route to the host)",
    errno.EHOSTDOWN: "cannot be reached (the host is down)",
    errno.ENETUNREACH: "cannot be reached (no route to its network)",
    errno.ENONET: "cannot be reached (a router has no way to it)",
    errno.ENOPROTOOPT: "does not take this protocol",
    errno.EACCES: "cannot be reached (a firewall or a route forbids it)",
    errno.EPERM: "cannot be reached (a firewall of this machine forbids it)",
    errno.EINVAL: "cannot be reached (this machine has no way to such an address)",
}
"""What the target did, or somebody between us and it, by the error that the system reports.

Linux says EACCES for a router's `administratively prohibited` of IPv6, EINVAL for a route that
swallows. Any other error is ours: no free descriptors, no free ports, no memory."""


@contextmanager
def blaming_target(address: str, port: int, *, syscall: str) -> Iterator[None]:
    """Turn errors that the target caused into `CheckFailed`; others pass."""
    try:
        yield
    except OSError as problem:
        phrase = TARGET_FAULTS.get(problem.errno) if problem.errno is not None else None
        if phrase is None:
            raise
        raise CheckFailed(
            FailureKind.CONNECT,
            f"{shown(address, port)} {phrase}.",
            _detail(problem, address=address, port=port, syscall=syscall),
        ) from problem


def _detail(
    problem: OSError, *, address: str, port: int, syscall: str
) -> dict[str, str | int | float | None]:
    number = problem.errno or 0
    return {
        "code": errno.errorcode.get(number, str(number)),
        "errno": -number,
        "syscall": syscall,
        "address": address,
        "port": port,
    }


async def connect(
    address: str, port: int, family: IpFamily, *, wait: Wait = writable
) -> socket.socket:
    """A connected, non-blocking TCP socket; the caller closes it.

    Raises:
        CheckFailed: of kind CONNECT, when the target refused or could not be reached.
    """
    # Not create_connection: without transport and protocol a connect costs a third.
    sock = socket.socket(SOCKET_FAMILY[family], socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        code = sock.connect_ex(socket_address(address, port))
        if code == errno.EINPROGRESS:
            await wait(sock)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    except BaseException:
        sock.close()
        raise
    if code:
        sock.close()
        with blaming_target(address, port, syscall="connect"):
            raise OSError(code, os.strerror(code))
    return sock
