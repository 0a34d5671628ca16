"""WebSockets of clients that do not read, or send pieces without end, over raw sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from service.http.server.connections import ConnectionLimits, Connections, LimitedProtocol
from service.http.server.websocket import OPTIONS, LimitedWebSocket
from tests.builders.patience import LONG_S
from tests.servers.prompt_server import serve_promptly

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
TEXT, CONTINUATION, PING, FINAL, MASKED = 0x1, 0x0, 0x9, 0x80, 0x80
KIB = 1024


def frame(opcode: int, payload: bytes = b"", *, is_final: bool = True) -> bytes:
    """A client's frame of at most 125 bytes, masked with zeros."""
    first = opcode | (FINAL if is_final else 0)
    return bytes([first, MASKED | len(payload)]) + b"\0" * 4 + payload


@dataclass(slots=True)
class Server:
    port: int
    made: list[LimitedWebSocket]
    """The protocols of all connections."""
    sockets: list[socket.socket] = field(default_factory=list)

    async def connect(self) -> socket.socket:
        """A WebSocket of a client that takes little before it must read."""
        raw = socket.socket()
        self.sockets.append(raw)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        raw.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, ("127.0.0.1", self.port))
        await loop.sock_sendall(raw, HANDSHAKE)
        head = b""
        while b"\r\n\r\n" not in head:
            head += await loop.sock_recv(raw, 1)
        assert head.startswith(b"HTTP/1.1 101 ")
        return raw


async def listens(_scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts and waits for the end."""
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def talks(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends without end."""
    await send({"type": "websocket.accept"})
    while True:
        await send({"type": "websocket.send", "bytes": b"x" * 64 * KIB})


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[Server]:
    made: list[LimitedWebSocket] = []

    def websocket(**given: Any) -> LimitedWebSocket:
        made.append(LimitedWebSocket(**given))
        return made[-1]

    http: Any = partial(LimitedProtocol, connections=Connections(ConnectionLimits()))
    options = {**OPTIONS, "ws": websocket}
    async with serve_promptly(
        uvicorn.Config(app, http=http, log_config=None, lifespan="off", **options)
    ) as url:
        server = Server(int(url.rpartition(":")[2]), made)
        try:
            yield server
        finally:
            for raw in server.sockets:
                raw.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_S):
        while not holds():  # noqa: ASYNC110 - uvicorn tells it in no other way
            await asyncio.sleep(0.01)


async def read_all(raw: socket.socket) -> bytes:
    """Everything until the server closes or cuts the connection off."""
    loop, read = asyncio.get_running_loop(), b""
    with suppress(ConnectionError):
        while part := await loop.sock_recv(raw, 64 * KIB):
            read += part
    return read


async def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.http.server.websocket.UNREAD_S", 0.2)
    async with serving(talks) as server:
        await server.connect()
        await until(lambda: server.made[0].disconnected)


async def test_what_waits_for_a_client_is_no_more_than_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(talks) as server:
        await server.connect()
        [protocol] = server.made
        await until(lambda: not protocol.writable.is_set())
        assert protocol.transport.get_write_buffer_size() <= 3 * 64 * KIB
        protocol.transport.abort()


async def test_pings_of_a_client_that_does_not_read_are_not_answered() -> None:
    async with serving(talks) as server:
        raw = await server.connect()
        [protocol] = server.made
        await until(lambda: not protocol.writable.is_set())
        waiting_bytes = protocol.transport.get_write_buffer_size()
        await asyncio.get_running_loop().sock_sendall(raw, frame(PING, b"p" * 125) * 5_000)
        await until(lambda: protocol.conn.reader.buffer == b"")
        assert protocol.transport.get_write_buffer_size() <= waiting_bytes
        protocol.transport.abort()


async def test_pings_of_a_client_that_reads_are_answered() -> None:
    async with serving(listens) as server:
        raw = await server.connect()
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(raw, frame(PING, b"here"))
        assert await loop.sock_recv(raw, 100) == b"\x8a\x04here"


async def test_a_message_in_pieces_without_end_ends_the_connection() -> None:
    async with serving(listens) as server:
        raw = await server.connect()
        endless = frame(CONTINUATION, is_final=False) * 100
        await asyncio.get_running_loop().sock_sendall(raw, frame(TEXT, is_final=False) + endless)
        assert b"\x03\xf1too many fragments" in await read_all(raw)


async def test_a_message_in_some_pieces_arrives() -> None:
    received: list[str] = []

    async def notes(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        received.append((await receive())["text"])

    async with serving(notes) as server:
        raw = await server.connect()
        pieces = frame(TEXT, b"a", is_final=False) + frame(CONTINUATION, b"b", is_final=False) * 60
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(raw, pieces + frame(CONTINUATION, b"c"))
        await until(lambda: bool(received))
    assert received == ["a" + "b" * 60 + "c"]
