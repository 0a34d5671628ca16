"""An HTTP proxy for one run's browser and scripts, which enforces the egress rules.

A browser resolves names and connects by itself, where no rule applies. Through this proxy, each
connection is made by the agent, on the run's route. A target that cannot be reached gets a response
with the reason, which is also kept for the result.

The proxy cannot stop a script from opening a socket without any proxy.
"""

import asyncio
import base64
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from contract.result import CheckFailed, FailureKind
from runners.scripting.proxy.egress_routes import EgressRoute, ProxyRequest
from runners.scripting.proxy.socket_owner import Admits

_PIECE_BYTES: Final = 64 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
RelayHead = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def relay(near: Streams, far: Streams, *, relay_head: RelayHead | None = None) -> int | None:
    """Relay both ways until the far end has sent its last; return how many bytes it sent.

    None: the near end left, and only closing the connection can tell the far end. `relay_head`
    relays the beginning of what the far end sends. None: it is relayed unchanged.

    Raises:
        OSError: the far end broke off; with TLS, an ssl.SSLError says why.
    """
    out = asyncio.create_task(_carry_outward(near[0], far[1]), name="carry-out")
    back = asyncio.create_task(_carry_inward(far[0], near[1], relay_head), name="carry-back")
    ends = (back,) if far[1].can_write_eof() else (back, out)
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return back.result() if back.done() else None
    finally:
        for one in (out, back):
            one.cancel()
        await asyncio.gather(out, back, return_exceptions=True)


async def _carry_inward(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, relay_head: RelayHead | None
) -> int:
    if relay_head is not None:
        await relay_head(source, sink)
    return await _carry(source, sink)


async def _carry_outward(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    # A near end that hangs up ends only this direction; the far end may send more.
    with suppress(OSError):
        await _carry(source, sink)


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> int:
    carried = 0
    while piece := await source.read(_PIECE_BYTES):
        carried += len(piece)
        sink.write(piece)
        await sink.drain()
    if sink.can_write_eof():  # TLS has no half-closed connections
        with suppress(OSError):
            sink.write_eof()
    return carried


def read_tls_reason(problem: OSError) -> str:
    """Read OpenSSL's reason for the end of a connection."""
    return (problem.reason if isinstance(problem, ssl.SSLError) else None) or str(problem)


_HOST: Final = "127.0.0.1"
_HEAD_LIMIT_BYTES: Final = 64 * 1024
_HEAD_TIMEOUT_S: Final = 30.0
_MOST_REMEMBERED: Final = 100
_HOP_HEADERS: Final = ("proxy-connection", "proxy-authorization", "connection", "keep-alive")
"""Hop-by-hop headers, which are for the proxy only."""

_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"

OWN_CERTIFICATES: Final = "own"
"""The user name of connections whose scripts present client certificates of their own."""
_BRINGS_OWN: Final = b": Basic " + base64.b64encode(f"{OWN_CERTIFICATES}:".encode()) + b"\r\n"

MOST_AT_ONCE: Final = 256
"""A browser opens at most 32 connections to a proxy; each needs two of the agent's descriptors."""
_BACKLOG: Final = 256
"""Connections come in bursts; a client that finds the backlog full retries after a second."""
_MOST_UNKNOWN: Final = 2 * _BACKLOG
"""The most connections whose owner is being looked up; more are dropped."""
_TOO_MANY: Final = (
    f"The run had {MOST_AT_ONCE} connections at once, and the agent makes no more for it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreachedTarget:
    """A target that a run could not reach."""

    host: str
    """The host; an IPv6 address has no brackets."""
    kind: FailureKind
    """The kind of the failure; EGRESS: the rules refuse the target."""
    why: str
    """The reason, as a sentence."""


class EgressProxy:
    """The proxy of one run, on a port of loopback."""

    def __init__(self, route: EgressRoute, *, admits: Admits) -> None:
        """`admits`: decides who may connect, as other runs use this machine as well."""
        self._route = route
        self._admits = admits
        self._server: asyncio.Server | None = None
        """None: the proxy is not open."""
        self._exchanges: set[asyncio.Task[None]] = set()
        self._unknown = 0
        """The number of connections whose owner is being looked up."""
        self._connections = 0
        """The number of the run's own connections."""
        self._was_too_many = False
        self._unreached: dict[UnreachedTarget, None] = {}

    @property
    def url(self) -> str:
        """The URL at which it listens."""
        if self._server is None:
            raise RuntimeError("the proxy is not open")
        return f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"

    @property
    def unreached(self) -> tuple[UnreachedTarget, ...]:
        """The targets that were not reached: each host and reason once, in order, 100 at most."""
        return tuple(self._unreached)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further sentences for the run's log."""
        return (_TOO_MANY,) if self._was_too_many else ()

    async def open(self) -> None:
        """Listen on loopback.

        Raises:
            OSError: there is no port or descriptor left.
        """
        self._server = await asyncio.start_server(
            self._accept, _HOST, 0, limit=_HEAD_LIMIT_BYTES, backlog=_BACKLOG
        )

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._unknown >= _MOST_UNKNOWN:
            writer.transport.abort()
            return
        self._unknown += 1
        exchange = asyncio.create_task(self._serve(reader, writer), name="egress-gate")
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        exchange.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A side that hangs up ends only its own exchange.
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            if not await self._is_own_connection(writer):
                writer.write(_build_response(HTTPStatus.FORBIDDEN, "This proxy is another run's."))
            elif self._connections >= MOST_AT_ONCE:
                self._was_too_many = True
                writer.write(_build_response(HTTPStatus.SERVICE_UNAVAILABLE, _TOO_MANY))
            else:
                await self._serve_own(reader, writer)

    async def _is_own_connection(self, writer: asyncio.StreamWriter) -> bool:
        try:
            ports = (writer.get_extra_info(end)[1] for end in ("peername", "sockname"))
            return await self._admits(*ports)
        finally:
            self._unknown -= 1

    async def _serve_own(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            await self._exchange(reader, writer)
        finally:
            self._connections -= 1

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _read_request(reader)
        if request is None:
            writer.write(
                _build_response(HTTPStatus.BAD_REQUEST, "This is a proxy for HTTP and CONNECT.")
            )
            return
        try:
            if self._route.reads_first_bytes(request):
                await self._route.require_allowed(request)
                writer.write(_ESTABLISHED)
                request = replace(request, first_bytes=await reader.read(_PIECE_BYTES))
                if not request.first_bytes:
                    return
            target = await _open_streams(await self._route.connect(request))
        except CheckFailed as failure:
            self._remember(request, failure)
            if not request.first_bytes:
                writer.write(_build_response(_choose_status(failure), str(failure)))
            return
        await self._relay(request, (reader, writer), target)

    async def _relay(self, request: ProxyRequest, browser: Streams, target: Streams) -> None:
        try:
            if not request.is_tunnel:
                target[1].write(self._route.build_request_head(request))
                await relay(browser, target, relay_head=_relay_response_head)
                return
            if request.first_bytes:
                target[1].write(request.first_bytes)
            else:
                browser[1].write(_ESTABLISHED)
            await relay(browser, target)
        finally:
            target[1].close()

    def _remember(self, request: ProxyRequest, failure: CheckFailed) -> None:
        if len(self._unreached) < _MOST_REMEMBERED:
            one = UnreachedTarget(host=request.host, kind=failure.failure.kind, why=str(failure))
            self._unreached[one] = None


async def _open_streams(sock: socket.socket) -> Streams:
    if sock.family == socket.AF_UNIX:
        return await asyncio.open_unix_connection(sock=sock)
    return await asyncio.open_connection(sock=sock)


async def _read_request(reader: asyncio.StreamReader) -> ProxyRequest | None:
    """Read the head of a request. None: it is no request for a proxy."""
    try:
        async with asyncio.timeout(_HEAD_TIMEOUT_S):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return None
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3 or "\n" in words[1]:
        return None
    try:
        return _parse_request(words[0], words[1], rest)
    except ValueError:
        return None


def _parse_request(method: str, target: str, headers: bytes) -> ProxyRequest | None:
    is_tunnel = method == "CONNECT"
    found = urlsplit(f"//{target}" if is_tunnel else target)
    host, port = found.hostname or "", found.port or (443 if is_tunnel else 80)
    if is_tunnel:
        brings_own = _BRINGS_OWN in headers
        return ProxyRequest(
            host=host, port=port, method=method, target=target, brings_own=brings_own
        )
    if found.scheme != "http" or not host:
        return None
    own = _drop_hop_headers(headers)
    return ProxyRequest(host=host, port=port, method=method, target=target, headers=own)


async def _relay_response_head(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Relay the head of a response, with `connection: close` added.

    Some servers ignore that header in a request, and a next request could be for another target.
    """
    status = b"1"
    while status == b"1":  # an informational response, which another one follows
        try:
            head = await source.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as problem:
            sink.write(problem.partial)
            return
        except asyncio.LimitOverrunError:
            return
        line, _, rest = head.partition(b"\r\n")
        status = line.partition(b" ")[2][:1]
        sink.write(line + b"\r\n" + (rest if status == b"1" else _drop_hop_headers(rest)))


def _drop_hop_headers(headers: bytes) -> bytes:
    """Drop hop-by-hop headers, and end the connection, so that each request is checked."""
    lines = [
        line
        for line in headers.split(b"\r\n")
        if line and line.partition(b":")[0].strip().lower().decode("latin-1") not in _HOP_HEADERS
    ]
    return b"\r\n".join([*lines, b"connection: close", b"", b""])


def _choose_status(failure: CheckFailed) -> HTTPStatus:
    is_refusal = failure.failure.kind is FailureKind.EGRESS
    return HTTPStatus.FORBIDDEN if is_refusal else HTTPStatus.BAD_GATEWAY


def _build_response(status: HTTPStatus, sentence: str) -> bytes:
    body = f"{sentence}\n".encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body
