"""Free ports on loopback for the children."""

import random
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from picket.demo_target import HOST
from picket.errors import CommandError

_LOWEST: Final = 10_000
_TRIES: Final = 100
_GIVEN_BY_SYSTEM: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """So many different ports that are free now; a child binds each a moment later."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(_listener()) for _ in range(count)]
        return [int(listener.getsockname()[1]) for listener in listeners]


def _listener() -> socket.socket:
    # Not one that the system chooses: it gives those to outgoing connections too, and on a busy
    # host one of them has the port before the child binds it.
    above = _first_given_by_system()
    for _ in range(_TRIES if above > _LOWEST else 0):
        try:
            return socket.create_server((HOST, random.randrange(_LOWEST, above)))  # noqa: S311 - no secret
        except OSError:
            continue  # taken
    return socket.create_server((HOST, 0))


def _first_given_by_system() -> int:
    try:
        return int(_GIVEN_BY_SYSTEM.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def is_free(port: int) -> bool:
    """Whether the port can be had now."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def hold_free(port: int, *, option: str) -> int:
    """The port, when it can be had.

    Raises:
        CommandError: something else listens there.
    """
    try:
        socket.create_server((HOST, port)).close()
    except OSError as problem:
        raise CommandError(
            f"{option} is {port}, but that port cannot be had: {problem.strerror}; "
            "leave the option out for a free one"
        ) from problem
    return port
