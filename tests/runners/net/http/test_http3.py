"""HTTP/3, when a check asks for it: what is told of it, and what can go wrong over QUIC."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable

import pytest
import trustme

from contract.assertions import Comparison, Source
from contract.evidence import HttpEvidence
from contract.requests import BodyType, HttpMethod, HttpRequest, HttpVersion
from contract.result import FailureKind, Outcome, Status
from runners.api import ApiRunner
from runners.judging.judge import judge
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from runners.net.http.transfer import READ_LIMIT_BYTES
from runners.url import UrlRunner
from tests.builders.context import a_context
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.specs import (
    a_status_assertion,
    a_url_spec,
    an_api_spec,
    an_assertion,
    an_http_request,
)
from tests.servers import http_certificates as certificates
from tests.servers.http3_origin import Ending, Page3, http3_origin
from tests.servers.http_certificates import DAY, NOW
from tests.servers.http_origin import http_origin, reply
from tests.servers.tcp import refusing_port

UNHURRIED = {"degraded_after_ms": None, "failed_after_ms": None}


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def leaf(ca: trustme.CA) -> trustme.LeafCert:
    return ca.issue_cert("127.0.0.1", "localhost")


@pytest.fixture
async def engine(ca: trustme.CA) -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules(), extra_ca_pem=certificates.pem_of(ca)) as engine:
        yield engine
        assert engine.running == 0


def by_http_3(url: str, **changes: object) -> HttpRequest:
    return an_http_request(url, http_version=HttpVersion.HTTP_3, **changes)


async def asked(engine: HttpEngine, url: str, **changes: object) -> HttpExchange:
    return await engine.exchange(by_http_3(url, **changes), timeout_s=LONG_S)


def sentence(seen: HttpExchange) -> str:
    assert seen.failure is not None
    return seen.failure.message


async def test_a_url_check_by_http_3_passes_and_its_result_says_so(
    ca: trustme.CA, leaf: trustme.LeafCert
) -> None:
    page = Page3(b"<h1>hi</h1>", headers={"content-type": "text/html"})
    async with (
        http3_origin(page, leaf=leaf) as origin,
        a_context(timeout_s=LONG_S, extra_ca_pem=certificates.pem_of(ca).decode()) as ctx,
    ):
        spec = a_url_spec(request=by_http_3(origin.url()), **UNHURRIED)
        result = judge(spec, await UrlRunner().observe(spec, ctx))
    assert (result.status, result.failure) == (Status.PASSED, None)
    assert isinstance(result.evidence, HttpEvidence)
    assert result.evidence.response is not None
    assert result.evidence.response.http_version == "3"
    assert result.evidence.response.body == "<h1>hi</h1>"
    assert result.evidence.remote_address == "127.0.0.1"
    assert result.evidence.hops[0].remote_address == "127.0.0.1"


async def api_outcome(ca: trustme.CA, leaf: trustme.LeafCert, body: bytes) -> Outcome:
    page = Page3(body, status=201, headers={"content-type": "application/json", "x-shop": "tea"})
    assertions = (
        a_status_assertion("201"),
        an_assertion(Source.HEADERS, Comparison.EQUALS, "tea", property="x-shop"),
        an_assertion(Source.JSON_BODY, Comparison.EQUALS, "2", property="$.n"),
        an_assertion(Source.TEXT_BODY, Comparison.EQUALS, "2", property=r'"n":\s*(\d)'),
        an_assertion(Source.RESPONSE_TIME, Comparison.GREATER_THAN, "0"),
    )
    async with (
        http3_origin(page, leaf=leaf) as origin,
        a_context(timeout_s=LONG_S, extra_ca_pem=certificates.pem_of(ca).decode()) as ctx,
    ):
        request = by_http_3(
            origin.url(), method=HttpMethod.POST, body='{"q":1}', body_type=BodyType.JSON
        )
        spec = an_api_spec(request=request, assertions=assertions, **UNHURRIED)
        result = judge(spec, await ApiRunner().observe(spec, ctx))
    assert (origin.asked[0].method, origin.asked[0].body) == ("POST", b'{"q":1}')
    assert origin.asked[0].one("content-type") == "application/json"
    return result


async def test_the_assertions_of_an_api_check_hold_by_http_3(
    ca: trustme.CA, leaf: trustme.LeafCert
) -> None:
    good = await api_outcome(ca, leaf, b'{"n": 2}')
    bad = await api_outcome(ca, leaf, b'{"n": 3}')
    assert [one.error for one in good.assertions] == [None] * 5
    assert good.status is Status.PASSED
    assert [one.error is None for one in bad.assertions] == [True, True, False, False, True]
    assert bad.status is Status.FAILED


async def test_the_handshake_and_the_whole_chain_are_told_over_quic(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    below = ca.create_child_ca()
    issued = below.issue_cert("127.0.0.1", not_after=NOW + 40 * DAY, not_before=NOW - DAY)
    async with http3_origin(Page3(), leaf=issued) as origin:
        seen = await asked(engine, origin.url())
    assert seen.tls is not None
    assert (seen.tls.version, seen.tls.verified, seen.tls.verify_error) == ("TLSv1.3", True, None)
    assert (seen.tls.cipher or "").startswith("TLS_")
    assert seen.tls.days_to_expiry == pytest.approx(40, abs=0.1)
    assert [one.names for one in seen.tls.chain] == [("127.0.0.1",), ()]
    assert seen.tls.chain[0].issuer == seen.tls.chain[1].subject


async def test_the_phases_of_quic_follow_each_other_and_make_up_the_total(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    async with http3_origin(Page3(), leaf=leaf) as origin:
        seen = await asked(engine, f"https://localhost:{origin.port}/")
    times = seen.timings
    phases = [times.wait, times.dns, times.tcp, times.tls, times.first_byte, times.download]
    known = [phase for phase in phases if phase is not None]
    assert len(known) == len(phases)
    assert min(known) >= 0
    assert sum(known) == pytest.approx(times.total, abs=0.01)


BAD: dict[str, tuple[Callable[[trustme.CA], trustme.LeafCert], str]] = {
    "expired": (
        lambda ca: ca.issue_cert("127.0.0.1", not_before=NOW - 90 * DAY, not_after=NOW - 3 * DAY),
        "it expired on ",
    ),
    "not yet valid": (
        lambda ca: ca.issue_cert("127.0.0.1", not_before=NOW + 3 * DAY, not_after=NOW + 90 * DAY),
        "it is valid from ",
    ),
    "another host": (
        lambda ca: ca.issue_cert("shop.example"),
        "it does not speak for the address 127.0.0.1 but for shop.example",
    ),
    "a stranger's": (
        lambda _: trustme.CA().issue_cert("127.0.0.1"),
        "its issuer ",
    ),
}


@pytest.mark.parametrize(("issued", "why"), BAD.values(), ids=BAD)
async def test_a_bad_certificate_is_named_over_quic(
    engine: HttpEngine, ca: trustme.CA, issued: Callable[[trustme.CA], trustme.LeafCert], why: str
) -> None:
    async with http3_origin(Page3(), leaf=issued(ca)) as origin:
        seen = await asked(engine, origin.url())
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    place = f"127.0.0.1:{origin.port}"
    assert sentence(seen).startswith(f"The certificate of {place} cannot be trusted: {why}")
    assert seen.tls is not None
    assert not seen.tls.verified
    assert len(seen.tls.chain) == 1
    assert origin.asked == []


@pytest.mark.parametrize(("issued", "why"), BAD.values(), ids=BAD)
async def test_skip_ssl_passes_over_quic_and_says_what_would_be_wrong(
    engine: HttpEngine, ca: trustme.CA, issued: Callable[[trustme.CA], trustme.LeafCert], why: str
) -> None:
    async with http3_origin(Page3(b"inside"), leaf=issued(ca)) as origin:
        seen = await asked(engine, origin.url(), skip_ssl=True)
    assert seen.failure is None
    assert seen.answer is not None
    assert seen.answer.body == b"inside"
    assert seen.tls is not None
    assert not seen.tls.verified
    assert (seen.tls.verify_error or "").startswith(why)
    assert len(origin.asked) == 1


async def test_a_subject_in_any_script_is_read_over_quic(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    issued = ca.issue_cert("127.0.0.1", organization_name="Schlüssel 鍵")
    async with http3_origin(Page3(), leaf=issued) as origin:
        seen = await asked(engine, origin.url())
    assert seen.tls is not None
    assert "O=Schlüssel 鍵" in seen.tls.chain[0].subject


async def test_a_chain_is_never_told_of_the_exchange_after_it(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    async with http3_origin(Page3(), leaf=leaf) as origin:
        seen = await asked(engine, origin.url())
    gone = await asked(engine, origin.url())
    assert seen.tls is not None
    assert gone.failure is not None
    assert gone.tls is None


async def test_a_server_with_https_alone_is_named_as_one_without_http_3(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        seen = await asked(engine, origin.url())
    assert sentence(seen) == f"Nothing answered HTTP/3 (QUIC over UDP) at 127.0.0.1:{origin.port}."


async def test_a_quic_server_of_another_protocol_is_named_as_one_without_http_3(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    async with http3_origin(Page3(), leaf=leaf, alpn="doq") as origin:
        seen = await asked(engine, origin.url())
    assert sentence(seen) == f"Nothing answered HTTP/3 (QUIC over UDP) at 127.0.0.1:{origin.port}."


async def test_redirects_are_followed_by_http_3_and_each_hop_is_recorded(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    pages = {"/a": Page3(b"", status=302, headers={"location": "/b"}), "/b": Page3()}
    async with http3_origin(pages, leaf=leaf) as origin:
        seen = await asked(engine, origin.url("/a"))
        stayed = await asked(engine, origin.url("/a"), follow_redirects=False)
    assert seen.failure is None
    assert [(hop.url, hop.status_code) for hop in seen.hops] == [
        (origin.url("/a"), 302),
        (origin.url("/b"), 200),
    ]
    assert stayed.answer is not None
    assert stayed.answer.head.status_code == 302
    assert origin.connections == 3


async def test_a_redirect_to_a_server_without_http_3_is_named(
    engine: HttpEngine, ca: trustme.CA, leaf: trustme.LeafCert
) -> None:
    async with http_origin(reply(), tls=certificates.good(ca)) as other:
        page = Page3(b"", status=302, headers={"location": other.url()})
        async with http3_origin(page, leaf=leaf) as origin:
            seen = await asked(engine, origin.url())
    assert [hop.status_code for hop in seen.hops] == [302]
    assert sentence(seen) == f"Nothing answered HTTP/3 (QUIC over UDP) at 127.0.0.1:{other.port}."


async def test_a_body_is_read_to_the_limit_and_no_further_by_http_3(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    bomb = gzip.compress(bytes(READ_LIMIT_BYTES + 1_000_000))
    page = Page3(bomb, headers={"content-encoding": "gzip"})
    async with http3_origin(page, leaf=leaf) as origin:
        seen = await asked(engine, origin.url())
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.body_bytes, seen.answer.body_cut) == (READ_LIMIT_BYTES, True)


@pytest.mark.parametrize("ending", [Ending.RESETS, Ending.CLOSES])
@pytest.mark.parametrize(
    ("page", "how"),
    [
        (Page3(status=None), "closed the connection without an answer."),
        (
            Page3(b"part", headers={"content-length": "100"}),
            "closed the connection in the middle of the body, after 4 of 100 bytes.",
        ),
    ],
    ids=["before the answer", "in the body"],
)
async def test_a_server_that_breaks_off_is_named_over_quic(
    engine: HttpEngine, leaf: trustme.LeafCert, page: Page3, how: str, ending: Ending
) -> None:
    broken = Page3(page.body, page.status, page.headers, ending=ending)
    async with http3_origin(broken, leaf=leaf) as origin:
        seen = await asked(engine, origin.url())
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.PROTOCOL
    assert sentence(seen) == f"127.0.0.1:{origin.port} {how}"


async def hung(engine: HttpEngine, page: Page3, leaf: trustme.LeafCert) -> tuple[str, str]:
    """What is said of a server that hangs, and of which; on a slow machine after a longer wait."""
    for limit_s in GROWING_S:
        async with http3_origin(page, leaf=leaf) as origin:
            seen = await engine.exchange(by_http_3(origin.url()), timeout_s=limit_s)
        body_bytes = 0 if seen.answer is None else seen.answer.body_bytes
        if origin.asked and (page.status is None or body_bytes):
            break
    return sentence(seen).replace(f"{limit_s:g} s.", "the limit."), f"127.0.0.1:{origin.port}"


async def test_a_server_that_never_answers_is_named_by_the_phase_over_quic(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    said, place = await hung(engine, Page3(status=None, ending=Ending.NEVER), leaf)
    assert said == f"No first byte from {place} within the limit."


async def test_a_body_that_stalls_is_named_over_quic(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    said, place = await hung(engine, Page3(b"part", ending=Ending.NEVER), leaf)
    stalled = "stalled after 4 bytes; it was not complete within the limit."
    assert said == f"The body from {place} {stalled}"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
async def test_a_denied_address_gets_no_datagram(leaf: trustme.LeafCert, host: str) -> None:
    rules = EgressRules.parse([], ["127.0.0.0/8"])
    async with HttpEngine(rules) as engine, http3_origin(Page3(), leaf=leaf) as origin:
        seen = await asked(engine, f"https://{host}:{origin.port}/")
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS
    assert origin.connections == 0


async def test_a_redirect_to_a_denied_address_gets_no_datagram(
    ca: trustme.CA, leaf: trustme.LeafCert
) -> None:
    rules = EgressRules.parse([], ["localhost"])
    async with (
        HttpEngine(rules, extra_ca_pem=certificates.pem_of(ca)) as engine,
        http3_origin(Page3(), leaf=leaf) as denied,
    ):
        location = f"https://localhost:{denied.port}/"
        page = Page3(b"", status=302, headers={"location": location})
        async with http3_origin(page, leaf=leaf) as origin:
            seen = await asked(engine, origin.url())
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS
    assert [hop.status_code for hop in seen.hops] == [302]
    assert denied.connections == 0


async def test_a_proxy_that_carries_no_udp_is_named_and_never_gone_around(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    async with (
        http_origin(reply(status="501 Not Implemented")) as proxy,
        http3_origin(Page3(), leaf=leaf) as origin,
    ):
        request = by_http_3(origin.url())
        place = proxy.base.removeprefix("http://")
        seen = await engine.exchange(request, timeout_s=LONG_S, proxy_url=f"http://{place}")
        socks = await engine.exchange(request, timeout_s=LONG_S, proxy_url=f"socks5://{place}")
    for one in (seen, socks):
        assert one.failure is not None
        assert one.failure.kind is FailureKind.CONNECT
        why = f"The location's proxy {place} did not connect to 127.0.0.1:{origin.port}: "
        assert sentence(one).startswith(why)
    assert origin.connections == 0


async def test_a_proxy_that_is_gone_is_named_by_http_3_too(engine: HttpEngine) -> None:
    request = by_http_3("https://127.0.0.1:9/")
    with refusing_port() as port:
        place = f"127.0.0.1:{port}"
        seen = await engine.exchange(request, timeout_s=LONG_S, proxy_url=f"http://{place}")
    assert (
        sentence(seen)
        == f"The location's proxy {place} refused the connection (nothing listens there)."
    )


async def test_many_checks_by_http_3_at_once_are_told_apart(
    engine: HttpEngine, leaf: trustme.LeafCert
) -> None:
    pages = {f"/{number}": Page3(f"{number}".encode()) for number in range(20)}
    async with http3_origin(pages, leaf=leaf) as origin:
        seen = await asyncio.gather(*[asked(engine, origin.url(path)) for path in pages])
    assert [one.answer and one.answer.body for one in seen] == [
        page.body for page in pages.values()
    ]
