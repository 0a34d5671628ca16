"""TCP checks: does this port accept connections, and answer as it should?

The response time is the time of the TCP connect alone; name lookup, TLS and data stand in the
timings. An answer is read when data was sent or an assertion asks for RESPONSE_DATA.
"""

import asyncio
import codecs
import select
import socket
import time
from typing import Final

from contract.assertions import Source
from contract.checks import TcpSpec
from contract.result import CheckFailed, Failure, LogLine, TcpEvidence, Timings
from runners.net.sockets import connect, map_connect_errors, render, strip_brackets
from runners.net.tls.channel import TlsChannel
from runners.runner import Number, Observation, RunContext, Text, connection_facts
from runners.timing import in_ms, ms_since, probe_within
from runners.tools import resolve_allowed

LIMIT_BYTES: Final = 64 * 1024
"""How much of an answer is read."""
FIRST_BYTE_S: Final = 5.0
"""How long an assertion waits for the first byte: the largest threshold of a TCP check."""
UNASKED_FIRST_BYTE_S: Final = 1.0
"""How long data without an assertion on the answer waits for one."""
QUIET_S: Final = 0.1
"""An answer has ended after this long without a byte, or after three connect times if longer."""
QUIET_CONNECT_TIMES: Final = 3
MAX_QUIET_S: Final = 1.0


class TcpRunner:
    """Connects to TCP ports."""

    spec = TcpSpec

    async def observe(self, spec: TcpSpec, ctx: RunContext) -> Observation:
        """Resolve, connect and, when the check says so, do TLS, send and read."""
        probe = _Probe(spec, ctx)
        try:
            failure = await probe_within(probe, ctx)
        finally:
            probe.close()
        return probe.build_observation(failure)


class _PlainChannel:
    """Sends and receives bytes on the socket itself, without TLS."""

    def __init__(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        self._sock = sock
        self._peer = peer

    async def send(self, payload: bytes) -> None:
        with map_connect_errors(*self._peer, syscall="write"):
            await asyncio.get_running_loop().sock_sendall(self._sock, payload)

    async def receive(self) -> bytes:
        with map_connect_errors(*self._peer, syscall="read"):
            return await asyncio.get_running_loop().sock_recv(self._sock, LIMIT_BYTES)


_Channel = _PlainChannel | TlsChannel


class _Probe:
    """One run of a TCP check."""

    def __init__(self, spec: TcpSpec, ctx: RunContext) -> None:
        self._request = spec.request
        self._host = strip_brackets(spec.request.hostname)
        self._ctx = ctx
        self._reads = any(one.source is Source.RESPONSE_DATA for one in spec.assertions)
        self._awaited = ""
        """What the current step waits for; host and peer are filled in only when it is shown."""
        self._started = time.perf_counter()
        self._addresses: tuple[str, ...] = ()
        self._address: str | None = None
        self._sock: socket.socket | None = None
        self._tls: TlsChannel | None = None
        self._took_ms: dict[str, float] = {}
        self._answer: bytes | None = None
        self._idle_ms = 0.0
        """How long the run waited after the last byte, which is not part of the peer's time."""
        self._silent_because: str | None = None
        """Why reading ended, as the end of a sentence on an empty answer. None: it has not."""
        self._log: list[LogLine] = []

    async def run(self) -> None:
        """Take the steps that the check asks for."""
        await self._resolve()
        sock = await self._connect()
        channel: _Channel = _PlainChannel(sock, self._peer)
        if self._request.tls:
            channel, sock = await self._start_tls(sock)
        if self._request.data is not None or self._reads:
            await self._exchange(channel, sock)

    async def _resolve(self) -> None:
        self._awaited = "the address of {host}"
        began = time.perf_counter()
        self._addresses = await resolve_allowed(
            self._host, self._request.ip_family, self._ctx.network
        )
        self._took_ms["dns"] = ms_since(began)

    async def _connect(self) -> socket.socket:
        """Connect to the first address that accepts.

        Raises:
            CheckFailed: none does; the failure is that of the last one.
        """
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

    async def _start_tls(self, sock: socket.socket) -> tuple[TlsChannel, socket.socket]:
        """Do the handshake; return the channel and the socket that it is on.

        With skipSSL the certificate is verified all the same, so that the evidence can show what
        is wrong with it; only one that is not accepted costs a second connection.
        """
        channel = self._make_channel(sock, verify=True)
        try:
            await self._handshake(channel)
        except CheckFailed:
            if channel.verify_error is None or not self._request.skip_ssl:
                raise
        else:
            return channel, sock
        sock.close()
        sock = await self._connect_to(self._peer[0])
        unverified = self._make_channel(sock, verify=False, ignored_error=channel.verify_error)
        await self._handshake(unverified)
        return unverified, sock

    def _make_channel(
        self, sock: socket.socket, *, verify: bool, ignored_error: str | None = None
    ) -> TlsChannel:
        return TlsChannel(
            sock,
            self._ctx.network.tls.context(verify=verify),
            hostname=self._host.rstrip("."),
            peer=self._peer,
            ignored_error=ignored_error,
        )

    async def _handshake(self, channel: TlsChannel) -> None:
        self._tls = channel
        self._awaited = "the TLS handshake with {peer}"
        began = time.perf_counter()
        await channel.handshake()
        self._took_ms["tls"] = ms_since(began)

    async def _exchange(self, channel: _Channel, sock: socket.socket) -> None:
        began = time.perf_counter()
        if self._request.data is not None:
            self._awaited = "{peer} to take the data"
            await channel.send(self._request.data.encode())
        self._awaited = "{peer} to answer"
        self._answer = b""
        patience_s = FIRST_BYTE_S if self._reads else UNASKED_FIRST_BYTE_S
        last_byte = began
        while len(self._answer) < LIMIT_BYTES:
            piece = await _receive(channel, sock, patience_s)
            if not piece:
                self._silent_because = _explain_silence(piece, patience_s)
                break
            last_byte = time.perf_counter()
            self._answer += piece
            patience_s = self._quiet_s()
        self._took_ms["data"] = in_ms(last_byte - began)
        self._idle_ms = ms_since(last_byte)

    def _quiet_s(self) -> float:
        # Pieces of one answer come within a round trip of each other, and a connect is one.
        return min(max(QUIET_S, QUIET_CONNECT_TIMES * self._took_ms["tcp"] / 1000), MAX_QUIET_S)

    def build_observation(self, failure: Failure | None) -> Observation:
        """What was observed, complete or not."""
        connect_ms = self._took_ms.get("tcp")
        tls = None if self._tls is None else self._tls.facts()
        facts = connection_facts(tls, self._address)
        if connect_ms is not None:
            facts[Source.RESPONSE_TIME] = Number(connect_ms)
        if self._answer is not None:
            facts[Source.RESPONSE_DATA] = self._response_data()
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

    def _response_data(self) -> Text:
        answer = self._answer or b""
        read_bytes = LIMIT_BYTES if len(answer) >= LIMIT_BYTES else None
        return Text(self._text, None if answer else self._silent_because, read_bytes)

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
        """What the current step waits for, as the end of `Waited 30 s for …`."""
        return self._awaited.format(host=self._host, peer=render(*self._peer))

    def _left_s(self) -> float:
        return max(self._ctx.timeout_s - (time.perf_counter() - self._started), 0)

    def _note(self, message: str) -> None:
        line = LogLine(after_ms=ms_since(self._started), level="WARN", message=message)
        self._log.append(line)

    def close(self) -> None:
        """Close the connection."""
        if self._sock is None:
            return
        if self._tls is not None:
            self._tls.send_close()
        self._sock.close()


async def _receive(channel: _Channel, sock: socket.socket, patience_s: float) -> bytes | None:
    """Receive the peer's next bytes; empty when it has closed. None: no byte came in time."""
    # Not asyncio.timeout: when the loop stood still for longer, bytes that came in time are there
    # together with the end of patience, and its cancellation would lose them.
    receiving = asyncio.create_task(channel.receive(), name="receive")
    try:
        await asyncio.wait((receiving,), timeout=patience_s)
        if not receiving.done() and _has_bytes(sock):
            await asyncio.wait((receiving,), timeout=patience_s)
        return receiving.result() if receiving.done() else None
    finally:
        if receiving.cancel():
            await asyncio.wait((receiving,))


def _has_bytes(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _explain_silence(last: bytes | None, patience_s: float) -> str:
    if last is None:
        return f"nothing came within {patience_s:g} s"
    return "the connection was closed without a byte"
