"""Small servers on loopback that the boot check looks at: a page, an echo, a name server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

HOST: Final = "127.0.0.1"
NAME: Final = "boot.picket.test."
_HEAD_LIMIT: Final = 8_192
_ECHO_LIMIT: Final = 1_024
_READ_LIMIT_S: Final = 5.0
PAGE: Final = '{"ok":true}'
"""What the page holds."""
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(PAGE), PAGE.encode())
)

_DNS_HEAD_BYTES: Final = 12
_ANSWER_HEAD: Final = bytes.fromhex("8580 0001 0001 0000 0000")
"""An authoritative NOERROR with one question and one answer."""
_ANSWER_RECORD: Final = bytes.fromhex("c00c 0001 0001 0000003c 0004 7f000001")
"""The question's name: A, IN, 60 s, 127.0.0.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the servers listen."""

    host: str = HOST
    http_port: int
    echo_port: int
    dns_port: int
    name: str = NAME
    """The one name that the name server knows."""


@asynccontextmanager
async def open_targets() -> AsyncIterator[Targets]:
    """All three servers, for as long as the block lasts."""
    loop = asyncio.get_running_loop()
    page = await asyncio.start_server(_serve_page, HOST, 0, limit=_HEAD_LIMIT)
    echo = await asyncio.start_server(_serve_echo, HOST, 0)
    names, _ = await loop.create_datagram_endpoint(_NameServer, local_addr=(HOST, 0))
    try:
        yield Targets(
            http_port=page.sockets[0].getsockname()[1],
            echo_port=echo.sockets[0].getsockname()[1],
            dns_port=names.get_extra_info("sockname")[1],
        )
    finally:
        names.close()
        for server in (page, echo):
            server.close()


async def _serve_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_READ_LIMIT_S):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
    except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
        return
    finally:
        writer.close()


async def _serve_echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_READ_LIMIT_S):
            writer.write(await reader.read(_ECHO_LIMIT))
    except (OSError, TimeoutError):
        return
    finally:
        writer.close()


class _NameServer(asyncio.DatagramProtocol):
    """Answers every question with one address."""

    def connection_made(  # type: ignore[override]  # a datagram endpoint passes no other kind
        self, transport: asyncio.DatagramTransport
    ) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        # By hand, since dnspython's messages cost the idle agent 1.8 MB. Who asks is our own DNS
        # runner, whose queries are a header and one question.
        head = data[:2] + _ANSWER_HEAD
        self._transport.sendto(head + data[_DNS_HEAD_BYTES:] + _ANSWER_RECORD, addr)
