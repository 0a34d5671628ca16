"""HTTP/2 that ends before its answer does: named by the reason that the server gave."""

import ssl
from collections.abc import AsyncIterator

import pytest
import trustme

from contract.requests import BodyType, HttpMethod, HttpVersion
from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers.http2_origin import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    data,
    frame,
    frame_origin,
    goaway,
    head,
    header,
    rst_stream,
)
from tests.servers.http_certificates import pem_of
from tests.servers.http_origin import reply

INTERNAL_ERROR, REFUSED_STREAM, ENHANCE_YOUR_CALM, HTTP_1_1_REQUIRED = 2, 7, 11, 13
BEGUN = head() + frame(DATA, b"half")


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def engine(ca: trustme.CA) -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules(), extra_ca_pem=pem_of(ca)) as engine:
        yield engine
        assert engine.running == 0


async def asked(engine: HttpEngine, *frames: bytes, **changes: object) -> tuple[HttpExchange, int]:
    """The exchange, and how many connections it took."""
    async with frame_origin(*frames) as origin:
        request = an_http_request(origin.url, http_version=HttpVersion.HTTP_2, **changes)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    place = origin.url.removeprefix("http://").rstrip("/")
    if seen.failure is not None:
        assert seen.failure.message.startswith(f"{place} ")
    return seen, origin.connections


def sentence(seen: HttpExchange) -> str:
    assert seen.failure is not None
    return seen.failure.message.partition(" ")[2]


async def test_frames_that_make_an_answer_are_one(engine: HttpEngine) -> None:
    seen, _ = await asked(engine, head(header(b"x-a", b"\xff")), data(b"whole"))
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.body, seen.answer.head.headers) == (b"whole", {"x-a": "ÿ"})


@pytest.mark.parametrize("method", [HttpMethod.GET, HttpMethod.POST])
@pytest.mark.parametrize(
    ("frames", "how"),
    [(rst_stream(REFUSED_STREAM), "REFUSED_STREAM"), (goaway(0), "GOAWAY with NO_ERROR")],
    ids=["RST_STREAM", "GOAWAY"],
)
async def test_a_refused_request_is_sent_once_and_named(
    engine: HttpEngine, method: HttpMethod, frames: bytes, how: str
) -> None:
    body = {} if method is HttpMethod.GET else {"body": "pay", "body_type": BodyType.RAW}
    seen, connections = await asked(engine, frames, method=method, **body)
    assert connections == 1
    assert sentence(seen) == f"refused the request and did not process it ({how})."


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (
            goaway(ENHANCE_YOUR_CALM),
            "ended the connection before it answered: GOAWAY with ENHANCE_YOUR_CALM.",
        ),
        (
            BEGUN + goaway(99, last_stream=1) + rst_stream(INTERNAL_ERROR),
            "ended the connection in the middle of the body, after 4 bytes: GOAWAY with error 99.",
        ),
        (rst_stream(INTERNAL_ERROR), "reset the stream before it answered: INTERNAL_ERROR."),
        (
            BEGUN + rst_stream(INTERNAL_ERROR),
            "reset the stream in the middle of the body, after 4 bytes: INTERNAL_ERROR.",
        ),
        (
            rst_stream(HTTP_1_1_REQUIRED),
            "requires HTTP/1.1 for this request (HTTP_1_1_REQUIRED).",
        ),
    ],
)
async def test_the_reason_that_the_server_gave_is_shown(
    engine: HttpEngine, frames: bytes, said: str
) -> None:
    seen, connections = await asked(engine, frames)
    assert sentence(seen) == said
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert connections == 1


async def test_a_connection_that_ends_without_a_frame_is_named(engine: HttpEngine) -> None:
    async with frame_origin(closes=True) as origin:
        request = an_http_request(origin.url, http_version=HttpVersion.HTTP_2)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert sentence(seen) == "closed the connection without an answer."


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (head(header(b"X-A", b"hush")), "its header field X-A is invalid"),
        (head(status=b"2000"), "its header field :status 2000 is invalid"),
        (data(b"too early"), "PROTOCOL_ERROR"),
        (head(header(b"content-length", b"9")) + data(b"hi"), "Violation in HTTP messaging rule"),
        (frame(DATA, bytes(20_000)), "FRAME_SIZE_ERROR"),
    ],
)
async def test_frames_that_break_the_rules_are_named(
    engine: HttpEngine, frames: bytes, said: str
) -> None:
    seen, _ = await asked(engine, frames)
    assert sentence(seen) == f"did not answer as HTTP/2 demands: {said}."


@pytest.mark.parametrize(
    "frames",
    [
        head(status=b"\xff\xff\xff"),
        BEGUN + frame(HEADERS, header(b"X-\xff\x1b", b"a"), flags=END_HEADERS + END_STREAM),
    ],
    ids=["the status", "a trailer"],
)
async def test_bytes_that_are_no_text_are_shown_as_numbers(
    engine: HttpEngine, frames: bytes
) -> None:
    seen, _ = await asked(engine, frames)
    assert "\\xff" in sentence(seen)
    assert sentence(seen).isprintable()


async def test_a_server_that_requires_http_1_gets_it_where_the_check_leaves_the_choice(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(tls)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    required = rst_stream(HTTP_1_1_REQUIRED)
    async with frame_origin(required, tls=tls, http_1=reply(b"by 1.1")) as origin:
        seen = await engine.exchange(an_http_request(origin.url), timeout_s=LONG_S)
        insists = an_http_request(origin.url, http_version=HttpVersion.HTTP_2)
        refused = await engine.exchange(insists, timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.head.http_version, seen.answer.body) == ("1.1", b"by 1.1")
    assert "requires HTTP/1.1" in sentence(refused)
    assert origin.connections == 3
