"""The demo target's name server: one small zone over UDP and TCP."""

import asyncio
import struct
from typing import Final, cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.zone

ZONE: Final = "shop.test."
_TEXT: Final = """
$TTL 60
@     SOA   ns hostmaster 1 3600 600 86400 60
@     NS    ns
@     A     127.0.0.1
@     MX    10 mail
@     TXT   "v=spf1 -all"
ns    A     127.0.0.1
mail  A     127.0.0.1
www   CNAME @
"""
_TCP_LIMIT_S: Final = 5.0


class DemoZone:
    """Answers questions about `shop.test`; everything else does not exist."""

    def __init__(self) -> None:
        self._zone = dns.zone.from_text(_TEXT, origin=ZONE, relativize=False)

    def answer(self, wire: bytes) -> bytes | None:
        """The answer to a question; None: it was none, and gets no answer."""
        try:
            query = dns.message.from_wire(wire)
        except (dns.exception.DNSException, ValueError):
            return None
        if len(query.question) != 1 or query.flags & dns.flags.QR:
            return None
        return self._filled(query).to_wire()

    def _filled(self, query: dns.message.Message) -> dns.message.Message:
        response = dns.message.make_response(query, recursion_available=True)
        response.flags |= dns.flags.AA
        question = query.question[0]
        if self._zone.get_node(question.name) is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
            return response
        name = question.name
        for rdtype in (dns.rdatatype.CNAME, question.rdtype):
            found = self._zone.get_rrset(name, rdtype)
            if found is not None and found not in response.answer:
                response.answer.append(found)
            if found is not None and rdtype == dns.rdatatype.CNAME:
                name = found[0].target
        return response


class DemoDatagrams(asyncio.DatagramProtocol):
    """The zone over UDP."""

    def __init__(self, zone: DemoZone) -> None:
        self._zone = zone
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        """Answer at once."""
        answer = self._zone.answer(data)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)


async def serve_stream(
    zone: DemoZone, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """The zone over one TCP connection: questions with their length in front, until it closes."""
    try:
        async with asyncio.timeout(_TCP_LIMIT_S):
            while True:
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                answer = zone.answer(await reader.readexactly(length))
                if answer is None:
                    return
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()
