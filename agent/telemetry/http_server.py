"""The small HTTP servers of the agent, and their ports.

They are made of aiohttp's low-level parts: `aiohttp.web` as a whole brings routes, files and web
sockets, which are 1.3 MB of the idle agent and never used.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from logging import Logger
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

Answer = Callable[[BaseRequest], Awaitable[StreamResponse]]

_BACKLOG: Final = 128
_UNREAD_BODY_LIMIT_S: Final = 1.0
"""How long the rest of a request body that the answer did not need is read."""


class HttpPort:
    """Answers every request on one socket, from the start to the stop."""

    def __init__(
        self, answer: Answer, *, log: Logger, idle_limit_s: float, stop_limit_s: float
    ) -> None:
        self._answer = answer
        self._log = log
        self._idle_limit_s = idle_limit_s
        self._stop_limit_s = stop_limit_s
        self._open: tuple[asyncio.Server, Server] | None = None
        """Who listens and who answers. None: not started, or stopped."""

    async def start(self, listener: socket.socket) -> None:
        """Answer on this socket, which is closed at the end."""
        answers = Server(
            self._answer,
            access_log=None,
            logger=self._log,
            keepalive_timeout=self._idle_limit_s,
            lingering_time=_UNREAD_BODY_LIMIT_S,
        )
        loop = asyncio.get_running_loop()
        listens = await loop.create_server(answers, sock=listener, backlog=_BACKLOG)
        self._open = listens, answers

    async def stop(self) -> None:
        """Close the socket; answers under way have the limit to end."""
        if self._open is None:
            return
        listens, answers = self._open
        self._open = None
        listens.close()
        await asyncio.sleep(0)  # what has been asked already begins to be answered
        answers.pre_shutdown()
        await answers.shutdown(self._stop_limit_s)


_BECAUSE: Final = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "this user may not listen there",
}
_NO_SUCH_ADDRESS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class PortUnavailableError(Exception):
    """A setting names a port or an address that cannot be had; the text is one line on it."""


def open_port(setting: str, port: int, *, host: str = "") -> socket.socket:
    """A listening socket; port 0 takes a free one, host "" means every address of the machine.

    `setting`: the variable with the port. The one with the host ends with `_HOST` instead.

    Raises:
        PortUnavailableError: the port is taken or not allowed, or the machine lacks the address.
    """
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        if problem.errno in _NO_SUCH_ADDRESS:
            raise PortUnavailableError(
                f"{setting.removesuffix('_PORT')}_HOST is {host}, but this machine does not have "
                "the address; use an address of this machine, as in 127.0.0.1"
            ) from problem
        because = _BECAUSE.get(problem.errno or 0, problem.strerror or "it cannot be opened")
        raise PortUnavailableError(
            f"{setting} is {port}, but {because}; use a free port, or 0 for any"
        ) from problem


def read_port(listener: socket.socket) -> int:
    """The port that a listening socket got."""
    return int(listener.getsockname()[1])


class _CallersFaultFilter(logging.Filter):
    """Drops what aiohttp says about malformed requests: anyone may send those."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


def get_server_log(name: str) -> logging.Logger:
    """For an aiohttp server of ours: what a caller sends wrong is no error of the agent."""
    log = logging.getLogger(name)
    if not log.filters:
        log.addFilter(_CallersFaultFilter())
    return log
