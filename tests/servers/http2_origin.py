"""Small HTTP/2 servers on loopback, over TLS or with prior knowledge."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

import h2.config
import h2.connection
import h2.events

from tests.servers.tcp import tcp_server


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    while piece := await reader.read(65_536):
        for event in connection.receive_data(piece):
            if isinstance(event, h2.events.RequestReceived):
                assert event.stream_id is not None
                head = [(":status", "200"), ("content-type", "text/plain"), ("x-speaks", "h2")]
                connection.send_headers(event.stream_id, head)
                connection.send_data(event.stream_id, b"two", end_stream=True)
        writer.write(connection.data_to_send())
        await writer.drain()


@contextlib.asynccontextmanager
async def http2_origin(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Yields the URL of the only page."""

    scheme = "http" if tls is None else "https"
    async with tcp_server(_serve, tls=tls) as port:
        yield f"{scheme}://127.0.0.1:{port}/"


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 1) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def header(name: bytes, value: bytes) -> bytes:
    """A header field as a literal without indexing, of any bytes (RFC 7541, 6.2.2)."""
    return b"\0" + _string(name) + _string(value)


def _string(text: bytes) -> bytes:
    left, coded = len(text), bytearray()
    if left < 127:
        return bytes((left,)) + text
    left -= 127
    while left >= 128:
        coded.append(128 + left % 128)
        left //= 128
    return bytes((127, *coded, left)) + text


def head(*fields: bytes, status: bytes = b"200", flags: int = END_HEADERS) -> bytes:
    return frame(HEADERS, header(b":status", status) + b"".join(fields), flags=flags)


def data(content: bytes) -> bytes:
    return frame(DATA, content, flags=END_STREAM)


def rst_stream(code: int) -> bytes:
    return frame(RST_STREAM, code.to_bytes(4, "big"))


def goaway(code: int, *, last_stream: int = 0) -> bytes:
    payload = last_stream.to_bytes(4, "big") + code.to_bytes(4, "big")
    return frame(GOAWAY, payload, stream=0)


async def read_headers(reader: asyncio.StreamReader) -> bytes:
    """Read up to the end of the first request's headers, and return their block."""
    await reader.readexactly(len(PREFACE))
    while True:
        start = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(start[:3], "big"))
        if start[3] == HEADERS:
            return payload


@dataclass(slots=True)
class FrameOrigin:
    """A server that answers each request with the same frames."""

    url: str
    connections: int = 0


@contextlib.asynccontextmanager
async def frame_origin(
    *frames: bytes,
    tls: ssl.SSLContext | None = None,
    http_1: bytes = b"",
    closes: bool = False,
) -> AsyncIterator[FrameOrigin]:
    """Answers requests of HTTP/2 with these frames, and those of HTTP/1 with `http_1`."""
    origin = FrameOrigin("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        origin.connections += 1
        speaks = writer.get_extra_info("ssl_object")
        if speaks is not None and speaks.selected_alpn_protocol() == "http/1.1":
            await reader.readuntil(b"\r\n\r\n")
            writer.write(http_1)
        else:
            writer.write(frame(SETTINGS, stream=0))
            await read_headers(reader)
            writer.write(frame(SETTINGS, flags=1, stream=0) + b"".join(frames))
        await writer.drain()
        if closes:
            writer.write_eof()
        await reader.read()  # until the client goes

    scheme = "http" if tls is None else "https"
    async with tcp_server(serve, tls=tls) as port:
        origin.url = f"{scheme}://127.0.0.1:{port}/"
        yield origin
