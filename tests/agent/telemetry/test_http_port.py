"""The HTTP port of the agent's faces: idle connections end, and so does everything at the stop."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response

from agent.telemetry.http_server import HttpPort

LIMIT_S = 30.0
QUESTION = b"GET / HTTP/1.1\r\nHost: agent\r\n\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def hello(_request: BaseRequest) -> Response:
    return Response(text="hello\n")


@asynccontextmanager
async def open_connection(*, idle_limit_s: float) -> AsyncIterator[tuple[HttpPort, Connection]]:
    listener = socket.create_server(("127.0.0.1", 0))
    where = listener.getsockname()[:2]
    port = HttpPort(
        hello, log=logging.getLogger(__name__), idle_limit_s=idle_limit_s, stop_limit_s=LIMIT_S
    )
    await port.start(listener)
    reader, writer = await asyncio.open_connection(*where)
    try:
        yield port, (reader, writer)
    finally:
        writer.close()
        await port.stop()


async def ask(connection: Connection) -> None:
    reader, writer = connection
    writer.write(QUESTION)
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    await reader.readuntil(b"hello\n")


async def test_a_connection_that_asks_nothing_is_closed() -> None:
    async with asyncio.timeout(LIMIT_S), open_connection(idle_limit_s=0.05) as (_, connection):
        assert await connection[0].read() == b""


async def test_the_stop_ends_kept_connections_and_takes_no_new_ones() -> None:
    async with asyncio.timeout(LIMIT_S), open_connection(idle_limit_s=3600) as (port, connection):
        where = connection[1].get_extra_info("peername")
        await ask(connection)
        await port.stop()
        assert await connection[0].read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*where)


async def test_a_port_may_be_stopped_twice() -> None:
    async with asyncio.timeout(LIMIT_S), open_connection(idle_limit_s=3600) as (port, _):
        await port.stop()
        await port.stop()
