"""A real DNS server on loopback, over UDP and TCP, that can misbehave in known ways."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from tests.servers.tcp import listening


class Habit(Enum):
    """How the server answers; each is something that servers do in the field."""

    ANSWERS = auto()
    LOSES_FIRST = auto()
    """Over UDP the first question gets lost."""
    SILENT = auto()
    """Takes the question and says nothing."""
    TRUNCATES = auto()
    """Over UDP it says that the answer does not fit."""
    TRUNCATES_IN_VAIN = auto()
    """Over UDP it says that the answer does not fit, and over TCP nothing."""
    SAYS_GARBAGE = auto()
    """Bytes that are no DNS message."""
    BREAKS_RECORDS = auto()
    """A good header, then records that end too early."""
    WRONG_ID = auto()
    WRONG_QUESTION = auto()
    WRONG_FIRST = auto()
    """One answer with a wrong id, then the right one."""
    DROPS_QUESTION = auto()
    """Errors without the question section, as some old servers send them."""
    FAILS_FAR_BELOW = auto()
    """SERVFAIL for names of four labels and more, as a broken search domain gives."""
    BREAKS_OFF = auto()
    """Over TCP it closes in the middle of the answer."""


_IN_VAIN: Final = (Habit.TRUNCATES_IN_VAIN, "TCP")

Zone = Mapping[tuple[str, str], Sequence[str]]
"""Zone-file data by name (with its final dot) and record type; a CNAME answers every type."""


@dataclass
class DnsServer:
    """Answers from a zone; other names do not exist."""

    zone: Zone = field(default_factory=dict)
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    """Anything but NOERROR is the answer to every question."""
    habit: Habit = Habit.ANSWERS
    delay_s: float = 0.0
    port: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, type and transport of each question, as they came."""

    def respond(self, query: bytes, transport: str) -> list[bytes]:
        """The packets to send back."""
        question = dns.message.from_wire(query)
        asked = question.question[0]
        kind = dns.rdatatype.to_text(asked.rdtype)
        self.asked.append((asked.name.to_text(), kind, transport))
        return self._misbehave(self._answer(question), transport)

    def _answer(self, question: dns.message.Message) -> dns.message.Message:
        answer = dns.message.make_response(question)
        answer.flags |= dns.flags.AA | dns.flags.RA
        answer.set_rcode(self.rcode)
        if self.rcode != dns.rcode.NOERROR:
            return answer
        asked = question.question[0]
        name, kind = asked.name.to_text(), dns.rdatatype.to_text(asked.rdtype)
        if not any(known.lower() == name.lower() for known, _ in self.zone):
            answer.set_rcode(dns.rcode.NXDOMAIN)
            return answer
        self._fill(answer, name.lower(), kind)
        return answer

    def _fill(self, answer: dns.message.Message, name: str, kind: str) -> None:
        for of in dict.fromkeys((kind, "CNAME")):
            values = self.zone.get((name, of))
            if values is None:
                continue
            answer.answer.append(dns.rrset.from_text_list(name, 60, "IN", of, values))
            if of == "CNAME" and kind != "CNAME":
                self._fill(answer, values[0], kind)
            return

    def _keeps_silent(self, transport: str) -> bool:
        is_first = len(self.asked) == 1
        return (
            self.habit is Habit.SILENT
            or (self.habit, transport) == _IN_VAIN
            or (self.habit is Habit.LOSES_FIRST and is_first)
        )

    def _misbehave(self, answer: dns.message.Message, transport: str) -> list[bytes]:
        if self._keeps_silent(transport):
            return []
        match self.habit:
            case Habit.TRUNCATES | Habit.TRUNCATES_IN_VAIN if transport == "UDP":
                answer.flags |= dns.flags.TC
                answer.answer.clear()
            case Habit.FAILS_FAR_BELOW if len(answer.question[0].name) > 4:
                answer.set_rcode(dns.rcode.SERVFAIL)
            case Habit.SAYS_GARBAGE:
                return [b"\x00"]
            case Habit.BREAKS_RECORDS:
                return [answer.to_wire()[:-3]]
            case Habit.WRONG_ID:
                return [_other_id(answer.to_wire())]
            case Habit.WRONG_FIRST:
                return [_other_id(answer.to_wire()), answer.to_wire()]
            case Habit.WRONG_QUESTION:
                answer.question[0].name = dns.name.from_text("elsewhere.test.")
            case Habit.DROPS_QUESTION:
                answer.question.clear()
            case _:
                pass
        return [answer.to_wire()]


def _other_id(wire: bytes) -> bytes:
    return bytes((wire[0] ^ 0xFF,)) + wire[1:]


class Udp(asyncio.DatagramProtocol):
    """The server's side of UDP."""

    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        asyncio.get_running_loop().call_later(self._server.delay_s, self._reply, data, addr)

    def _reply(self, data: bytes, addr: tuple[str, int]) -> None:
        for packet in self._server.respond(data, "UDP"):
            self._transport.sendto(packet, addr)  # type: ignore[attr-defined]  # asyncio's habit


@contextlib.asynccontextmanager
async def dns_server(
    zone: Zone | None = None,
    *,
    host: str = "127.0.0.1",
    refuses_tcp: bool = False,
    **habits: object,
) -> AsyncIterator[DnsServer]:
    """A running server; its port is the same for UDP and TCP."""
    server = DnsServer(zone=zone or {}, **habits)  # type: ignore[arg-type]  # a builder

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(2), "big")
        for packet in server.respond(await reader.readexactly(length), "TCP"):
            framed = len(packet).to_bytes(2, "big") + packet
            if server.habit is Habit.BREAKS_OFF:
                framed = framed[:-2]
            writer.write(framed)
            await writer.drain()
        if server.habit in {Habit.SILENT, Habit.TRUNCATES_IN_VAIN}:
            await reader.read()
        writer.close()
        await writer.wait_closed()

    tcp, udp = _both(host)
    server.port = udp.getsockname()[1]
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(tcp.close)
        transport, _ = await loop.create_datagram_endpoint(lambda: Udp(server), sock=udp)
        stack.callback(transport.close)
        if not refuses_tcp:
            await stack.enter_async_context(listening(serve, sock=tcp))
        yield server


def _both(host: str) -> tuple[socket.socket, socket.socket]:
    """A TCP and a UDP socket on the same free port; neither listens yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        tcp, udp = socket.socket(family), socket.socket(family, socket.SOCK_DGRAM)
        tcp.bind((host, 0))
        try:
            udp.bind((host, tcp.getsockname()[1]))
        except OSError:
            tcp.close()
            udp.close()
        else:
            return tcp, udp
