"""One question to one DNS server, over UDP with a fall-back to TCP."""

import asyncio
import socket
import time
from contextlib import AbstractContextManager
from typing import Final

import msgspec

from contract.requests import DnsProtocol
from contract.result import CheckFailed, FailureKind
from runners.net.dns.messages import (
    DnsMessage,
    MalformedMessageError,
    Question,
    is_answer,
    is_truncated,
    read_message,
)
from runners.net.dns.name_servers import NameServer
from runners.net.sockets import (
    SOCKET_FAMILY,
    connect,
    literal_family,
    map_connect_errors,
    readable,
    socket_address,
)

MAX_BYTES: Final = 65535
ASK_AGAIN_S: Final = 0.4
"""After how long without an answer over UDP the question is sent again, because a packet may be
lost; each further wait is twice as long. At 0.4 s a check's default limit of 1 s still holds."""


_LENGTH_BYTES: Final = 2
"""Over TCP, a message stands behind its length."""
_ID_BYTES: Final = 2
"""A message begins with the id of its question."""
_SHOWN_BYTES: Final = 100
"""How much a sentence shows of what is no DNS."""


class DnsAnswer(msgspec.Struct, frozen=True):
    """A server's answer to a question."""

    message: DnsMessage
    server: NameServer
    protocol: DnsProtocol
    queries: int = 1
    """How often the question was sent until an answer came."""


async def ask(
    question: Question,
    server: NameServer,
    *,
    protocol: DnsProtocol = DnsProtocol.UDP,
    timeout_s: float,
) -> DnsAnswer:
    """Ask one server one question; over UDP again while no answer comes.

    Raises:
        CheckFailed: TIMEOUT, CONNECT or PROTOCOL, naming the server.
    """
    exchange = _Exchange(question.query(), server)
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            return await exchange.answer(protocol)
    except CheckFailed as failed:
        raise exchange.mention_truncation(failed) from failed
    except TimeoutError as problem:
        if not limit.expired():
            raise
        raise exchange.mention_truncation(exchange.timeout_error(timeout_s)) from problem


class _Exchange:
    """A question on its way to a server and back."""

    def __init__(self, query: bytes, server: NameServer) -> None:
        self._query = query
        self._server = server
        self._target = socket_address(server.address, server.port)
        family = literal_family(server.address)
        if family is None:
            raise ValueError(f"{server.address} is not an address")
        self._family = family
        self._queries = 0
        """How often the question was sent over UDP."""
        self._packets = 0
        """How many packets the server sent that do not answer the question."""
        self._begun = b""
        """What came over TCP of a message that is not complete, its length included."""
        self._truncated = False
        """Whether the answer did not fit over UDP, so that the question was sent over TCP."""

    async def answer(self, protocol: DnsProtocol) -> DnsAnswer:
        if protocol is DnsProtocol.UDP:
            packet = await self._over_udp()
            if not is_truncated(packet):
                return self._read(packet, protocol)
            self._truncated, self._packets = True, 0
        return self._read(await self._over_tcp(), DnsProtocol.TCP)

    async def _over_udp(self) -> bytes:
        # A new socket for each question: a random port to guess beside the random id, and a
        # connected one lets the kernel drop other senders and report a closed port.
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        with socket.socket(SOCKET_FAMILY[self._family], kind) as sock:
            with self._map_errors("connect"):
                sock.connect(self._target)
            wait_s, ask_at = ASK_AGAIN_S, 0.0
            while True:
                if (now := time.monotonic()) >= ask_at:
                    self._send(sock)
                    wait_s, ask_at = 2 * wait_s, now + wait_s
                await readable(sock, at_most_s=ask_at - now)
                packet = self._receive(sock)
                if packet is not None and is_answer(packet, self._query):
                    return packet

    def _send(self, sock: socket.socket) -> None:
        with self._map_errors("connect"):
            sock.send(self._query)
        self._queries += 1

    def _receive(self, sock: socket.socket) -> bytes | None:
        try:
            with self._map_errors("read"):
                packet = sock.recv(MAX_BYTES)
        except BlockingIOError:
            return None  # none came in time, or the kernel dropped it for its checksum
        self._packets += 1
        return packet

    async def _over_tcp(self) -> bytes:
        loop = asyncio.get_running_loop()
        with await connect(self._server.address, self._server.port, self._family) as sock:
            with self._map_errors("write"):
                await loop.sock_sendall(sock, len(self._query).to_bytes(2, "big") + self._query)
            while True:
                self._begun = b""
                length = int.from_bytes(await self._read_exactly(sock, 2), "big")
                packet = await self._read_exactly(sock, length)
                self._packets += 1
                if is_answer(packet, self._query):
                    return packet

    async def _read_exactly(self, sock: socket.socket, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        packet = b""
        while len(packet) < length:
            with self._map_errors("read"):
                piece = await loop.sock_recv(sock, length - len(packet))
            if not piece:
                how = "closed the connection before its answer was complete"
                raise self._protocol_error(self._describe_other_bytes() or how)
            packet += piece
            self._begun += piece
        return packet

    def _read(self, packet: bytes, protocol: DnsProtocol) -> DnsAnswer:
        try:
            message = read_message(packet)
        except MalformedMessageError as problem:
            raise self._protocol_error(
                f"answered with a malformed message ({problem})"
            ) from problem
        return DnsAnswer(message, self._server, protocol, max(self._queries, 1))

    def _map_errors(self, syscall: str) -> AbstractContextManager[None]:
        return map_connect_errors(self._server.address, self._server.port, syscall=syscall)

    def _protocol_error(self, what: str) -> CheckFailed:
        return CheckFailed(
            FailureKind.PROTOCOL,
            f"The name server {self._server} {what}.",
            self._detail("EBADRESP"),
        )

    def timeout_error(self, timeout_s: float) -> CheckFailed:
        """Make the error for a server that did not answer in time."""
        if self._packets:
            sent = (
                "a packet that does not answer the question"
                if self._packets == 1
                else f"{self._packets} packets, none of which answers the question,"
            )
            return self._protocol_error(f"sent {sent} within {timeout_s:g} s")
        if (other := self._describe_other_bytes()) is not None:
            return self._protocol_error(other)
        how = self._describe_silence()
        asked = f" (asked {self._queries} times)" if self._queries > 1 else ""
        return CheckFailed(
            FailureKind.TIMEOUT,
            f"The name server {self._server} {how} within {timeout_s:g} s{asked}.",
            self._detail("ETIMEOUT"),
        )

    def _describe_silence(self) -> str:
        if not self._begun:
            return "did not answer"
        length = int.from_bytes(self._begun[:_LENGTH_BYTES], "big")
        received = max(0, len(self._begun) - _LENGTH_BYTES)
        return f"sent only {received} of the {length} bytes of its answer"

    def _describe_other_bytes(self) -> str | None:
        """What it sent over TCP instead of a DNS message. None: nothing that we know is none."""
        sent_id = self._begun[_LENGTH_BYTES:][:_ID_BYTES]
        if not sent_id or self._query.startswith(sent_id):
            return None
        shown = ascii(self._begun[:_SHOWN_BYTES].decode("utf-8", "replace"))
        return f"sent bytes over TCP that are no answer of DNS; they begin with {shown}"

    def mention_truncation(self, failed: CheckFailed) -> CheckFailed:
        """Add to the failure that the answer over UDP was truncated, if it was."""
        if not self._truncated:
            return failed
        failure = failed.failure
        what = failure.message.replace("The name server", "the name server", 1)
        message = f"The answer over UDP was truncated, and over TCP {what}"
        return CheckFailed(failure.kind, message, failure.detail)

    def _detail(self, code: str) -> dict[str, str | int | float | None]:
        return {"code": code, "address": self._server.address, "port": self._server.port}
