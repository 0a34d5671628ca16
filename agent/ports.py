"""Listening sockets for what the agent serves, with a sentence when a port cannot be had."""

import errno
import logging
import socket
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError

_BECAUSE: Final = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "this user may not listen there",
    errno.EADDRNOTAVAIL: "this machine does not have the address",
}


class PortUnavailableError(Exception):
    """A setting names a port that cannot be had; the text is one line for whoever set it."""


def open_port(setting: str, port: int, *, host: str = "") -> socket.socket:
    """A listening socket; port 0 takes a free one, host "" means every address of the machine.

    Raises:
        PortUnavailableError: the port is taken or not allowed.
    """
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        because = _BECAUSE.get(problem.errno or 0, problem.strerror or "it cannot be opened")
        raise PortUnavailableError(
            f"{setting} is {port}, but {because}; use a free port, or 0 for any"
        ) from problem


def bound_port(listener: socket.socket) -> int:
    """The port that a listening socket got."""
    return int(listener.getsockname()[1])


class _CallersFaultFilter(logging.Filter):
    """Drops what aiohttp says about malformed requests: anyone may send those."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


def server_log(name: str) -> logging.Logger:
    """For an aiohttp server of ours: what a caller sends wrong is no error of the agent."""
    log = logging.getLogger(name)
    if not log.filters:
        log.addFilter(_CallersFaultFilter())
    return log
