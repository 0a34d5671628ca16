"""Free ports on loopback for the children."""

import socket
from contextlib import ExitStack

from picket.demo_target import HOST
from picket.errors import CommandError


def free_ports(count: int) -> list[int]:
    """So many different ports that are free now; a child binds each a moment later."""
    with ExitStack() as stack:
        listeners = [
            stack.enter_context(socket.create_server((HOST, 0), reuse_port=False))
            for _ in range(count)
        ]
        return [int(listener.getsockname()[1]) for listener in listeners]


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
