"""Servers that keep to HTTP almost: what passes as an answer and what does not."""

from collections.abc import AsyncIterator

import pytest

from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers.http_origin import closes_after, http_origin, reply


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules()) as engine:
        yield engine
        assert engine.running == 0


async def exchanged(engine: HttpEngine, answer: bytes) -> HttpExchange:
    async with http_origin({"/": closes_after(answer), "/next": reply(b"there")}) as origin:
        return await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
        b"HTTP/1.1 200 OK: all fine\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
    ],
    ids=["bare line feeds", "colon in the status text", "no status text", "1.0", "trailers"],
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
