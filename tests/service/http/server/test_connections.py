"""Connections of whoever has no key, over raw sockets: heads, waits, room."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from service.http.server.connections import ConnectionLimits, Connections, LimitedProtocol
from service.serving import StartupGate, _config, limits_for
from tests.servers.prompt_server import serve_promptly

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
KIB = 1024
Talk = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [LENGTH]})
    await send({"type": "http.response.body", "body": b"hello"})


LENGTH = (b"content-length", b"5")


async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers once the whole body is there."""
    while (await receive()).get("more_body"):
        pass
    await hello(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Clients:
    """Connects to one server."""

    port: int
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def __call__(self, sent: bytes = b"") -> Talk:
        """A connection that stays open, on which something was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        writer.write(sent)
        return reader, writer

    async def refusal_of(self, *sent: bytes) -> dict[str, Any]:
        """The error body of the answer after which the connection ends."""
        loop, answer = asyncio.get_running_loop(), b""
        with socket.socket() as raw:
            raw.settimeout(0)
            await loop.sock_connect(raw, ("127.0.0.1", self.port))
            with suppress(ConnectionError):  # it ends as soon as it is refused, and may not read on
                for part in sent:
                    await loop.sock_sendall(raw, part)
            with suppress(ConnectionError):
                while part := await loop.sock_recv(raw, 65536):
                    answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"\r\nconnection: close" in head
        assert f"content-length: {len(body)}".encode() in head
        said = json.loads(body)
        assert head.startswith(f"HTTP/1.1 {said['statusCode']} ".encode())
        return dict(said)


@asynccontextmanager
async def talking_to(config: uvicorn.Config) -> AsyncIterator[Clients]:
    async with serve_promptly(config) as url:
        clients = Clients(int(url.rpartition(":")[2]))
        try:
            yield clients
        finally:
            for writer in clients.writers:
                writer.close()


@asynccontextmanager
async def serving(app: Any = hello, **limits: Any) -> AsyncIterator[Clients]:
    connections = Connections(ConnectionLimits(**limits))
    http: Any = partial(LimitedProtocol, connections=connections)
    async with talking_to(
        uvicorn.Config(app, http=http, log_config=None, lifespan="off", timeout_keep_alive=600)
    ) as connect:
        yield connect


async def answer_on(reader: asyncio.StreamReader) -> str:
    """The status line and the body of `hello`'s answer, on a connection that stays open."""
    head = await reader.readuntil(b"\r\n\r\n")
    return f"{head.splitlines()[0].decode()} {(await reader.readexactly(5)).decode()}"


def head_with(fields: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\n" + fields


@pytest.mark.parametrize(
    "sent",
    [
        head_with(b"x: " + b"a" * 64 * KIB + b"\r\n\r\n"),
        head_with(b"x: " + b"a" * 64 * KIB),
        head_with(b"x" * 65 * KIB),
        head_with(b"a: b\r\n" * 257 + b"\r\n"),
        head_with(b"a: b\r\n" * 300),
        b"GET /" + b"a" * 65 * KIB,
        GET[:-2] + b"x: " + b"a" * 200 * KIB + b"\r\n\r\n" + GET,
    ],
    ids=["field", "no end", "name", "fields", "fields without end", "path", "then another"],
)
async def test_a_head_past_the_limit_is_refused_with_the_limit_and_the_connection_ends(
    sent: bytes,
) -> None:
    async with serving() as connect:
        said = await connect.refusal_of(sent)
    assert (said["statusCode"], said["error"]) == (431, "Request Header Fields Too Large")
    assert said["attributes"] == {"limitBytes": 65536}
    assert "65536 bytes and 256 header fields" in said["message"]


async def test_a_head_in_many_pieces_counts_as_one() -> None:
    pieces = [b"x%d: " % number + b"a" * 1000 + b"\r\n" for number in range(80)]
    async with serving() as connect:
        assert (await connect.refusal_of(head_with(b""), *pieces))["statusCode"] == 431


async def test_fields_after_a_body_count_as_a_head_does() -> None:
    chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    async with serving(read_all) as connect:
        reader, writer = await connect(chunked)
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b"x: " + b"a" * 16 * KIB + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)


async def test_heads_up_to_the_limit_are_answered_one_after_the_other() -> None:
    large = head_with(b"x: " + b"a" * 65_000 + b"\r\n\r\n")
    many = head_with(b"a: b\r\n" * 256 + b"\r\n")
    async with serving() as connect:
        reader, writer = await connect()
        for sent in (large, many, large, GET):
            writer.write(sent)
            assert await answer_on(reader) == "HTTP/1.1 200 OK hello"


async def test_a_long_body_before_another_request_is_no_head() -> None:
    posted = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n" + b"a" * 200_000
    async with serving(read_all) as connect:
        reader, _ = await connect(posted + GET)
        assert [await answer_on(reader) for _ in "ab"] == ["HTTP/1.1 200 OK hello"] * 2


async def test_what_is_no_http_is_refused_with_the_error_body() -> None:
    async with serving() as connect:
        said = await connect.refusal_of(b"\x16\x03\x01 hello\r\n\r\n")
    assert (said["statusCode"], said["error"]) == (400, "Bad Request")


async def test_half_a_head_is_refused_when_its_time_is_over() -> None:
    async with serving(head_s=0.05) as connect:
        said = await connect.refusal_of(b"GET / HTTP/1.1\r\nhost")
    assert said["statusCode"] == 408
    assert said["message"] == "The request did not arrive within 0.05 s."


@pytest.mark.parametrize("sent", [b"", b"\r\n"], ids=["nothing", "an empty line"])
async def test_a_connection_without_a_request_ends(sent: bytes) -> None:
    async with serving(head_s=0.05) as connect:
        reader, _ = await connect(sent)
        assert await reader.read() == b""


@pytest.mark.parametrize(
    ("request_bytes", "more"),
    [
        (GET, b"\r\n"),
        (GET, b"GET"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n", b"a"),
    ],
    ids=["an empty line", "half a head", "a body that nobody wants"],
)
async def test_what_comes_after_an_answer_and_is_no_request_keeps_no_connection(
    request_bytes: bytes, more: bytes
) -> None:
    async with serving(head_s=0.05) as connect:
        reader, writer = await connect(request_bytes)
        await answer_on(reader)
        writer.write(more)
        await reader.read()
        assert reader.at_eof()


async def test_a_long_wait_for_an_answer_or_a_body_is_not_a_wait_for_a_head() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.3)
        await read_all(scope, receive, send)

    chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5"
    async with serving(slow, head_s=0.1) as connect:
        reader, writer = await connect(chunked)
        await asyncio.sleep(0.3)
        writer.write(b"\r\nhello\r\n0\r\n\r\n")
        assert await answer_on(reader) == "HTTP/1.1 200 OK hello"


async def test_a_new_connection_takes_the_place_of_the_one_that_is_idle_longest() -> None:
    async with serving(connections=2) as connect:
        first, _ = await connect()
        second, writer = await connect(GET)
        await answer_on(second)
        third, _ = await connect(GET)
        assert await first.read() == b""
        assert await answer_on(third) == "HTTP/1.1 200 OK hello"
        writer.write(GET)
        assert await answer_on(second) == "HTTP/1.1 200 OK hello"


async def test_no_connection_that_waits_for_an_answer_gives_way() -> None:
    go_on, asked = asyncio.Event(), asyncio.Semaphore(0)

    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        asked.release()
        await go_on.wait()
        await hello(scope, receive, send)

    async with serving(waiting, connections=2) as connect:
        busy = [(await connect(GET))[0] for _ in "ab"]
        for _ in busy:
            await asked.acquire()
        another, _ = await connect()
        assert await another.read() == b""
        go_on.set()
        assert [await answer_on(one) for one in busy] == ["HTTP/1.1 200 OK hello"] * 2


async def test_of_unfinished_heads_the_oldest_gives_way() -> None:
    async with serving(unfinished_heads=2) as connect:
        talks = []
        for _ in range(3):
            talks.append(await connect(GET[:-2]))
            await asyncio.sleep(0.01)
        assert await talks[0][0].read() == b""
        for reader, writer in talks[1:]:
            writer.write(b"\r\n")
            assert await answer_on(reader) == "HTTP/1.1 200 OK hello"


async def test_a_client_that_does_not_read_its_answer_loses_the_connection() -> None:
    ended = asyncio.Event()

    async def endless(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        gone = asyncio.create_task(receive(), name="gone")  # type: ignore[arg-type]
        await send({"type": "http.response.start", "status": 200})
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 64 * KIB, "more_body": True})
            await asyncio.sleep(0)
        ended.set()

    async with serving(endless, unread_s=0.05) as connect:
        _, writer = await connect(GET)
        writer.transport.pause_reading()
        await ended.wait()


async def test_the_service_itself_serves_with_these_limits() -> None:
    async with talking_to(_config(StartupGate())) as connect:
        said = await connect.refusal_of(head_with(b"x: " + b"a" * 65 * KIB))
        assert said["statusCode"] == 431


@pytest.mark.parametrize(
    ("files", "connections"), [(1 << 20, 10_000), (4096, 3584), (1024, 512), (256, 128)]
)
def test_connections_leave_files_for_other_things(files: int, connections: int) -> None:
    assert limits_for(files).connections == connections
