"""Exchanges that go well: what is sent and what is seen."""

import asyncio
import base64
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from contract.requests import BasicAuth, BodyType, HttpMethod, HttpRequest, HttpVersion, KeyValue
from contract.result import CheckFailed
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange, HttpResponse
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request, headers
from tests.servers.http2_origin import http2_origin
from tests.servers.http_origin import Asked, Origin, http_origin, reply


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules()) as engine:
        yield engine
        assert engine.running == 0


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with http_origin(reply()) as origin:
        yield origin


async def exchanged(engine: HttpEngine, request: HttpRequest) -> HttpExchange:
    seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is None
    return seen


async def answer(engine: HttpEngine, request: HttpRequest) -> HttpResponse:
    seen = (await exchanged(engine, request)).answer
    assert seen is not None
    return seen


async def asked(engine: HttpEngine, origin: Origin, request: HttpRequest) -> Asked:
    await exchanged(engine, request)
    return origin.asked[-1]


async def test_an_answer_is_seen_whole(engine: HttpEngine) -> None:
    page = reply(b"hello", status="203 Fine Enough", x_shop="corner")
    async with http_origin(page) as origin:
        seen = await exchanged(engine, an_http_request(origin.url("/a?b=c")))
    assert seen.answer is not None
    assert seen.answer.body == b"hello"
    assert not seen.answer.body_cut
    head = seen.answer.head
    assert (head.status_code, head.status_text, head.http_version) == (203, "Fine Enough", "1.1")
    assert head.headers == {"content-length": "5", "x-shop": "corner"}
    assert seen.remote_address == "127.0.0.1"
    assert seen.tls is None
    assert [(hop.url, hop.status_code) for hop in seen.hops] == [(origin.url("/a?b=c"), 203)]


async def test_every_phase_that_happened_has_a_time_and_they_add_up(
    engine: HttpEngine, origin: Origin
) -> None:
    timings = (await exchanged(engine, an_http_request(origin.url()))).timings
    assert timings.dns is None
    assert timings.tls is None
    phases = (timings.wait, timings.tcp, timings.first_byte, timings.download)
    assert None not in phases
    assert sum(phase or 0 for phase in phases) == pytest.approx(timings.total, abs=0.01)


async def test_a_name_is_looked_up_and_the_time_is_told(engine: HttpEngine, origin: Origin) -> None:
    url = f"http://localhost:{origin.port}/"
    assert (await exchanged(engine, an_http_request(url))).timings.dns is not None


async def test_the_default_headers_say_who_asks(engine: HttpEngine, origin: Origin) -> None:
    seen = await asked(engine, origin, an_http_request(origin.url()))
    assert (seen.one("user-agent") or "").startswith("Picket/")
    assert seen.one("accept-encoding") == "gzip, deflate, br"
    assert seen.one("accept") == "*/*"
    assert seen.one("host") == f"127.0.0.1:{origin.port}"
    assert seen.one("content-type") is None


async def test_headers_of_ones_own_win_over_the_defaults(
    engine: HttpEngine, origin: Origin
) -> None:
    mine = {
        "user-agent": "me/1",
        "Accept-Encoding": "identity",
        "Host": "shop.example",
        "Content-Type": "text/xml",
        "Authorization": "Bearer token",
    }
    request = an_http_request(
        origin.url(),
        method=HttpMethod.POST,
        body="<a/>",
        body_type=BodyType.JSON,
        headers=headers(mine),
        basic_auth=BasicAuth(username="u", password="p"),
    )
    seen = await asked(engine, origin, request)
    assert {name: seen.one(name) for name in mine} == mine


async def test_a_header_may_be_repeated_empty_and_beyond_ascii(
    engine: HttpEngine, origin: Origin
) -> None:
    pairs = (KeyValue(key="x-a", value="1"), KeyValue(key="x-a", value="2"))
    more = (KeyValue(key="x-empty"), KeyValue(key="x-name", value="Zoë"))
    request = an_http_request(origin.url(), headers=(*pairs, *more))
    seen = await asked(engine, origin, request)
    assert seen.all("x-a") == ["1", "2"]
    assert seen.one("x-empty") == ""
    assert seen.one("x-name") == "Zoë"
    sent = (await exchanged(engine, request)).sent
    assert sent.headers["x-a"] == "1, 2"


async def test_query_parameters_are_added_url_encoded(engine: HttpEngine, origin: Origin) -> None:
    more = headers({"q": "a b&c=d", "ü": "ß/?", "empty": ""})
    request = an_http_request(origin.url("/find?old=1#top"), query_parameters=more)
    seen = await asked(engine, origin, request)
    assert seen.target == "/find?old=1&q=a%20b%26c%3Dd&%C3%BC=%C3%9F%2F%3F&empty="


async def test_a_url_beyond_ascii_is_encoded_and_one_encoded_already_stays(
    engine: HttpEngine, origin: Origin
) -> None:
    seen = await asked(engine, origin, an_http_request(origin.url("/käse brot?x=%20ä")))
    assert seen.target == "/k%C3%A4se%20brot?x=%20%C3%A4"


@dataclass(frozen=True)
class BodyCase:
    body_type: BodyType
    body: str
    content_type: str | None
    sent: str


@pytest.mark.parametrize(
    "case",
    [
        BodyCase(BodyType.JSON, '{"a":1}', "application/json", '{"a":1}'),
        BodyCase(BodyType.FORM, "a=1&b=2", "application/x-www-form-urlencoded", "a=1&b=2"),
        BodyCase(BodyType.RAW, "anything", None, "anything"),
        BodyCase(BodyType.NONE, "left over", None, ""),
        BodyCase(BodyType.GRAPHQL, "{ me }", "application/json", '{"query": "{ me }"}'),
        BodyCase(BodyType.GRAPHQL, '{"query":"{a}"}', "application/json", '{"query":"{a}"}'),
    ],
    ids=str,
)
async def test_a_body_is_sent_as_its_type_says(
    engine: HttpEngine, origin: Origin, case: BodyCase
) -> None:
    request = an_http_request(
        origin.url(), method=HttpMethod.POST, body=case.body, body_type=case.body_type
    )
    seen = await asked(engine, origin, request)
    assert seen.method == "POST"
    assert seen.one("content-type") == case.content_type
    assert seen.body.decode() == case.sent


@pytest.mark.parametrize("method", list(HttpMethod))
async def test_every_method_is_sent_with_its_body(
    engine: HttpEngine, origin: Origin, method: HttpMethod
) -> None:
    request = an_http_request(origin.url(), method=method, body="x" * 5000, body_type=BodyType.RAW)
    seen = await asked(engine, origin, request)
    assert seen.method == method.value
    assert len(seen.body) == (0 if method is HttpMethod.HEAD else 5000)
    assert seen.one("expect") is None


@pytest.mark.parametrize("method", [HttpMethod.POST, HttpMethod.PUT, HttpMethod.PATCH])
async def test_a_method_with_form_says_that_its_body_is_empty(
    engine: HttpEngine, origin: Origin, method: HttpMethod
) -> None:
    seen = await asked(engine, origin, an_http_request(origin.url(), method=method))
    assert seen.one("content-length") == "0"
    assert seen.one("content-type") is None


async def test_basic_auth_comes_from_the_check_or_from_the_url(
    engine: HttpEngine, origin: Origin
) -> None:
    given = an_http_request(origin.url(), basic_auth=BasicAuth(username="Zoë", password="p:w"))
    in_url = an_http_request(f"http://Zo%C3%AB:p%3Aw@127.0.0.1:{origin.port}/")
    expected = f"Basic {base64.b64encode('Zoë:p:w'.encode()).decode()}"
    assert (await asked(engine, origin, given)).one("authorization") == expected
    assert (await asked(engine, origin, in_url)).one("authorization") == expected
    assert "@" not in (await exchanged(engine, in_url)).sent.url


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("br", b"\x0b\x02\x80hello\x03"),
    ],
)
async def test_an_encoded_body_is_decoded(engine: HttpEngine, encoding: str, packed: bytes) -> None:
    async with http_origin(reply(packed, content_encoding=encoding)) as origin:
        assert (await answer(engine, an_http_request(origin.url()))).body == b"hello"


async def test_a_chunked_body_is_put_together(engine: HttpEngine) -> None:
    page = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        b"3\r\nhel\r\n2\r\nlo\r\n0\r\nx-after: all\r\n\r\n"
    )
    async with http_origin(page) as origin:
        seen = await answer(engine, an_http_request(origin.url()))
    assert seen.body == b"hello"


async def test_an_interim_answer_is_not_the_answer(engine: HttpEngine) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n"
    async with http_origin(early + reply(b"late")) as origin:
        seen = await answer(engine, an_http_request(origin.url()))
    assert (seen.head.status_code, seen.body) == (200, b"late")
    assert "link" not in seen.head.headers


async def test_reading_stops_at_25_mb_of_decoded_body(engine: HttpEngine) -> None:
    bomb = gzip.compress(bytes(60 * 1024 * 1024), compresslevel=1)
    async with http_origin(reply(bomb, content_encoding="gzip")) as origin:
        seen = await answer(engine, an_http_request(origin.url()))
    assert seen.body_cut
    assert len(seen.body) == 25 * 1024 * 1024


async def test_a_body_of_exactly_the_limit_is_whole(engine: HttpEngine) -> None:
    async with http_origin(reply(bytes(25 * 1024 * 1024))) as origin:
        seen = await answer(engine, an_http_request(origin.url()))
    assert not seen.body_cut
    assert len(seen.body) == 25 * 1024 * 1024


async def test_each_exchange_opens_a_connection_of_its_own(
    engine: HttpEngine, origin: Origin
) -> None:
    for _ in range(3):
        await exchanged(engine, an_http_request(origin.url()))
    assert origin.connections == 3
    await origin.until_left_alone()


async def test_an_exchange_leaves_nothing_for_the_next_one(engine: HttpEngine) -> None:
    pages = {
        "/first": reply(b"first", x_a="1", set_cookie="id=1"),
        "/second": reply(b"second"),
    }
    async with http_origin(pages) as origin:
        await exchanged(engine, an_http_request(origin.url("/first"), headers=headers({"a": "b"})))
        seen = await answer(engine, an_http_request(origin.url("/second")))
    assert seen.body == b"second"
    assert "x-a" not in seen.head.headers
    assert origin.asked[-1].one("a") is None
    assert origin.asked[-1].one("cookie") is None


async def test_many_exchanges_at_once_keep_their_answers_apart(engine: HttpEngine) -> None:
    async def page(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(asked.target.encode()))
        await writer.drain()

    async with http_origin(page) as origin:
        urls = [origin.url(f"/{number}") for number in range(200)]
        answers = await asyncio.gather(*[answer(engine, an_http_request(url)) for url in urls])
    assert [one.body for one in answers] == [f"/{number}".encode() for number in range(200)]


async def test_http_2_is_spoken_with_prior_knowledge(engine: HttpEngine) -> None:
    async with http2_origin() as url:
        seen = await answer(engine, an_http_request(url, http_version=HttpVersion.HTTP_2))
    assert (seen.head.http_version, seen.body) == ("2", b"two")


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1/", "127.0.0.1/path", "http://", "http://a:99999/", "http://[::1/", "  "],
)
async def test_a_url_that_cannot_be_asked_is_the_checks_fault(engine: HttpEngine, url: str) -> None:
    with pytest.raises(CheckFailed, match="is not a URL that can be requested"):
        await engine.exchange(an_http_request(url), timeout_s=1)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hush@hush:x/",
        "https://user:hush/hush@host/",
        "http//user:hush@host/",
        "user:hush@host",
        "http://user:hush@",
        "http://user:hush@\u2100host/",
    ],
)
async def test_a_url_that_cannot_be_asked_is_shown_without_its_password(
    engine: HttpEngine, url: str
) -> None:
    with pytest.raises(CheckFailed) as caught:
        await engine.exchange(an_http_request(url), timeout_s=1)
    failure = caught.value.failure
    assert "user:hush" not in failure.message
    assert "hush@" not in failure.message


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Authorization: Bearer hush", "Authorization… is not a valid header name"),
        ("sid=hush; path=/", "The name of a header contains white space or a colon"),
    ],
)
async def test_a_header_that_was_typed_into_its_name_is_not_shown(
    engine: HttpEngine, name: str, told: str
) -> None:
    request = an_http_request(headers=(KeyValue(key=name),))
    with pytest.raises(CheckFailed, match=told) as caught:
        await engine.exchange(request, timeout_s=1)
    assert "hush" not in caught.value.failure.message


async def test_a_percent_encoded_host_is_looked_up_as_the_name_it_means(
    engine: HttpEngine, origin: Origin
) -> None:
    request = an_http_request(f"http://%6Cocalh%6Fst:{origin.port}/a%20b")
    seen = await exchanged(engine, request)
    assert seen.sent.url == f"http://localhost:{origin.port}/a%20b"


async def test_a_deeply_nested_graphql_body_is_sent_as_a_query(
    engine: HttpEngine, origin: Origin
) -> None:
    body = "[" * 100_000
    request = an_http_request(
        origin.url(), method=HttpMethod.POST, body=body, body_type=BodyType.GRAPHQL
    )
    assert json.loads((await asked(engine, origin, request)).body) == {"query": body}


@pytest.mark.parametrize(("key", "value"), [("a", "b\r\nx: y"), ("a\nb", "c"), ("a b", "c")])
async def test_a_header_cannot_smuggle_another_one(
    engine: HttpEngine, origin: Origin, key: str, value: str
) -> None:
    request = an_http_request(origin.url(), headers=(KeyValue(key=key, value=value),))
    with pytest.raises(CheckFailed, match="header"):
        await engine.exchange(request, timeout_s=1)
    assert origin.asked == []


async def test_the_evidence_of_the_request_is_what_was_sent(
    engine: HttpEngine, origin: Origin
) -> None:
    body = json.dumps({"a": 1})
    request = an_http_request(
        origin.url(), method=HttpMethod.PUT, body=body, body_type=BodyType.JSON
    )
    sent = (await exchanged(engine, request)).sent
    arrived = origin.asked[-1]
    assert (sent.method, sent.url, sent.body) == ("PUT", origin.url(), body)
    assert sent.headers == {name: arrived.one(name) for name in sent.headers}
