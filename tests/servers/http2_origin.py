"""A small HTTP/2 server on loopback, over TLS or with prior knowledge."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

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
