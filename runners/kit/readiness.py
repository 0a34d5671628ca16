"""Waiting until a socket can be read or written.

The loop's own sock_connect and sock_recv do this too, but uvloop's cost 30 us more a call, which is
a third of a TCP check.
"""

import asyncio
import select
import socket


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


async def readable(sock: socket.socket) -> None:
    """Wait until the socket has something to read, or an error."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(sock.fileno(), _tell, ready)
    try:
        await ready
    finally:
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
