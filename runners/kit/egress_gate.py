"""A small HTTP proxy for one run's browser and scripts, so that the egress rules hold for them too.

A browser looks names up and connects by itself, where no rule of ours can stop it. With this proxy
before it, each connection is made here: name lookup, judgement and connect in one place, as for
every other check. What is refused is answered with the rule's sentence and remembered.

It cannot hold a socket that a script opens by itself, past every proxy.
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from contract.checks import IpFamily
from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.reach import reachable_addresses
from runners.kit.runner import Network

_HOST: Final = "127.0.0.1"
_HEAD_LIMIT_BYTES: Final = 64 * 1024
_HEAD_TIMEOUT_S: Final = 30.0
_CONNECT_TIMEOUT_S: Final = 10.0
"""Per address."""
_PIECE_BYTES: Final = 64 * 1024
_MOST_REFUSALS: Final = 100
_OURS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What this process lacks says nothing of a target."""
_OF_THE_HOP: Final = ("proxy-connection", "proxy-authorization", "connection", "keep-alive")
"""Headers that speak to the proxy alone."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the browser asks the proxy for."""

    host: str
    port: int
    forward: bytes
    """What the target is sent first; empty: a tunnel."""


class EgressGate:
    """The proxy of one run."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._server: asyncio.Server | None = None
        """None: it is not open."""
        self._exchanges: set[asyncio.Task[None]] = set()
        self._refusals: dict[str, None] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        if self._server is None:
            raise RuntimeError("the gate is not open")
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why targets were refused: each sentence once, in order, a hundred at most."""
        return tuple(self._refusals)

    async def open(self) -> None:
        """Begin to listen on loopback.

        Raises:
            OSError: there is no port or descriptor left; ours.
        """
        self._server = await asyncio.start_server(self._take, _HOST, 0, limit=_HEAD_LIMIT_BYTES)

    async def close(self) -> None:
        """Stop listening, and cut what is still open."""
        if self._server is not None:
            self._server.close()
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange = asyncio.create_task(self._serve(reader, writer), name="egress-gate")
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Whoever hangs up in the middle, on either side, ends the exchange, and nothing else.
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await self._exchange(reader, writer)
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wish = await _read_wish(reader)
        if wish is None:
            writer.write(_answer(HTTPStatus.BAD_REQUEST, "This is a proxy for HTTP and CONNECT."))
            return
        try:
            target_reader, target_writer = await self._connect(wish)
        except CheckFailed as failure:
            self._remember(failure)
            writer.write(_answer(_status_of(failure), str(failure)))
            return
        try:
            if wish.forward:
                target_writer.write(wish.forward)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _join((reader, writer), (target_reader, target_writer))
        finally:
            target_writer.close()

    async def _connect(self, wish: _Wish) -> Streams:
        """Raises: CheckFailed: refused, without an address, or not to be connected to."""
        problems: list[CheckFailed] = []
        for family in IpFamily:
            try:
                addresses = await reachable_addresses(wish.host, family, self._network)
                return await _first_of(addresses, wish)
            except CheckFailed as failure:
                if failure.failure.kind is FailureKind.EGRESS:
                    raise
                problems.append(failure)
        raise problems[0]

    def _remember(self, failure: CheckFailed) -> None:
        is_refusal = failure.failure.kind is FailureKind.EGRESS
        if is_refusal and len(self._refusals) < _MOST_REFUSALS:
            self._refusals[str(failure)] = None


@asynccontextmanager
async def egress_gate(network: Network) -> AsyncIterator[EgressGate | None]:
    """A gate for as long as the block lasts. None: the operator has set no rules, none is needed.

    Addresses of cloud metadata, which are refused without any rule, are kept from the browser by
    its own name rules then: through a proxy it could not tell why a connection failed.
    """
    if not (network.egress.allow or network.egress.deny):
        yield None
        return
    gate = EgressGate(network)
    await gate.open()
    try:
        yield gate
    finally:
        await gate.close()


async def _read_wish(reader: asyncio.StreamReader) -> _Wish | None:
    """None: it is no request for a proxy."""
    try:
        async with asyncio.timeout(_HEAD_TIMEOUT_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return None
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3:
        return None
    method, target, version = words
    try:
        if method == "CONNECT":
            found = urlsplit(f"//{target}")
            return _Wish(found.hostname or "", found.port or 443, b"")
        found = urlsplit(target)
        if found.scheme != "http" or not found.hostname:
            return None
        path = found._replace(scheme="", netloc="").geturl() or "/"
        forward = f"{method} {path} {version}\r\n".encode("latin-1") + _own_headers(rest)
        return _Wish(found.hostname, found.port or 80, forward)
    except ValueError:
        return None


def _own_headers(headers: bytes) -> bytes:
    """The target's headers; one request a connection, so that each is judged."""
    lines = [
        line
        for line in headers.split(b"\r\n")
        if line and line.partition(b":")[0].strip().lower().decode("latin-1") not in _OF_THE_HOP
    ]
    return b"\r\n".join([*lines, b"connection: close", b"", b""])


async def _join(browser: Streams, target: Streams) -> None:
    """Carry bytes both ways until the target has said its last."""
    out = asyncio.create_task(_carry(browser[0], target[1]), name="egress-gate-out")
    try:
        await _carry(target[0], browser[1])
    finally:
        out.cancel()
        await asyncio.gather(out, return_exceptions=True)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE_BYTES):
        sink.write(piece)
        await sink.drain()
    with suppress(OSError):
        sink.write_eof()


def _status_of(failure: CheckFailed) -> HTTPStatus:
    is_refusal = failure.failure.kind is FailureKind.EGRESS
    return HTTPStatus.FORBIDDEN if is_refusal else HTTPStatus.BAD_GATEWAY


async def _first_of(addresses: Sequence[str], wish: _Wish) -> Streams:
    """A connection to the first address that takes one.

    Raises:
        CheckFailed: of kind CONNECT, with the last one's reason.
    """
    reason = "it has no address"
    for address in addresses:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                return await asyncio.open_connection(address, wish.port)
        except TimeoutError:
            reason = f"{address} did not answer in {_CONNECT_TIMEOUT_S:g} s"
        except OSError as problem:
            if problem.errno in _OURS:
                raise
            reason = f"{address}: {os.strerror(problem.errno or 0)}"
    raise CheckFailed(FailureKind.CONNECT, f"{wish.host}, port {wish.port}: {reason}.")


def _answer(status: HTTPStatus, sentence: str) -> bytes:
    body = f"{sentence}\n".encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body
