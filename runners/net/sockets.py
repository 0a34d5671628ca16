"""Sockets: addresses, non-blocking connections, and waiting until they can be read or written.

The loop's own sock_connect and sock_recv do this too, but uvloop's cost 30 us more a call, which is
a third of a TCP check.
"""

import asyncio
import errno
import os
import select
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from contract.requests import IpFamily
from contract.result import CheckFailed, FailureKind


class Readiness:
    """Waits for many sockets that one epoll watches, and the event loop watches only that.

    A watcher of the loop's for each socket costs 10 us more, an eighth of a TCP check.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the first wait, and of all others. None: there was no wait yet."""
        self._epoll: select.epoll | None = None
        """None: there was no wait yet, or it is closed."""
        self._waiting: dict[int, asyncio.Future[None]] = {}

    def __repr__(self) -> str:
        return f"Readiness({len(self._waiting)} waiting)"

    async def writable(self, sock: socket.socket) -> None:
        """Wait until the socket can be written, or has an error; once for each socket.

        What was seen ready once is watched no more, and leaves the epoll when it is closed.
        """
        epoll, loop = self._open()
        fd = sock.fileno()
        ready = self._waiting[fd] = loop.create_future()
        epoll.register(fd, select.EPOLLOUT | select.EPOLLONESHOT)
        try:
            await ready
        except BaseException:
            self._waiting.pop(fd, None)
            if not epoll.closed:
                epoll.unregister(fd)
            raise

    def close(self) -> None:
        """Watch nothing any more."""
        if self._epoll is None or self._loop is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._epoll = None

    def _open(self) -> tuple[select.epoll, asyncio.AbstractEventLoop]:
        if self._epoll is None or self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self._tell_all)
        return self._epoll, self._loop

    def _tell_all(self) -> None:
        if self._epoll is None:
            return
        for fd, _ in self._epoll.poll(0):
            ready = self._waiting.pop(fd, None)
            if ready is not None and not ready.done():
                ready.set_result(None)


async def readable(sock: socket.socket, *, at_most_s: float) -> None:
    """Wait until the socket has something to read, or an error, or until the time is over."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(sock.fileno(), _tell, ready)
    timer = loop.call_later(at_most_s, _tell, ready)
    try:
        await ready
    finally:
        timer.cancel()
        loop.remove_reader(sock.fileno())


async def writable(sock: socket.socket) -> None:
    """Wait until the socket can be written, or has an error."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(sock.fileno(), _tell, ready)
    try:
        await ready
    finally:
        loop.remove_writer(sock.fileno())


def _tell(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


Wait = Callable[[socket.socket], Awaitable[None]]
"""Waits until a socket can be written, or has an error."""

TARGET_FAULTS: Final[Mapping[int, str]] = {
    errno.ECONNREFUSED: "refused the connection (nothing listens there)",
    errno.ECONNRESET: "reset the connection",
    errno.ECONNABORTED: "aborted the connection",
    errno.EPIPE: "closed the connection",
    errno.ETIMEDOUT: "did not answer",
    errno.EHOSTUNREACH: "cannot be reached (no route to host)",
    errno.EHOSTDOWN: "cannot be reached (the host is down)",
    errno.ENETUNREACH: "cannot be reached (network is unreachable)",
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
def map_connect_errors(address: str, port: int, *, syscall: str) -> Iterator[None]:
    """Turn errors that the target caused into `CheckFailed`; others pass."""
    try:
        yield
    except OSError as problem:
        phrase = TARGET_FAULTS.get(problem.errno) if problem.errno is not None else None
        if phrase is None:
            raise
        raise CheckFailed(
            FailureKind.CONNECT,
            f"{render(address, port)} {phrase}.",
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
        with map_connect_errors(address, port, syscall="connect"):
            raise OSError(code, os.strerror(code))
    return sock


SOCKET_FAMILY: Final = {
    IpFamily.IPV4: socket.AF_INET,
    IpFamily.IPV6: socket.AF_INET6,
}

SocketAddress = tuple[str, int] | tuple[str, int, int, int]


def strip_brackets(host: str) -> str:
    """`[::1]` is `::1`, as in a URL."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


@lru_cache(maxsize=4096)
def literal_family(text: str) -> IpFamily | None:
    """The family of an address literal, scoped ones such as fe80::1%eth0 included.

    None: it is no literal but a name.
    """
    if ":" in text:
        return IpFamily.IPV6 if _is_ipv6(text) else None
    try:
        socket.inet_pton(socket.AF_INET, text)
    except (OSError, ValueError):
        return None
    return IpFamily.IPV4


def explain_wrong_family(host: str, wanted: IpFamily) -> str | None:
    """Why an address literal cannot be reached by this family. None: it can, or it is a name."""
    found = literal_family(host)
    if found is None or found is wanted:
        return None
    return (
        f"{host} is an {found} address, and the check's ipFamily is {wanted}; "
        f"set ipFamily to {found}."
    )


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def socket_address(address: str, port: int) -> SocketAddress:
    """What `connect` and `sendto` take, the scope of a link-local address included."""
    if "%" not in address:
        return address, port
    plain, _, scope = address.partition("%")
    return plain, port, 0, int(scope) if scope.isdecimal() else socket.if_nametoindex(scope)


def render(address: str, port: int) -> str:
    """The address with its port, as people write it."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@lru_cache(maxsize=4096)
def pack_address(address: str, family: IpFamily) -> bytes:
    """The address as it stands in a packet, without its scope."""
    return socket.inet_pton(SOCKET_FAMILY[family], address.partition("%")[0])
