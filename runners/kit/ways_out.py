"""How the connections of a run's browser leave this machine: by themselves, or by a proxy."""

import asyncio
import base64
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from contract.checks import IpFamily
from contract.result import FailureKind
from runners.kit.addresses import shown
from runners.kit.connection import connect
from runners.kit.failures import CheckFailed
from runners.kit.http_route import with_scheme
from runners.kit.reach import allowed_name, reachable_addresses
from runners.kit.runner import Network

_CONNECT_TIMEOUT_S: Final = 10.0
"""Per address, and for a proxy's answer."""
OWN_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
"""Where suites have servers of their own, which no proxy could reach."""
_HEAD_LIMIT_BYTES: Final = 16 * 1024
_HOST_PART: Final = re.compile(r"^[^:]*://[^/?#]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a browser asks a proxy for."""

    host: str
    """Without brackets."""
    port: int
    method: str
    target: str
    """As the browser wrote it."""
    headers: bytes = b""
    """Those of the target, with the empty line; a tunnel has none."""
    brings_own: bool = False
    """The script shows a certificate of its own."""
    first: bytes = b""
    """What the browser said in its tunnel already; empty where nobody `listens_first`."""

    @property
    def is_tunnel(self) -> bool:
        """The browser wants to speak TLS, or whatever it likes, through us."""
        return self.method == "CONNECT"

    @property
    def path(self) -> str:
        """What the target itself is asked for."""
        path = _HOST_PART.sub("", self.target, count=1)
        return path if path.startswith("/") else f"/{path}"


class Way(Protocol):
    """From a wish to a connection."""

    def listens_first(self, wish: Wish) -> bool:
        """Whether it has to know what the browser says in a tunnel before it can connect."""

    async def judge(self, wish: Wish) -> None:
        """Look whether it would go there.

        Raises:
            CheckFailed: refused, or without an address.
        """

    async def connect(self, wish: Wish) -> socket.socket:
        """A connected socket; through it goes what `request` says, or the tunnel's bytes.

        Raises:
            CheckFailed: refused, without an address, or not to be connected to.
            OSError: ours.
        """

    def request(self, wish: Wish) -> bytes:
        """The head of the browser's request, as this way wants it."""


class Straight:
    """To the target itself, whose address is judged."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def listens_first(self, wish: Wish) -> bool:  # noqa: ARG002
        """It does not."""
        return False

    async def judge(self, wish: Wish) -> None:
        """Its name, and its addresses."""
        async for _ in self._addresses(wish):
            return

    async def connect(self, wish: Wish) -> socket.socket:
        """By IPv4, or else by IPv6."""
        problem: CheckFailed | None = None
        async for family, addresses in self._addresses(wish):
            try:
                return await _first_of(addresses, wish.port, family)
            except CheckFailed as failure:
                problem = problem or failure
        raise problem or _no_address(wish)

    async def _addresses(self, wish: Wish) -> AsyncIterator[tuple[IpFamily, Sequence[str]]]:
        problems: list[CheckFailed] = []
        for family in IpFamily:
            try:
                yield family, await reachable_addresses(wish.host, family, self._network)
            except CheckFailed as failure:
                if failure.failure.kind is FailureKind.EGRESS:
                    raise
                problems.append(failure)
        if len(problems) == len(IpFamily):
            raise problems[0]

    def request(self, wish: Wish) -> bytes:
        """With the path alone."""
        return f"{wish.method} {wish.path} HTTP/1.1\r\n".encode("latin-1") + wish.headers


class ThroughProxy:
    """By the location's proxy. The target's name is judged; what address it has there, nobody sees.

    The proxy's own address is the operator's business, and not judged.
    """

    def __init__(self, network: Network, proxy_url: str) -> None:
        """`proxy_url`: one that `is_http` takes."""
        self._network = network
        parts = urlsplit(with_scheme(proxy_url))
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._credentials = b""
        if parts.username is not None:
            told = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            basic = base64.b64encode(told)
            self._credentials = b"proxy-authorization: Basic " + basic + b"\r\n"

    def listens_first(self, wish: Wish) -> bool:  # noqa: ARG002
        """It does not."""
        return False

    async def judge(self, wish: Wish) -> None:
        """Its name alone."""
        allowed_name(wish.host, self._network)

    async def connect(self, wish: Wish) -> socket.socket:
        """A tunnel through the proxy, or the proxy itself."""
        allowed_name(wish.host, self._network)
        sock = await self._to_proxy()
        if wish.is_tunnel:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    await self._ask_for_tunnel(sock, wish)
            except BaseException as problem:
                sock.close()
                if isinstance(problem, TimeoutError):
                    raise self._refused("did not answer") from problem
                raise
        return sock

    def request(self, wish: Wish) -> bytes:
        """With the whole address, and the proxy's credentials."""
        line = f"{wish.method} {wish.target} HTTP/1.1\r\n".encode("latin-1")
        return line + self._credentials + wish.headers

    async def _to_proxy(self) -> socket.socket:
        problems: list[CheckFailed] = []
        for family in IpFamily:
            try:
                addresses = await self._network.resolver.resolve(self._host, family)
                return await _first_of(addresses, self._port, family)
            except CheckFailed as failure:
                problems.append(failure)
        raise self._refused(f"cannot be reached: {problems[0]}".rstrip("."))

    async def _ask_for_tunnel(self, sock: socket.socket, wish: Wish) -> None:
        loop, where = asyncio.get_running_loop(), shown(wish.host, wish.port)
        head = f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\n".encode("latin-1")
        await loop.sock_sendall(sock, head + self._credentials + b"\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            # Byte by byte, so that nothing of the target's is taken: this is done once a tunnel.
            piece = await loop.sock_recv(sock, 1) if len(answer) < _HEAD_LIMIT_BYTES else b""
            if not piece:
                raise self._refused("broke off its answer")
            answer += piece
        line = answer.partition(b"\r\n")[0].decode("latin-1")
        if line.partition(" ")[2][:1] != "2":
            raise self._refused(f"gives no tunnel to {where}: it answers {line[:200]!r}")

    def _refused(self, what: str) -> CheckFailed:
        return CheckFailed(
            FailureKind.CONNECT,
            f"The location's proxy {shown(self._host, self._port)} {what}.",
            {"code": "PROXY", "hostname": self._host, "port": self._port},
        )


class Parted:
    """To servers of the run's own straight, to all others by another way."""

    def __init__(self, straight: Way, other: Way) -> None:
        self._straight = straight
        self._other = other

    def listens_first(self, wish: Wish) -> bool:
        """As the host's way does."""
        return self._of(wish).listens_first(wish)

    async def judge(self, wish: Wish) -> None:
        """As the host's way does."""
        await self._of(wish).judge(wish)

    async def connect(self, wish: Wish) -> socket.socket:
        """As the host's way does."""
        return await self._of(wish).connect(wish)

    def request(self, wish: Wish) -> bytes:
        """As the host's way does."""
        return self._of(wish).request(wish)

    def _of(self, wish: Wish) -> Way:
        return self._straight if wish.host.lower() in OWN_MACHINE else self._other


def is_http(proxy_url: str) -> bool:
    """Whether it is of the one kind that our own proxy can speak to."""
    try:
        parts = urlsplit(with_scheme(proxy_url))
        return parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _no_address(wish: Wish) -> CheckFailed:
    return CheckFailed(FailureKind.DNS, f"{wish.host} has no address.", {"code": "ENOTFOUND"})


async def _first_of(addresses: Sequence[str], port: int, family: IpFamily) -> socket.socket:
    """A connection to the first address that takes one.

    Raises:
        CheckFailed: of kind CONNECT, with the last one's reason.
    """
    *others, last = addresses
    for address in others:
        with suppress(CheckFailed):
            return await _to(address, port, family)
    return await _to(last, port, family)


async def _to(address: str, port: int, family: IpFamily) -> socket.socket:
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            return await connect(address, port, family)
    except TimeoutError as problem:
        late = f"{shown(address, port)} did not answer in {_CONNECT_TIMEOUT_S:g} s."
        raise CheckFailed(FailureKind.CONNECT, late, {"code": "ETIMEDOUT"}) from problem
