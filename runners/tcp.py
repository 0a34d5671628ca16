"""TCP checks: does this port accept connections, and answer as it should?

The response time is the time of the TCP connect alone; name lookup, TLS and data stand in the
timings. An answer is read when data was sent or an assertion asks for RESPONSE_DATA, until one of
these: no further byte can change what the assertions say and the peer pauses; the peer closes;
our patience ends; or 64 KiB were read.
"""

import asyncio
import codecs
import select
import socket
import time
from collections.abc import Sequence
from typing import Final

from contract.assertions import Assertion, Comparison, Source
from contract.checks import TcpSpec
from contract.result import CheckFailed, Failure, LogLine, ReadingEnd, TcpEvidence, Timings
from contract.targets import ascii_host
from runners.net.sockets import connect, map_connect_errors, render, strip_brackets
from runners.net.tls.channel import TlsChannel
from runners.runner import Number, Observation, RunContext, Text, connection_facts
from runners.timing import in_ms, ms_since, probe_within
from runners.tools import resolve_allowed

LIMIT_BYTES: Final = 64 * 1024
"""How much of an answer is read."""
PATIENCE_S: Final = 5.0
"""How long an answer is read for an assertion: the largest threshold of a TCP check."""
UNASKED_PATIENCE_S: Final = 1.0
"""How long data without an assertion on the answer waits for one."""
RESERVE_S: Final = 0.2
"""How long before the run's time limit an answer that has begun is read no further."""
PAUSE_S: Final = 0.1
"""An answer that is decided has ended after this long without a byte, or after three connect times
if longer."""
PAUSE_CONNECT_TIMES: Final = 3
MAX_PAUSE_S: Final = 1.0


class TcpRunner:
    """Connects to TCP ports."""

    spec = TcpSpec

    async def observe(self, spec: TcpSpec, ctx: RunContext) -> Observation:
        """Resolve, connect and, when the check says so, do TLS, send and read."""
        if spec.request.tls:
            await ctx.network.tls.load()
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


class _Answer:
    """What the peer has sent so far, as text."""

    def __init__(self) -> None:
        self.text = ""
        self._room = LIMIT_BYTES
        # A character that is cut in two is left out: the next byte would change a replacement, and
        # at the limit one would keep the scrubber from knowing the beginning of a secret.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_full(self) -> bool:
        """Whether as much was read as is kept."""
        return self._room == 0

    def is_settled(self, assertions: Sequence[Assertion]) -> bool:
        """Whether it has begun, and nothing more can change what the assertions say of it."""
        return self.text != "" and all(is_decided(one, self.text) for one in assertions)

    def add(self, piece: bytes) -> None:
        """Add what came next, as far as there is room."""
        kept = piece[: self._room]
        self._room -= len(kept)
        self.text += self._decoder.decode(kept)

    def end(self) -> None:
        """Show a character that is incomplete because nothing more came."""
        if not self.is_full:
            self.text += self._decoder.decode(b"", final=True)


class _Probe:
    """One run of a TCP check."""

    def __init__(self, spec: TcpSpec, ctx: RunContext) -> None:
        self._request = spec.request
        self._host = strip_brackets(spec.request.hostname)
        self._ctx = ctx
        self._assertions = [one for one in spec.assertions if one.source is Source.RESPONSE_DATA]
        self._awaited = ""
        """What the current step waits for; host and peer are filled in only when it is shown."""
        self._started = time.perf_counter()
        self._addresses: tuple[str, ...] = ()
        self._address: str | None = None
        self._sock: socket.socket | None = None
        self._tls: TlsChannel | None = None
        self._took_ms: dict[str, float] = {}
        self._answer: _Answer | None = None
        self._idle_ms = 0.0
        """How long the run waited after the last byte, which is not part of the peer's time."""
        self._reading_ended: ReadingEnd | None = None
        """Why reading ended. None: it has not, or nothing was to be read."""
        self._patience_s = PATIENCE_S if self._assertions else UNASKED_PATIENCE_S
        self._log: list[LogLine] = []

    async def run(self) -> None:
        """Take the steps that the check asks for."""
        await self._resolve()
        sock = await self._connect()
        channel: _Channel = _PlainChannel(sock, self._peer)
        if self._request.tls:
            channel, sock = await self._start_tls(sock)
        if self._request.data is not None or self._assertions:
            await self._exchange(channel, sock)
        elif self._tls is not None and self._tls.may_be_refused:
            await self._await_acceptance(self._tls, sock)

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
        channel = self._make_channel(sock)
        try:
            await self._handshake(channel)
        except CheckFailed:
            if channel.verify_error is None or not self._request.skip_ssl:
                raise
        else:
            return channel, sock
        sock.close()
        sock = await self._connect_to(self._peer[0])
        unverified = self._make_channel(sock, ignored_error=channel.verify_error)
        await self._handshake(unverified)
        return unverified, sock

    def _make_channel(self, sock: socket.socket, *, ignored_error: str | None = None) -> TlsChannel:
        return TlsChannel(
            sock,
            self._ctx.network.tls,
            hostname=ascii_host(self._host).rstrip("."),
            peer=self._peer,
            ignored_error=ignored_error,
        )

    async def _handshake(self, channel: TlsChannel) -> None:
        self._tls = channel
        self._awaited = "the TLS handshake with {peer}"
        began = time.perf_counter()
        try:
            await channel.handshake()
        finally:  # one that fails takes its time too
            self._took_ms["tls"] = ms_since(began)

    async def _exchange(self, channel: _Channel, sock: socket.socket) -> None:
        began = time.perf_counter()
        if self._request.data is not None:
            self._awaited = "{peer} to take the data"
            await channel.send(self._request.data.encode())
        self._awaited = "{peer} to answer"
        self._answer = _Answer()
        ends_at = time.perf_counter() + self._patience_s
        last_byte = began
        while self._reading_ended is None:
            is_settled = self._answer.is_settled(self._assertions)
            if self._answer.text:  # a peer that says nothing may as well use up the run's time
                ends_at = min(ends_at, self._started + self._ctx.timeout_s - RESERVE_S)
            wait_s = max(ends_at - time.perf_counter(), 0)
            if is_settled:
                wait_s = min(wait_s, self._pause_s())
            piece = await _receive(channel, sock, wait_s)
            if piece:
                last_byte = time.perf_counter()
                self._answer.add(piece)
            if piece == b"":
                self._reading_ended = "closed"
            elif self._answer.is_full:
                self._reading_ended = "limit"
            elif piece is None or last_byte >= ends_at:
                is_settled = self._answer.is_settled(self._assertions)
                self._reading_ended = "decided" if is_settled else "patience"
        self._answer.end()
        if self._assertions and not self._answer.text:
            last_byte = time.perf_counter()  # it was the peer's time, and it did not use it
        self._took_ms["data"] = in_ms(last_byte - began)
        self._idle_ms = ms_since(last_byte)

    def _pause_s(self) -> float:
        # Pieces of one answer come within a round trip of each other, and a connect is one.
        return min(max(PAUSE_S, PAUSE_CONNECT_TIMES * self._took_ms["tcp"] / 1000), MAX_PAUSE_S)

    async def _await_acceptance(self, channel: TlsChannel, sock: socket.socket) -> None:
        """Wait for the server's refusal of a client without a certificate."""
        self._awaited = "{peer} to go on without a client certificate"
        began = time.perf_counter()
        await _receive(channel, sock, min(self._patience_s, self._left_s() - RESERVE_S))
        self._idle_ms = ms_since(began)

    def build_observation(self, failure: Failure | None) -> Observation:
        """What was observed, complete or not."""
        connect_ms = self._took_ms.get("tcp")
        tls = None if self._tls is None else self._tls.facts()
        facts = connection_facts(tls, self._address)
        if connect_ms is not None:
            facts[Source.RESPONSE_TIME] = Number(connect_ms)
        if self._answer is not None:
            text = self._answer.text
            read_bytes = LIMIT_BYTES if self._answer.is_full else None
            silence = None if text else self._explain_silence()
            facts[Source.RESPONSE_DATA] = Text(text, silence, read_bytes)
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

    def _explain_silence(self) -> str:
        if self._reading_ended == "closed":
            return "the connection was closed without a byte"
        return f"nothing came within {self._patience_s:g} s"

    def _evidence(self) -> TcpEvidence:
        return TcpEvidence(
            hostname=self._host,
            port=self._request.port,
            remote_address=self._address,
            response=None if self._answer is None else self._answer.text,
            truncated=self._answer is not None and self._answer.is_full,
            reading_ended=self._reading_ended,
            tls=None if self._tls is None else self._tls.facts(),
        )

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


def is_decided(assertion: Assertion, text: str) -> bool:
    """Whether no text that begins like this changes the assertion's result.

    With a regular expression one may: its first match in a longer text may be another one.
    """
    if assertion.property:
        return False
    match assertion.comparison:
        case Comparison.CONTAINS | Comparison.NOT_CONTAINS:
            return assertion.target in text
        case Comparison.EQUALS | Comparison.NOT_EQUALS:
            return not assertion.target.startswith(text)
        case Comparison.IS_EMPTY | Comparison.NOT_EMPTY:
            return text != ""
        case Comparison.GREATER_THAN | Comparison.LESS_THAN:
            return False
        case _:  # a text is never null, and has neither keys nor values
            return True
