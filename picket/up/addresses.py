"""Where service and agent of `picket up` listen, and what is said when that changes."""

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from picket.errors import CommandError
from picket.up.demo_target import HOST

USUAL_PORT: Final = 8080
"""The default port of `picket service`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses that people give to their jobs, which is why they are kept between starts."""

    service_url: str | None = None
    """Where the service listens. None: it never did."""
    ping_url: str | None = None
    """Where the agent takes pings. None: it never did."""

    @property
    def service_port(self) -> int | None:
        """The service's port. None: it has no address."""
        return _port(self.service_url)

    @property
    def ping_port(self) -> int | None:
        """The port for pings. None: it has no address."""
        return _port(self.ping_url)


def _port(url: str | None) -> int | None:
    return int(url.rpartition(":")[2]) if url else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where our children listen."""

    service: int
    health: int
    ping: int

    @classmethod
    def free(cls, *, wanted: Sequence[int], ping: int | None = None) -> "Ports":
        """Ports that are free now; the service's is the first of the wanted ones that is.

        `ping`: the wanted ping port. None: any.
        """
        free, health, other = free_ports(3)
        service = next((port for port in wanted if is_port_free(port)), free)
        if ping is None or ping == service or not is_port_free(ping):
            ping = other
        return cls(service=service, health=health, ping=ping)

    @property
    def service_url(self) -> str:
        """Where the agent finds the service."""
        return _url(self.service)

    @property
    def health_url(self) -> str:
        """Where the agent answers probes."""
        return _url(self.health)

    @property
    def ping_url(self) -> str:
        """Where the agent takes pings."""
        return _url(self.ping)

    @property
    def addresses(self) -> Addresses:
        """Those that people give to their jobs."""
        return Addresses(service_url=self.service_url, ping_url=self.ping_url)


def _url(port: int) -> str:
    return f"http://{HOST}:{port}"


def describe_moves(
    last: Addresses, now: Addresses, *, requested_port: int | None
) -> tuple[str, ...]:
    """Sentences on addresses that are not those of the last start.

    `requested_port`: the service's port on the command line. None: that of the last start was to
    be kept, or the usual one to be taken.
    """
    moves = []
    if last.service_url is None and requested_port is None and now.service_port != USUAL_PORT:
        moves.append(f"Another program uses port {USUAL_PORT}; this address is kept from now on.")
    if last.service_url not in {None, now.service_url}:
        because = "" if requested_port else f": another program uses port {last.service_port}"
        moves.append(
            f"The API moved from {last.service_url} to {now.service_url}{because}. Ping, trigger "
            "and badge URLs with the old address no longer work; update the jobs that call them. "
            "The new address is kept from now on."
        )
    if last.ping_url not in {None, now.ping_url}:
        moves.append(
            f"The agent's ping port moved from {last.ping_url} to {now.ping_url}: another program "
            f"uses port {last.ping_port}. Ping URLs with the old address no longer work; update "
            "the jobs that call them. The new address is kept from now on."
        )
    return tuple(moves)


_LOWEST: Final = 10_000
_TRIES: Final = 100
_GIVEN_BY_SYSTEM: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Return this many different free ports; child processes bind them a moment later."""
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


def is_port_free(port: int) -> bool:
    """Whether the port is free now."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def require_free_port(port: int, *, option: str) -> int:
    """Return the port if it is free.

    Raises:
        CommandError: something else listens there.
    """
    try:
        socket.create_server((HOST, port)).close()
    except OSError as problem:
        raise CommandError(
            f"{option} is {port}, but that port cannot be used: {problem.strerror}; "
            "omit the option to use a free one"
        ) from problem
    return port
