"""Routes on which the connections of a run's browser leave this machine."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from contract.requests import IpFamily
from contract.result import CheckFailed, FailureKind
from runners.net.sockets import connect, render
from runners.tools import Tools, resolve_allowed

_CONNECT_TIMEOUT_S: Final = 10.0
"""The time limit of a connection to one address."""
_HOST_PART: Final = re.compile(r"^[^:]*://[^/?#]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """A request that a browser sends to its proxy."""

    host: str
    """The host; an IPv6 address has no brackets."""
    port: int
    method: str
    target: str
    """The request target as the browser wrote it."""
    headers: bytes = b""
    """The headers for the target, with the empty line; a tunnel has none."""
    brings_own: bool = False
    """Whether the script presents a client certificate of its own."""
    first_bytes: bytes = b""
    """The first bytes in a tunnel; empty unless the route `reads_first_bytes`."""

    @property
    def is_tunnel(self) -> bool:
        """Whether the browser asks for a tunnel, for TLS or any other protocol."""
        return self.method == "CONNECT"

    @property
    def path(self) -> str:
        """The path that is requested from the target itself."""
        path = _HOST_PART.sub("", self.target, count=1)
        return path if path.startswith("/") else f"/{path}"


class EgressRoute(Protocol):
    """Connects requests: directly, or with a client certificate."""

    def reads_first_bytes(self, request: ProxyRequest) -> bool:
        """Whether it needs the first bytes in a tunnel before it connects."""

    async def require_allowed(self, request: ProxyRequest) -> None:
        """Require that the target may be reached.

        Raises:
            CheckFailed: refused, or without an address.
        """

    async def connect(self, request: ProxyRequest) -> socket.socket:
        """Connect a socket, which then carries the request's head or the tunnel's bytes.

        Raises:
            CheckFailed: refused, without an address, or not to be connected to.
            OSError: ours.
        """

    def build_request_head(self, request: ProxyRequest) -> bytes:
        """Build the head of the request that is sent to the target."""


class DirectRoute:
    """Connects to the target itself, whose addresses are checked against the rules."""

    def __init__(self, network: Tools) -> None:
        self._network = network

    def reads_first_bytes(self, request: ProxyRequest) -> bool:  # noqa: ARG002
        """No first bytes are needed."""
        return False

    async def require_allowed(self, request: ProxyRequest) -> None:
        """Require that the rules allow the target's name and addresses."""
        async for _ in self._addresses(request):
            return

    async def connect(self, request: ProxyRequest) -> socket.socket:
        """Connect by IPv4, or else by IPv6."""
        problem: CheckFailed | None = None
        async for family, addresses in self._addresses(request):
            try:
                return await _connect_to_first(addresses, request.port, family)
            except CheckFailed as failure:
                problem = problem or failure
        raise problem or _fail_without_address(request)

    async def _addresses(
        self, request: ProxyRequest
    ) -> AsyncIterator[tuple[IpFamily, Sequence[str]]]:
        problems: list[CheckFailed] = []
        for family in IpFamily:
            try:
                yield family, await resolve_allowed(request.host, family, self._network)
            except CheckFailed as failure:
                if failure.failure.kind is FailureKind.EGRESS:
                    raise
                problems.append(failure)
        if len(problems) == len(IpFamily):
            raise problems[0]

    def build_request_head(self, request: ProxyRequest) -> bytes:
        """Build the head with the path only, instead of the absolute URL."""
        return f"{request.method} {request.path} HTTP/1.1\r\n".encode("latin-1") + request.headers


def _fail_without_address(request: ProxyRequest) -> CheckFailed:
    return CheckFailed(FailureKind.DNS, f"{request.host} has no address.", {"code": "ENOTFOUND"})


async def _connect_to_first(addresses: Sequence[str], port: int, family: IpFamily) -> socket.socket:
    """Connect to the first address that accepts a connection.

    Raises:
        CheckFailed: of kind CONNECT, with the last one's reason.
    """
    *others, last = addresses
    for address in others:
        with suppress(CheckFailed):
            return await _connect_within_limit(address, port, family)
    return await _connect_within_limit(last, port, family)


async def _connect_within_limit(address: str, port: int, family: IpFamily) -> socket.socket:
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            return await connect(address, port, family)
    except TimeoutError as problem:
        late = f"{render(address, port)} did not answer in {_CONNECT_TIMEOUT_S:g} s."
        raise CheckFailed(FailureKind.CONNECT, late, {"code": "ETIMEDOUT"}) from problem
