"""Targets that are broken, and the sentence that names the cause."""

import asyncio
import contextlib
import errno
import gc
import gzip
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pycurl
import pytest

from contract.requests import HttpMethod, HttpVersion, IpFamily
from contract.result import Failure, FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.curl_multi import CurlResult
from runners.net.http.errors import EngineError, FailedHop, to_failure
from runners.net.http.exchange import HttpExchange
from runners.net.http.request import build_first_hop
from runners.net.http.transfer import CurlTimings, TransferResult
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.specs import an_http_request
from tests.servers.http_origin import (
    Asked,
    Page,
    begins,
    drips,
    http_origin,
    reply,
    reset,
    resets_after,
    silence,
)
from tests.servers.island import PROHIBITED, island
from tests.servers.tcp import refusing_port


@pytest.fixture
async def engine() -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules()) as engine:
        yield engine
        assert engine.running == 0


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken but does not listen."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def broken(
    engine: HttpEngine, url: str, *, timeout_s: float = LONG_S, **changes: object
) -> tuple[Failure, HttpExchange]:
    seen = await engine.exchange(an_http_request(url, **changes), timeout_s=timeout_s)
    assert seen.failure is not None
    return seen.failure, seen


async def broken_page(
    engine: HttpEngine, page: Page, *, timeout_s: float = LONG_S
) -> tuple[Failure, HttpExchange, str]:
    async with http_origin(page) as origin:
        failure, seen = await broken(engine, origin.url(), timeout_s=timeout_s)
    return failure, seen, f"127.0.0.1:{origin.port}"


async def timed_out(
    engine: HttpEngine, page: Page, *, phase: str
) -> tuple[Failure, HttpExchange, str]:
    """Time ran out in this phase; the last text is the end of the sentence."""
    for timeout_s in GROWING_S:
        failure, seen, place = await broken_page(engine, page, timeout_s=timeout_s)
        if failure.detail["phase"] == phase:
            return failure, seen, f"{place} within {timeout_s:g} s."
    raise AssertionError(f"it never came to the phase {phase}")


async def times_out_saying(engine: HttpEngine, page: Page, words: str) -> None:
    """Time ran out with a sentence that begins with these words, in which the peer is `{}`."""
    for timeout_s in GROWING_S:
        failure, _, place = await broken_page(engine, page, timeout_s=timeout_s)
        if failure.message.startswith(words.format(place)):
            assert failure.kind is FailureKind.TIMEOUT
            return
    raise AssertionError(f"it never said: {words}")


async def test_nothing_listens(engine: HttpEngine, closed_port: int) -> None:
    failure, seen = await broken(engine, f"http://127.0.0.1:{closed_port}/")
    assert failure.kind is FailureKind.CONNECT
    assert (
        failure.message
        == f"127.0.0.1:{closed_port} refused the connection (nothing listens there)."
    )
    assert failure.detail["code"] == "ECONNREFUSED"
    assert failure.detail["port"] == closed_port
    assert seen.answer is None
    phases = (seen.timings.tcp, seen.timings.first_byte, seen.timings.download)
    assert phases == (None, None, None), "a phase that did not happen has no time"
    assert seen.timings.total is not None
    assert seen.sent.method == "GET"


async def test_nothing_listens_behind_a_name(engine: HttpEngine, closed_port: int) -> None:
    failure, _ = await broken(engine, f"http://localhost:{closed_port}/")
    assert failure.message.startswith(f"localhost:{closed_port} (127.0.0.1) refused")
    assert failure.detail["address"] == "127.0.0.1"


async def test_a_name_that_does_not_exist(engine: HttpEngine) -> None:
    failure, _ = await broken(engine, "http://nowhere.invalid/")
    assert failure.kind is FailureKind.DNS
    assert failure.message == "The name nowhere.invalid does not resolve to an IPv4 address."
    assert failure.detail["code"] == "ENOTFOUND"
    assert failure.detail["syscall"] == "queryA"


@pytest.mark.parametrize(
    ("url", "family", "sentence"),
    [
        (
            "http://[::1]/",
            IpFamily.IPV4,
            "::1 is an IPv6 address, and the check's ipFamily is IPv4; set ipFamily to IPv6.",
        ),
        ("http://10.1.2.3/", IpFamily.IPV6, "10.1.2.3 is an IPv4 address"),
    ],
)
async def test_an_address_of_the_other_family_is_not_tried(
    engine: HttpEngine, url: str, family: IpFamily, sentence: str
) -> None:
    failure, _ = await broken(engine, url, ip_family=family)
    assert failure.kind is FailureKind.CONNECT
    assert failure.message.startswith(sentence)
    assert failure.detail["code"] == "ERR_INVALID_IP_ADDRESS"


async def test_ipv6_is_used_when_asked_for(engine: HttpEngine) -> None:
    async with http_origin(reply(b"six"), host="::1") as origin:
        request = an_http_request(origin.url(), ip_family=IpFamily.IPV6)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.remote_address == "::1"


async def test_silence_times_out_waiting_for_the_first_byte(engine: HttpEngine) -> None:
    failure, seen, place_and_time = await timed_out(engine, silence, phase="firstByte")
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.message == f"No first byte from {place_and_time}"
    assert seen.timings.tcp is not None
    assert seen.timings.first_byte is not None
    assert seen.timings.download is None


async def test_a_peer_that_never_accepts_times_out_connecting(engine: HttpEngine) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.settimeout(0)
            one.connect_ex(place)
        await asyncio.sleep(0.05)
        failure, _ = await broken(engine, f"http://127.0.0.1:{place[1]}/", timeout_s=0.3)
        for one in waiting:
            one.close()
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.message == f"No connection to 127.0.0.1:{place[1]} within 0.3 s."


async def test_a_body_that_stalls_is_told_with_what_came(engine: HttpEngine) -> None:
    page = begins(reply(b"only this", length=1000))
    failure, seen, place_and_time = await timed_out(engine, page, phase="download")
    assert failure.kind is FailureKind.TIMEOUT
    place, _, within = place_and_time.partition(" within ")
    assert failure.message == (
        f"The body from {place} stalled after 9 bytes; it was not complete within {within}"
    )
    assert seen.answer is not None
    assert seen.answer.body == b"only this"
    assert [hop.status_code for hop in seen.hops] == [200]


async def test_headers_that_stall_are_not_called_a_body(engine: HttpEngine) -> None:
    page = begins(b"HTTP/1.1 200 OK\r\nX-A: b\r\nX-B: ")
    failure, seen, place_and_time = await timed_out(engine, page, phase="download")
    place, _, within = place_and_time.partition(" within ")
    assert failure.message == (
        f"The headers from {place} stalled after 2 lines; they were not complete within {within}"
    )
    assert seen.timings.download is not None


@pytest.mark.parametrize(
    ("head", "part", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n", "The headers from {} were still arriving after "),
        (reply(b"", length=1000), b"abc", "The body from {} was still arriving after "),
    ],
    ids=["headers", "body"],
)
async def test_a_response_that_drips_does_not_stall(
    engine: HttpEngine, head: bytes, part: bytes, words: str
) -> None:
    await times_out_saying(engine, drips(head, part), words)


async def test_a_response_that_dripped_and_then_hangs_stalls(engine: HttpEngine) -> None:
    page = drips(reply(b"", length=1000), b"abc", times=2)
    await times_out_saying(engine, page, "The body from {} stalled after 6 bytes; ")


async def test_interim_responses_alone_are_no_first_byte(engine: HttpEngine) -> None:
    page = begins(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
    for timeout_s in GROWING_S:
        failure, seen, place = await broken_page(engine, page, timeout_s=timeout_s)
        if "interim" in failure.message:
            break
    assert failure.message == (
        f"No final response from {place} within {timeout_s:g} s; it sent interim ones only."
    )
    assert failure.detail["phase"] == "firstByte"
    assert seen.answer is None


async def test_a_time_out_says_in_which_phase_the_time_went(engine: HttpEngine) -> None:
    page = begins(reply(b"only this", length=1000))
    for hung, phase in ((silence, "firstByte"), (page, "download")):
        _, seen, _ = await timed_out(engine, hung, phase=phase)
        times = seen.timings
        phases = (times.wait, times.tcp, times.first_byte, times.download)
        assert sum(phase or 0 for phase in phases) == pytest.approx(times.total)
        assert max(phase or 0 for phase in phases) == pytest.approx(times.total, rel=0.5)


async def test_a_connection_closed_without_an_answer(engine: HttpEngine) -> None:
    failure, _, place = await broken_page(engine, b"")
    assert failure.kind is FailureKind.PROTOCOL
    assert failure.message == f"{place} closed the connection without an answer."


async def test_a_connection_reset_before_the_answer(engine: HttpEngine) -> None:
    failure, _, place = await broken_page(engine, resets_after(b""))
    assert failure.kind is FailureKind.CONNECT
    assert failure.message == f"{place} reset the connection before it answered."
    assert failure.detail["code"] == "ECONNRESET"


async def test_a_connection_reset_in_the_middle_of_the_body(engine: HttpEngine) -> None:
    page = resets_after(reply(b"half", length=8))
    failure, seen, place = await broken_page(engine, page)
    assert failure.kind is FailureKind.CONNECT
    assert failure.message == (
        f"{place} reset the connection in the middle of the body, after 4 bytes."
    )
    assert seen.answer is not None
    assert seen.answer.body == b"half"


async def test_a_body_shorter_than_announced(engine: HttpEngine) -> None:
    async def page(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b"half", length=8))
        await writer.drain()
        writer.close()

    failure, seen, place = await broken_page(engine, page)
    assert failure.kind is FailureKind.PROTOCOL
    assert failure.message == (
        f"{place} closed the connection in the middle of the body, after 4 of 8 bytes."
    )
    assert seen.answer is not None


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"this is no gzip"),
        ("gzip", gzip.compress(b"x" * 10_000, mtime=0)[:20] + b"rubbish" * 20),
        ("br", b"\xff\xff\xff\xff\xff"),
    ],
)
async def test_a_body_that_cannot_be_decoded(
    engine: HttpEngine, encoding: str, body: bytes
) -> None:
    failure, seen, _ = await broken_page(engine, reply(body, content_encoding=encoding))
    assert failure.kind is FailureKind.PROTOCOL
    assert f"says it is encoded as {encoding} and cannot be decoded" in failure.message
    assert failure.detail["code"] == "ERR_CONTENT_ENCODING"
    assert seen.answer is not None
    assert seen.answer.head.status_code == 200


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (b"220 mail.example ESMTP\r\n", "'220 mail.example ESMTP'"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "'SSH-2.0-OpenSSH_9.2'"),
        (b"\x00\x01" + b"a" * 200, rf"'\x00\x01{'a' * 98}'"),
    ],
    ids=["smtp", "ssh", "binary"],
)
@pytest.mark.parametrize("closes", [True, False])
async def test_what_is_no_http_is_shown(
    engine: HttpEngine, words: bytes, shown: str, *, closes: bool
) -> None:
    failure, _, place = await broken_page(engine, words if closes else begins(words))
    assert failure.kind is FailureKind.PROTOCOL
    assert failure.message == f"{place} answered with {shown}, which is no status line of HTTP."


async def test_what_is_no_http_is_a_failure_of_head_too(engine: HttpEngine) -> None:
    async with http_origin(b"SSH-2.0-OpenSSH_9.2\r\n") as origin:
        request = an_http_request(origin.url(), method=HttpMethod.HEAD)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.message.endswith("did not answer as HTTP demands: what it sent is no HTTP.")


@pytest.mark.parametrize(
    ("lengths", "why"),
    [
        (("5", "6"), "its second Content-Length is not 5, as its first one is"),
        (("five",), "its Content-Length is not one whole number of bytes"),
        (("5, 6",), "its Content-Length is not one whole number of bytes"),
    ],
)
async def test_lengths_that_contradict_each_other_are_named(
    engine: HttpEngine, lengths: tuple[str, ...], why: str
) -> None:
    fields = "".join(f"Content-Length: {one}\r\n" for one in lengths)
    page = f"HTTP/1.1 200 OK\r\n{fields}\r\nhello".encode()
    failure, _, place = await broken_page(engine, page)
    assert failure.message == f"{place} did not answer as HTTP demands: {why}."


async def test_a_broken_chunk_is_a_protocol_failure(engine: HttpEngine) -> None:
    page = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhel\r\n"
    failure, _, _ = await broken_page(engine, page)
    assert failure.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize(
    ("fields", "much"),
    [
        (b"".join(b"x-%d: y\r\n" % n for n in range(100_000)), "more than 5000 header lines"),
        ((b"x: " + b"y" * 1000 + b"\r\n") * 1000, "more than 307200 bytes of headers"),
        (b"x: " + b"y" * 400_000 + b"\r\n", "a header line of 102400 bytes or more"),
    ],
    ids=["endless", "large", "one line"],
)
async def test_too_many_headers_are_named_with_their_limit(
    engine: HttpEngine, fields: bytes, much: str
) -> None:
    failure, _, place = await broken_page(engine, b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n")
    assert failure.kind is FailureKind.PROTOCOL
    assert failure.message == f"{place} sent {much}, more than is read."


async def test_a_server_without_http_2_is_named_when_a_check_insists(engine: HttpEngine) -> None:
    async def page(_: object, writer: asyncio.StreamWriter) -> None:
        reset(writer)

    async with http_origin(page) as origin:
        failure, _ = await broken(engine, origin.url(), http_version=HttpVersion.HTTP_2)
    assert failure.kind in {FailureKind.PROTOCOL, FailureKind.CONNECT}


async def test_a_server_without_http_3_is_named_when_a_check_insists(engine: HttpEngine) -> None:
    with refusing_port(socket.SOCK_DGRAM) as port:
        url = f"https://127.0.0.1:{port}/"
        failure, _ = await broken(engine, url, http_version=HttpVersion.HTTP_3)
    assert failure.kind is FailureKind.CONNECT
    assert failure.message == f"Nothing answered HTTP/3 (QUIC over UDP) at 127.0.0.1:{port}."


async def test_silence_over_udp_is_told_as_no_http_3(engine: HttpEngine) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        failure, _ = await broken(
            engine, f"https://{place}/", timeout_s=0.3, http_version=HttpVersion.HTTP_3
        )
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.message == f"Nothing answered HTTP/3 (QUIC over UDP) at {place} within 0.3 s."


@pytest.mark.parametrize(
    ("proxy", "sentence"),
    [
        (None, "shop.test:9204 (10.0.0.1) cannot be reached (no route to host)."),
        ("proxy.test:3128", "The location's proxy proxy.test:3128 cannot be reached"),
    ],
)
def test_a_name_keeps_its_letters_at_the_start_of_a_sentence(
    proxy: str | None, sentence: str
) -> None:
    seen = TransferResult(
        ended=CurlResult(pycurl.E_COULDNT_CONNECT, "Could not connect"),
        head=None,
        body=b"",
        body_cut=False,
        times=CurlTimings(0, 1, 0, 0, 0, 2),
        address="10.0.0.1",
        errno=errno.EHOSTUNREACH,
        refusal=None,
    )
    hop = build_first_hop(an_http_request("http://shop.test:9204/"))
    now = datetime(2026, 11, 21, tzinfo=UTC)
    attempt = FailedHop(hop=hop, seen=seen, timeout_s=LONG_S, now=now, proxy=proxy)
    assert to_failure(attempt).message.startswith(sentence)


def ended_with(code: int, *, tcp: int) -> FailedHop:
    seen = TransferResult(
        ended=CurlResult(code, "Something new"),
        head=None,
        body=b"",
        body_cut=False,
        times=CurlTimings(0, 1, tcp, 0, 0, 9),
        address="127.0.0.1",
        errno=0,
        refusal=None,
    )
    hop = build_first_hop(an_http_request("http://127.0.0.1:80/"))
    return FailedHop(hop=hop, seen=seen, timeout_s=LONG_S, now=datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize("code", [43, 55, 63, 94, 101, 200])
def test_whatever_libcurl_ends_with_on_a_connection_is_the_targets(code: int) -> None:
    failure = to_failure(ended_with(code, tcp=2))
    assert failure.kind is FailureKind.PROTOCOL
    assert failure.message == ("127.0.0.1:80 did not answer as HTTP demands: Something new.")


@pytest.mark.parametrize(
    ("code", "tcp"), [(pycurl.E_OUT_OF_MEMORY, 2), (pycurl.E_WRITE_ERROR, 2), (43, 0)]
)
def test_what_no_server_can_cause_is_ours(code: int, tcp: int) -> None:
    with pytest.raises(EngineError):
        to_failure(ended_with(code, tcp=tcp))


@contextlib.contextmanager
def no_descriptors_left() -> Iterator[None]:
    gc.collect()  # what earlier tests left must not give a descriptor back in the middle
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(2))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in held:
            os.close(one)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "nowhere.invalid"])
async def test_running_out_of_descriptors_is_our_fault(engine: HttpEngine, host: str) -> None:
    async with http_origin(reply()) as origin:
        request = an_http_request(f"http://{host}:{origin.port}/")
        with no_descriptors_left(), pytest.raises(OSError, match="Too many open files"):
            await engine.exchange(request, timeout_s=LONG_S)
        if host == "127.0.0.1":
            assert (await engine.exchange(request, timeout_s=LONG_S)).failure is None


async def test_a_forbidden_way_is_named(engine: HttpEngine) -> None:
    with island():
        failure, _ = await broken(engine, f"http://{PROHIBITED}/")
    assert failure.kind is FailureKind.CONNECT
    assert (
        failure.message == f"{PROHIBITED}:80 cannot be reached (a firewall or a route forbids it)."
    )


def leave_one_local_port() -> None:
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("50000 50000")


async def test_running_out_of_local_ports_is_our_fault(engine: HttpEngine) -> None:
    arrived = asyncio.Event()

    async def page(asked: Asked, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await silence(asked, writer)

    with island():
        async with http_origin(page) as origin:
            leave_one_local_port()
            request = an_http_request(origin.url())
            holding = asyncio.create_task(engine.exchange(request, timeout_s=LONG_S))
            await arrived.wait()
            with pytest.raises(OSError, match="Cannot assign requested address"):
                await engine.exchange(request, timeout_s=LONG_S)
            holding.cancel()
