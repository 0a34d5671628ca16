"""The socket that the service listens at, with a sentence when it cannot be had."""

import errno
import socket
from typing import Final

from service.errors import SettingsError
from service.settings import Settings

_WAITING: Final = 2048
"""Connections that may wait to be taken; a restart meets all agents at once."""
_PORT: Final = {
    errno.EADDRINUSE: "another program listens there; use a free port, or 0 for any",
    errno.EACCES: "this user may not listen there; use 1024 or above",
}


def listen(settings: Settings) -> socket.socket:
    """Listen where the settings say.

    Raises:
        SettingsError: the host is no address of this machine, or the port cannot be had.
    """
    host, port = settings.host, settings.port
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _prompt(socket.create_server(address[:2], family=family, backlog=_WAITING))
    except OSError as problem:
        because = _PORT.get(problem.errno or 0)
        if because is not None:
            raise SettingsError((f"SERVICE_PORT is {port}, but {because}",)) from problem
        raise SettingsError(
            (f"SERVICE_HOST is {host}; use an address of this machine, as in 127.0.0.1",)
        ) from problem


def _prompt(listening: socket.socket) -> socket.socket:
    """Its connections, which take it over, send an answer's end without waiting 40 ms for an ACK.

    asyncio does so by itself for sockets that name their protocol, and this one does not.
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
