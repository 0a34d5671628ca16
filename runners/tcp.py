"""TCP checks: does this port accept connections, and answer as it should?

The response time is the time of the TCP connect alone; name lookup, TLS and data stand in the
timings. An answer is read when data was sent or an assertion asks for RESPONSE_DATA.
"""

import asyncio
import codecs
import select
import socket
import time
from typing import Final, Protocol

from contract.assertions import Source
from contract.checks import TcpSpec
from contract.result import CheckFailed, Failure, LogLine, TcpEvidence, Timings
from runners.net.sockets import connect, map_connect_errors, render, without_brackets
from runners.net.tls.channel import TlsChannel
from runners.runner import Fact, Number, Observation, RunContext, Text
from runners.timing import in_ms, ms_since, probe_within
from runners.tools import resolve_allowed

LIMIT_BYTES: Final = 64 * 1024
"""Reading ends here."""
FIRST_BYTE_S: Final = 5.0
"""How long an assertion waits for the first byte: the largest threshold of a TCP check."""
UNASKED_FIRST_BYTE_S: Final = 1.0
"""How long data without an assertion on the answer waits for one."""
QUIET_S: Final = 0.1
"""An answer has ended when nothing came for so long, or for three connect times."""
QUIET_CONNECT_TIMES: Final = 3
MAX_QUIET_S: Final = 1.0


class TcpRunner:
    """Looks at TCP ports."""

    spec = TcpSpec

    async def observe(self, spec: TcpSpec, ctx: RunContext) -> Observation:
        """Resolve, connect and, when the check says so, do TLS, send and read."""
        look = _Probe(spec, ctx)
        try:
            failure = await probe_within(look, ctx)
        finally:
            look.close()
        return look.observation(failure)


class _Line(Protocol):
    """What bytes are exchanged over: the socket itself, or TLS on it."""

    async def send(self, payload: bytes) -> None: ...

    async def receive(self) -> bytes: ...


class _PlainLine:
    """Bytes as they are."""

    def __init__(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        self._sock = sock
        self._peer = peer

    async def send(self, payload: bytes) -> None:
        with map_connect_errors(*self._peer, syscall="write"):
            await asyncio.get_running_loop().sock_sendall(self._sock, payload)

    async def receive(self) -> bytes:
        with map_connect_errors(*self._peer, syscall="read"):
            return await asyncio.get_running_loop().sock_recv(self._sock, LIMIT_BYTES)


class _Probe:
    """One look at a port."""

    def __init__(self, spec: TcpSpec, ctx: RunContext) -> None:
        self._request = spec.request
        self._host = without_brackets(spec.request.hostname)
        self._ctx = ctx
        self._reads = any(one.source is Source.RESPONSE_DATA for one in spec.assertions)
        self._awaited = ""
        """What the present step waits for, with places for names: made only when it is told."""
        self._started = time.perf_counter()
        self._addresses: tuple[str, ...] = ()
        self._address: str | None = None
        self._sock: socket.socket | None = None
        self._tls: TlsChannel | None = None
        self._took_ms: dict[str, float] = {}
        self._answer: bytes | None = None
        self._idle_ms = 0.0
        """How long more was waited for after the last byte: our patience, no time of the peer's."""
        self._nothing_because: str | None = None
        """Why reading ended, as the end of a sentence on an empty answer. None: it has not."""
        self._log: list[LogLine] = []

    async def go(self) -> None:
        """Take the steps that the check asks for."""
        await self._resolve()
        sock = await self._connect()
        line: _Line = _PlainLine(sock, self._peer)
        if self._request.tls:
            line, sock = await self._shake_hands(sock)
        if self._request.data is not None or self._reads:
            await self._exchange(line, sock)

    async def _resolve(self) -> None:
        self._awaited = "the address of {host}"
        began = time.perf_counter()
        self._addresses = await resolve_allowed(
            self._host, self._request.ip_family, self._ctx.network
        )
        self._took_ms["dns"] = ms_since(began)

    async def _connect(self) -> socket.socket:
        """Try the addresses in order; the last one's failure speaks for all."""
        *spare, last = self._addresses
        for position, address in enumerate(spare):
            share_s = self._left_s() / (len(self._addresses) - position)
            try:
                async with asyncio.timeout(share_s):
                    return await self._connect_to(address)
            except CheckFailed as failed:
                self._note(f"{failed.failure.message} Trying the next address.")
            except TimeoutError:
                self._note(
                    f"{render(address, self._request.port)} did not answer; trying the next."
                )
        return await self._connect_to(last)

    async def _connect_to(self, address: str) -> socket.socket:
        self._address = address
        self._awaited = "{peer} to accept the connection"
        began = time.perf_counter()
        request, readiness = self._request, self._ctx.network.readiness
        self._sock = await connect(
            address, request.port, request.ip_family, wait=readiness.writable
        )
        self._took_ms["tcp"] = ms_since(began)
        return self._sock

    async def _shake_hands(self, sock: socket.socket) -> tuple[TlsChannel, socket.socket]:
        """TLS, and the socket that it is on.

        With skipSSL the certificate is verified all the same, so that the evidence can tell what
        is wrong with it; only one that is not accepted costs a second connection.
        """
        channel = self._channel(sock, verify=True)
        try:
            await self._agree(channel)
        except CheckFailed:
            if channel.verify_error is None or not self._request.skip_ssl:
                raise
        else:
            return channel, sock
        sock.close()
        sock = await self._connect_to(self._peer[0])
        tolerant = self._channel(sock, verify=False, accepted_in_spite_of=channel.verify_error)
        await self._agree(tolerant)
        return tolerant, sock

    def _channel(
        self, sock: socket.socket, *, verify: bool, accepted_in_spite_of: str | None = None
    ) -> TlsChannel:
        return TlsChannel(
            sock,
            self._ctx.network.tls.of(verify=verify),
            hostname=self._host.rstrip("."),
            peer=self._peer,
            accepted_in_spite_of=accepted_in_spite_of,
        )

    async def _agree(self, channel: TlsChannel) -> None:
        self._tls = channel
        self._awaited = "the TLS handshake with {peer}"
        began = time.perf_counter()
        await channel.handshake()
        self._took_ms["tls"] = ms_since(began)

    async def _exchange(self, line: _Line, sock: socket.socket) -> None:
        began = time.perf_counter()
        if self._request.data is not None:
            self._awaited = "{peer} to take the data"
            await line.send(self._request.data.encode())
        self._awaited = "{peer} to answer"
        self._answer = b""
        patience_s = FIRST_BYTE_S if self._reads else UNASKED_FIRST_BYTE_S
        last_byte = began
        while len(self._answer) < LIMIT_BYTES:
            piece = await _next(line, sock, patience_s)
            if not piece:
                self._nothing_because = _why_nothing(piece, patience_s)
                break
            last_byte = time.perf_counter()
            self._answer += piece
            patience_s = self._quiet_s()
        self._took_ms["data"] = in_ms(last_byte - began)
        self._idle_ms = ms_since(last_byte)

    def _quiet_s(self) -> float:
        # Pieces of one answer come within a round trip of each other, and a connect is one.
        return min(max(QUIET_S, QUIET_CONNECT_TIMES * self._took_ms["tcp"] / 1000), MAX_QUIET_S)

    def observation(self, failure: Failure | None) -> Observation:
        """What was seen, complete or not."""
        connect_ms = self._took_ms.get("tcp")
        facts: dict[Source, Fact] = {}
        if connect_ms is not None:
            facts[Source.RESPONSE_TIME] = Number(connect_ms)
        if self._answer is not None:
            facts[Source.RESPONSE_DATA] = self._said()
        return Observation(
            response_time_ms=connect_ms,
            timings=Timings(**self._took_ms, total=self._total_ms()),
            facts=facts,
            failure=failure,
            evidence=self._evidence(),
            log=tuple(self._log),
        )

    def _total_ms(self) -> float:
        return round(ms_since(self._started) - self._idle_ms, 3)

    def _said(self) -> Text:
        return Text(self._text, None if self._answer else self._nothing_because)

    def _evidence(self) -> TcpEvidence:
        return TcpEvidence(
            hostname=self._host,
            port=self._request.port,
            remote_address=self._address,
            response=None if self._answer is None else self._text,
            truncated=self._answer is not None and len(self._answer) >= LIMIT_BYTES,
            tls=None if self._tls is None else self._tls.facts(),
        )

    @property
    def _text(self) -> str:
        answer = self._answer or b""
        # A character that the limit cut in two is left out: a replacement in its place would keep
        # the scrubber from knowing the beginning of a secret.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(answer[:LIMIT_BYTES], final=len(answer) < LIMIT_BYTES)

    @property
    def _peer(self) -> tuple[str, int]:
        return self._address or self._host, self._request.port

    @property
    def waiting_for(self) -> str:
        """What the present step waits for, as the end of `waited 30 s for …`."""
        return self._awaited.format(host=self._host, peer=render(*self._peer))

    def _left_s(self) -> float:
        return max(self._ctx.timeout_s - (time.perf_counter() - self._started), 0)

    def _note(self, message: str) -> None:
        line = LogLine(after_ms=ms_since(self._started), level="WARN", message=message)
        self._log.append(line)

    def close(self) -> None:
        """Leave nothing open."""
        if self._sock is None:
            return
        if self._tls is not None:
            self._tls.farewell()
        self._sock.close()


async def _next(line: _Line, sock: socket.socket, patience_s: float) -> bytes | None:
    """What the peer says next; empty when it has closed. None: nothing came for so long."""
    # Not asyncio.timeout: when the loop stood still for longer, bytes that came in time are there
    # together with the end of patience, and its cancellation would lose them.
    receiving = asyncio.create_task(line.receive(), name="receive")
    try:
        await asyncio.wait((receiving,), timeout=patience_s)
        if not receiving.done() and _has_bytes(sock):
            await asyncio.wait((receiving,), timeout=patience_s)
        return receiving.result() if receiving.done() else None
    finally:
        if receiving.cancel():
            await asyncio.wait((receiving,))


def _has_bytes(sock: socket.socket) -> bool:
    waiting = select.poll()
    waiting.register(sock, select.POLLIN)
    return bool(waiting.poll(0))


def _why_nothing(last: bytes | None, patience_s: float) -> str:
    if last is None:
        return f"nothing came within {patience_s:g} s"
    return "the connection was closed without a byte"
