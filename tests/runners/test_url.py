"""URL checks: run against real servers, judged as the agent judges them."""

import asyncio
import base64
import gzip
import tracemalloc

import msgspec
import pytest
import trustme

from contract.assertions import Comparison
from contract.evidence import HttpEvidence
from contract.job import Variable
from contract.requests import BasicAuth, BodyType, HttpMethod, IpFamily
from contract.result import FailureKind, Outcome, Status
from redaction.policy import HIDDEN
from redaction.result import Scrubber
from runners.judging.judge import judge
from runners.net.dns.name_servers import HostFiles, NameServer, ResolvConf
from runners.net.dns.resolve import DnsServerResolver
from runners.runner import RunContext
from runners.url import UrlRunner
from tests.builders.context import a_context
from tests.builders.observations import a_result
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.specs import a_job, a_status_assertion, a_url_spec, an_http_request
from tests.servers import http_certificates as certificates
from tests.servers.dns import Habit, dns_server
from tests.servers.http_origin import (
    Asked,
    begins,
    http_origin,
    redirect,
    reply,
    resets_after,
    silence,
)


class OneServer(HostFiles):
    """Host files that name one DNS server, on a free port."""

    def __init__(self, port: int) -> None:
        self._conf = ResolvConf(servers=(NameServer("127.0.0.1", port),))

    def addresses(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        return ()

    def resolv_conf(self) -> ResolvConf:
        return self._conf


async def outcome(spec: object, **context: object) -> Outcome:
    async with a_context(**context) as ctx:
        return await looked_at(spec, ctx)


async def looked_at(spec: object, ctx: RunContext) -> Outcome:
    return judge(spec, await UrlRunner().observe(spec, ctx))


def seen_of(result: Outcome) -> HttpEvidence:
    assert isinstance(result.evidence, HttpEvidence)
    return result.evidence


async def test_a_refused_connection_has_no_response_time() -> None:
    result = await outcome(a_url_spec("http://127.0.0.1:1/"))

    assert (result.status, result.response_time_ms) == (Status.FAILED, None)
    assert result.timings.total is not None


async def test_a_page_that_is_up_passes_with_its_evidence() -> None:
    async with http_origin(reply(b"<h1>hi</h1>", content_type="text/html")) as origin:
        result = await outcome(a_url_spec(origin.url("/a")))
    assert result.status is Status.PASSED
    assert result.response_time_ms == result.timings.total
    seen = seen_of(result)
    assert seen.request.method == "GET"
    assert seen.response is not None
    assert (seen.response.status_code, seen.response.body) == (200, "<h1>hi</h1>")
    assert seen.response.body_bytes == 11
    assert seen.remote_address == "127.0.0.1"


async def test_a_name_without_an_address_is_told_by_the_server_that_knows_none() -> None:
    async with dns_server({}) as server:
        resolver = DnsServerResolver(OneServer(server.port))
        result = await outcome(a_url_spec("http://nowhere.invalid/"), resolver=resolver)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.DNS
    assert result.failure.message == (
        "nowhere.invalid has no IPv4 address: the name does not exist, "
        f"says 127.0.0.1:{server.port}."
    )
    assert result.failure.detail["code"] == "ENOTFOUND"


async def test_a_failure_behind_a_redirect_names_the_redirect() -> None:
    async with (
        http_origin(redirect("http://nowhere.invalid/x")) as origin,
        dns_server({}) as server,
    ):
        resolver = DnsServerResolver(OneServer(server.port))
        result = await outcome(a_url_spec(origin.url("/a")), resolver=resolver)
    assert result.failure is not None
    assert result.failure.message == (
        "nowhere.invalid has no IPv4 address: the name does not exist, "
        f"says 127.0.0.1:{server.port}. A redirect of {origin.url('/a')} led there."
    )
    assert [hop.location for hop in seen_of(result).hops] == ["http://nowhere.invalid/x"]


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://127.0.0.1:1/", "refused the connection"),
        ("http://[::1]/", "::1 is an IPv6 address"),
        ("ftp://127.0.0.1/", "redirects to ftp://127.0.0.1/"),
    ],
    ids=["refused", "not tried", "the redirect itself"],
)
async def test_a_redirect_that_leads_nowhere_is_named_once(location: str, words: str) -> None:
    async with http_origin(redirect(location)) as origin:
        result = await outcome(a_url_spec(origin.url("/a")))
    assert result.failure is not None
    assert words in result.failure.message
    assert result.failure.message.count(origin.url("/a")) == 1


async def test_a_name_that_only_our_resolver_knows_keeps_the_failure() -> None:
    names = {"nowhere.invalid": ("127.0.0.1",)}
    result = await outcome(a_url_spec("http://nowhere.invalid/"), names=names)
    assert result.failure is not None
    assert result.failure.message == (
        "The name nowhere.invalid does not resolve to an IPv4 address."
    )


async def test_a_better_reason_is_not_waited_for_beyond_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.net.http.probe.REASON_TIMEOUT_S", 0.05)
    async with dns_server({}, habit=Habit.SILENT) as server:
        resolver = DnsServerResolver(OneServer(server.port))
        result = await outcome(a_url_spec("http://nowhere.invalid/"), resolver=resolver)
    assert result.failure is not None
    assert result.failure.message.startswith("The name nowhere.invalid does not resolve")


@pytest.mark.parametrize("braces", ["{{PASSWORD}}", "{{{PASSWORD}}}"])
async def test_an_echoed_basic_auth_header_gives_no_password_away(braces: str) -> None:
    secret = Variable(key="PASSWORD", value="p ss wörd&%", secret=True)
    auth = BasicAuth(username="probe", password=braces)
    sent: list[str] = []

    async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
        sent.append(asked.one("authorization") or "")
        password = base64.b64decode(sent[0].removeprefix("Basic ")).decode().partition(":")[2]
        body = " | ".join((sent[0], password, password.encode().hex()))
        writer.write(reply(body.encode(), content_type="text/plain"))

    async with http_origin(echo) as origin, a_context() as plain:
        job = a_job(
            a_url_spec(request=an_http_request(origin.url(), basic_auth=auth)), variables=(secret,)
        )
        ctx = msgspec.structs.replace(plain, variables=job.variables)
        result = await looked_at(job.spec, ctx)
    cleaned = Scrubber().clean(a_result(result), job=job).result.outcome
    said = seen_of(cleaned).response
    assert said is not None
    assert sent[0].startswith("Basic cHJvYmU6")
    _, *rest = said.body.split(" | ")
    assert rest == [HIDDEN, HIDDEN]
    assert sent[0] not in said.body


async def test_a_status_of_400_or_more_fails_and_with_should_fail_passes() -> None:
    async with http_origin(reply(status="503 Service Unavailable")) as origin:
        failed = await outcome(a_url_spec(origin.url()))
        expected = await outcome(a_url_spec(origin.url(), should_fail=True))
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.HTTP_STATUS
    assert expected.status is Status.PASSED


async def test_the_wrong_status_fails_its_assertion() -> None:
    async with http_origin(reply()) as origin:
        spec = a_url_spec(
            origin.url(), assertions=(a_status_assertion("200", Comparison.NOT_EQUALS),)
        )
        result = await outcome(spec)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.ASSERTION
    assert result.assertions[0].actual == "200"


async def test_a_url_check_always_gets() -> None:
    async with http_origin(reply()) as origin:
        request = an_http_request(
            origin.url(), method=HttpMethod.POST, body="x", body_type=BodyType.RAW
        )
        await outcome(a_url_spec(request=request))
    assert origin.asked[0].method == "GET"
    assert origin.asked[0].body == b""


async def test_variables_are_filled_into_the_request() -> None:
    async with http_origin(reply()) as origin, a_context() as plain:
        ctx = RunContext(
            network=plain.network,
            pings=plain.pings,
            timeout_s=LONG_S,
            variables=(Variable(key="PAGE", value="a b"),),
        )
        result = await looked_at(a_url_spec(origin.url("/{{PAGE}}")), ctx)
    assert result.status is Status.PASSED
    assert origin.asked[0].target == "/a%20b"


@pytest.mark.parametrize(
    ("page", "kind", "words"),
    [
        (silence, FailureKind.TIMEOUT, "No first byte from"),
        (begins(reply(b"half", length=8)), FailureKind.TIMEOUT, "stalled after 4 bytes"),
        (resets_after(b""), FailureKind.CONNECT, "reset the connection"),
        (b"", FailureKind.PROTOCOL, "closed the connection without an answer"),
        (b"+OK POP3 ready\r\n", FailureKind.PROTOCOL, "answered with '+OK POP3 ready'"),
        (redirect("/"), FailureKind.REDIRECT, "goes round in a circle"),
        (reply(b"junk", content_encoding="gzip"), FailureKind.PROTOCOL, "cannot be decoded"),
    ],
    ids=["hangs", "stalls", "resets", "closes", "pop3", "loop", "bad gzip"],
)
async def test_a_broken_page_is_named(page: object, kind: FailureKind, words: str) -> None:
    timed_out = kind is FailureKind.TIMEOUT
    async with http_origin(page) as origin:
        for timeout_s in GROWING_S if timed_out else (LONG_S,):
            result = await outcome(a_url_spec(origin.url()), timeout_s=timeout_s)
            assert result.failure is not None
            if words in result.failure.message:
                break
    assert result.failure.kind is kind
    assert words in result.failure.message
    assert f"127.0.0.1:{origin.port}" in result.failure.message
    assert result.status is (Status.TIMED_OUT if timed_out else Status.FAILED)
    assert seen_of(result).request.url == origin.url()


async def test_nothing_there_is_named() -> None:
    result = await outcome(a_url_spec("http://127.0.0.1:1/"))
    assert result.failure is not None
    assert result.failure.message == "127.0.0.1:1 refused the connection (nothing listens there)."


async def test_an_expired_certificate_is_named_and_shown() -> None:
    ca = trustme.CA()
    async with http_origin(reply(), tls=certificates.expired(ca)) as origin:
        result = await outcome(
            a_url_spec(origin.url()), extra_ca_pem=certificates.pem_of(ca).decode()
        )
    assert result.failure is not None
    assert result.failure.kind is FailureKind.TLS
    assert "expired on" in result.failure.message
    tls = seen_of(result).tls
    assert tls is not None
    assert tls.days_to_expiry is not None
    assert tls.days_to_expiry < 0


async def test_too_slow_is_degraded_or_failed() -> None:
    async with http_origin(reply()) as origin:
        degraded = await outcome(a_url_spec(origin.url(), degraded_after_ms=0))
        failed = await outcome(a_url_spec(origin.url(), failed_after_ms=0))
    assert degraded.status is Status.DEGRADED
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.TOO_SLOW


async def test_only_the_start_of_a_page_is_stored() -> None:
    async with http_origin(reply(b"x" * 10_000, content_type="text/html")) as origin:
        result = await outcome(a_url_spec(origin.url()))
    response = seen_of(result).response
    assert response is not None
    assert (len(response.body), response.body_bytes, response.truncated) == (4096, 10_000, True)


@pytest.mark.parametrize("coding", ["UTF-8", "aws-chunked", "none", "compress", "zstd-next"])
async def test_a_coding_that_is_not_decoded_leaves_the_status_to_be_judged(coding: str) -> None:
    async with http_origin(reply(b"as it is", content_encoding=coding)) as origin:
        result = await outcome(a_url_spec(origin.url(), assertions=(a_status_assertion(),)))
    assert result.status is Status.PASSED
    response = seen_of(result).response
    assert response is not None
    assert response.body == "as it is"


async def test_a_large_body_is_read_to_its_end_but_not_kept() -> None:
    body = gzip.compress(bytes(20_000_000))
    async with http_origin(reply(body, content_encoding="gzip")) as origin, a_context() as ctx:
        tracemalloc.start()
        try:
            spec = a_url_spec(request=an_http_request(origin.url()))
            seen = await UrlRunner().observe(spec, ctx)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(seen.evidence, HttpEvidence)
    assert seen.evidence.response is not None
    assert seen.evidence.response.body_bytes == 20_000_000
    assert seen.evidence.response.truncated
    assert peak_bytes < 2_000_000
