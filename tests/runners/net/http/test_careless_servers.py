"""Servers that keep to HTTP almost: what passes as an answer and what does not."""

import gzip
import zlib
from collections.abc import AsyncIterator

import brotli
import pytest

from contract.requests import HttpMethod
from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request, headers
from tests.servers.http_origin import begins, closes_after, http_origin, reply


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules()) as engine:
        yield engine
        assert engine.running == 0


async def exchanged(engine: HttpEngine, answer: bytes) -> HttpExchange:
    async with http_origin({"/": closes_after(answer), "/next": reply(b"there")}) as origin:
        return await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
        b"HTTP/1.1 200 OK: all fine\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
        CHUNKED + b"X-Sum: 1\r\n and more\r\n\r\n",
        CHUNKED + b" folded\r\n\r\n",
        CHUNKED + b"X-Sum: \xff\xfe\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \xff\xfe\r\nContent-Length: 2\r\n\r\nhi",
        reply(b"hi", content_encoding="aws-chunked, UTF-8"),
        reply(gzip.compress(b"hi", mtime=0) + b"\n", content_encoding="gzip"),
        reply(gzip.compress(b"h", mtime=0) + gzip.compress(b"i", mtime=0), content_encoding="gzip"),
    ],
    ids=[
        *("bare line feeds", "colon in the status text", "no status text", "1.0", "trailers"),
        *("a folded trailer", "a trailer that begins folded", "a trailer beyond ASCII"),
        *("a transfer coding beyond ASCII", "no coding at all", "bytes behind gzip", "two members"),
    ],
)
async def test_a_careless_answer_is_an_answer(engine: HttpEngine, answer: bytes) -> None:
    seen = await exchanged(engine, answer)
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.head.status_code, seen.answer.body) == (200, b"hi")


async def test_a_location_that_is_said_twice_is_followed_once(engine: HttpEngine) -> None:
    twice = b"HTTP/1.1 302 Found\r\nLocation: /next\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"
    seen = await exchanged(engine, twice)
    assert seen.failure is None
    assert [hop.status_code for hop in seen.hops] == [302, 200]


async def test_an_answer_that_ends_within_its_headers_is_a_failure(engine: HttpEngine) -> None:
    seen = await exchanged(engine, b"HTTP/1.1 200 OK\r\nX-A: b\r\n")
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert "closed the connection in the middle of its headers." in seen.failure.message


GZIP, DEFLATE, BROTLI = (
    gzip.compress(b"hello", mtime=0),
    zlib.compress(b"hello"),
    brotli.compress(b"hello"),
)


@pytest.mark.parametrize(
    ("coding", "stream"),
    [("gzip", GZIP), ("deflate", DEFLATE), ("br", BROTLI)],
    ids=["gzip", "deflate", "br"],
)
async def test_a_body_that_ends_within_its_stream_is_a_failure(
    engine: HttpEngine, coding: str, stream: bytes
) -> None:
    seen = await exchanged(engine, reply(stream[:-2], content_encoding=coding))
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert f"ends in the middle of its {coding} stream, after " in seen.failure.message
    assert seen.answer is not None


async def test_a_response_without_a_body_may_name_a_coding(engine: HttpEngine) -> None:
    empty = await exchanged(engine, reply(b"", content_encoding="gzip"))
    async with http_origin(reply(GZIP, content_encoding="gzip")) as origin:
        request = an_http_request(origin.url(), method=HttpMethod.HEAD)
        head = await engine.exchange(request, timeout_s=LONG_S)
    assert (empty.failure, head.failure) == (None, None)


async def test_a_part_of_a_body_may_end_anywhere(engine: HttpEngine) -> None:
    part = reply(GZIP[:-4], status="206 Partial Content", content_encoding="gzip")
    assert (await exchanged(engine, part)).failure is None


LENGTH_2 = b"\r\nContent-Length: 2\r\n\r\nhi"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b"HTTP/1.1 2000" + LENGTH_2,
            "answered with 'HTTP/1.1 2000', which is no status line of HTTP.",
        ),
        (
            b"http/1.1 200 OK" + LENGTH_2,
            "answered with 'http/1.1 200 OK', which is no status line of HTTP.",
        ),
        (
            b"HTTP/1.1 20 OK" + LENGTH_2,
            "did not answer as HTTP demands: its status line is malformed.",
        ),
        (
            b"HTTP/9.9 200 OK" + LENGTH_2,
            "did not answer as HTTP demands: its status line names an unknown version of HTTP.",
        ),
        (
            b"HTTP/1.1 099 OK" + LENGTH_2,
            "did not answer as HTTP demands: its status code is below 100.",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x00",
            "answered 101 and switched to another protocol, which the request did not ask for.",
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\n\r\n",
            "closed the connection without an answer.",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 12345678901234567890123\r\n\r\nhi",
            "announces a Content-Length of 23 digits; no body is that long.",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 6000 + b"\r\n\r\nhi",
            "announces a Content-Length of 6000 digits; no body is that long.",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: foo, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "answered with the transfer coding foo, which the request did not offer.",
        ),
    ],
)
async def test_an_answer_that_is_no_http_is_named_as_what_it_is(
    engine: HttpEngine, answer: bytes, said: str
) -> None:
    seen = await exchanged(engine, answer)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL
    place, _, rest = seen.failure.message.partition(" ")
    assert place.startswith("127.0.0.1:")
    assert rest == said


async def test_a_switch_of_protocols_that_was_asked_for_is_the_answer(engine: HttpEngine) -> None:
    switches = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    asks = headers({"Connection": "Upgrade", "Upgrade": "websocket"})
    async with http_origin(begins(switches + b"\x81\x00")) as origin:
        request = an_http_request(origin.url(), headers=asks)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.head.status_code, seen.answer.body) == (101, b"")
