"""A small HTTP/3 server on loopback: QUIC over UDP, with the certificate that a test gives it."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import trustme
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.servers.http_origin import Asked


class Ending(Enum):
    """What the server does after the answer that it has been told to give."""

    WELL = auto()
    """Ends the stream."""
    NEVER = auto()
    """Says nothing more."""
    RESETS = auto()
    """Resets the stream."""
    CLOSES = auto()
    """Closes the connection."""


@dataclass(frozen=True, slots=True)
class Page3:
    """What the server answers."""

    body: bytes = b"three"
    status: int | None = 200
    """None: no head is sent and no body, so it cannot end well."""
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    """How often the body is sent, so that a large one needs no memory here."""
    ending: Ending = Ending.WELL


@dataclass(slots=True)
class Origin3:
    """A running server, and what it was asked."""

    base: str = ""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/") -> str:
        return f"{self.base}{path}"

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])


class _Talk(QuicConnectionProtocol):
    """One connection."""

    def __init__(
        self, *given: Any, origin: Origin3, pages: Mapping[str, Page3], **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self._origin = origin
        self._pages = pages
        self._http: H3Connection | None = None
        self._heads: dict[int, dict[str, str]] = {}
        self._bodies: dict[int, bytes] = {}
        origin.connections += 1

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is not None:
            for heard in self._http.handle_event(event):
                self._hear(self._http, heard)

    def _hear(self, http: H3Connection, heard: H3Event) -> None:
        if isinstance(heard, HeadersReceived):
            head = {name.decode(): value.decode() for name, value in heard.headers}
            self._heads[heard.stream_id], self._bodies[heard.stream_id] = head, b""
        elif isinstance(heard, DataReceived):
            self._bodies[heard.stream_id] += heard.data
        else:
            return
        if heard.stream_ended:
            self._answer(http, heard.stream_id)

    def _answer(self, http: H3Connection, stream: int) -> None:
        head, body = self._heads.pop(stream), self._bodies.pop(stream)
        headers = tuple((name, value) for name, value in head.items() if name[0] != ":")
        self._origin.asked.append(Asked(head[":method"], head[":path"], headers, body))
        page = self._pages.get(head[":path"], Page3(b"no such page", status=404))
        if page.status is not None:
            fields = {":status": str(page.status), **page.headers}
            http.send_headers(stream, [(key.encode(), fields[key].encode()) for key in fields])
            for _ in range(page.times):
                http.send_data(stream, page.body, end_stream=False)
            self.transmit()
        self._end(http, stream, page.ending)

    def _end(self, http: H3Connection, stream: int, ending: Ending) -> None:
        match ending:
            case Ending.WELL:
                http.send_data(stream, b"", end_stream=True)
                self.transmit()
            case Ending.RESETS:
                self._quic.reset_stream(stream, ErrorCode.H3_INTERNAL_ERROR)
                self.transmit()
            case Ending.CLOSES:
                self.close(error_code=ErrorCode.H3_INTERNAL_ERROR)
            case Ending.NEVER:
                pass


@contextlib.asynccontextmanager
async def http3_origin(
    pages: Page3 | Mapping[str, Page3], *, leaf: trustme.LeafCert, alpn: str = "h3"
) -> AsyncIterator[Origin3]:
    """The page at `/`, or a page by its path; yields where the server is."""
    origin, known = Origin3(), pages if isinstance(pages, Mapping) else {"/": pages}

    def talk(*given: Any, **more: Any) -> _Talk:
        return _Talk(*given, origin=origin, pages=known, **more)

    configuration = _configuration(leaf, alpn)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=talk)
    assert server._transport is not None
    origin.base = f"https://127.0.0.1:{server._transport.get_extra_info('sockname')[1]}"
    try:
        yield origin
    finally:
        server.close()


def _configuration(leaf: trustme.LeafCert, alpn: str) -> QuicConfiguration:
    chain = [x509.load_pem_x509_certificate(one.bytes()) for one in leaf.cert_chain_pems]
    return QuicConfiguration(
        is_client=False,
        alpn_protocols=[alpn],
        certificate=chain[0],
        certificate_chain=chain[1:],
        private_key=load_pem_private_key(leaf.private_key_pem.bytes(), None),
    )
