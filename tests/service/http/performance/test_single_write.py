"""Answers on the wire: one piece, whole, in order, and whatever was written before a close."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import Receive, Scope, Send

from service.http.performance.single_write import SingleWriteProtocol

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
HEAD = {"type": "http.response.start", "status": 200}


@asynccontextmanager
async def serving(app: object) -> AsyncIterator[int]:
    sock = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=SingleWriteProtocol, log_config=None, lifespan="off")  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve([sock]), name="server")
    while not server.started:  # noqa: ASYNC110 - uvicorn tells it in no other way
        await asyncio.sleep(0.005)
    try:
        yield sock.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        sock.close()


async def hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({**HEAD, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@asynccontextmanager
async def answers_to(app: object, *requests: bytes) -> AsyncIterator[asyncio.StreamReader]:
    async with serving(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(requests))
        try:
            yield reader
        finally:
            writer.close()
            await writer.wait_closed()


async def test_head_and_body_of_an_answer_come_in_one_piece() -> None:
    async with serving(hello) as port:
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.settimeout(0)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(raw, GET)
            piece = await loop.sock_recv(raw, 65536)
    assert piece.startswith(b"HTTP/1.1 200")
    assert piece.endswith(b"hello")


async def test_the_first_part_of_a_long_answer_does_not_wait_for_the_next() -> None:
    seen = asyncio.Event()

    async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({**HEAD, "headers": [(b"content-length", b"10")]})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await seen.wait()
        await send({"type": "http.response.body", "body": b"after"})

    async with answers_to(slow, GET) as reader:
        await reader.readuntil(b"first")
        seen.set()
        assert await reader.readexactly(5) == b"after"


async def test_an_answer_after_which_the_server_hangs_up_arrives_whole() -> None:
    last = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    async with answers_to(hello, last) as reader:
        assert (await reader.read()).endswith(b"hello")


async def test_answers_to_requests_in_a_row_keep_their_order() -> None:
    async def path(scope: Scope, _receive: Receive, send: Send) -> None:
        body = scope["path"].encode()
        await send({**HEAD, "headers": [(b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    asked = [b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(5)]
    async with answers_to(path, *asked) as reader:
        for number in range(5):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(2) == b"/%d" % number


async def test_a_long_answer_to_a_slow_reader_arrives_whole() -> None:
    part, parts = b"x" * 65536, 200

    async def long(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({**HEAD, "headers": [(b"content-length", str(len(part) * parts).encode())]})
        for number in range(parts):
            more = number < parts - 1
            await send({"type": "http.response.body", "body": part, "more_body": more})

    async with answers_to(long, GET) as reader:
        await reader.readuntil(b"\r\n\r\n")
        assert len(await reader.readexactly(len(part) * parts)) == len(part) * parts
