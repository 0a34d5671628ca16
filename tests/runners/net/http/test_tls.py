"""TLS: what is told of a good certificate, and why a bad one is refused."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from contract.job import ClientCertificate
from contract.requests import HttpVersion
from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from tests.builders.patience import GROWING_S, LONG_S
from tests.builders.specs import an_http_request
from tests.servers import http_certificates as certificates
from tests.servers.http2_origin import http2_origin
from tests.servers.http_origin import http_origin, redirect, reply
from tests.servers.tcp import tcp_server


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def engine(ca: trustme.CA) -> AsyncIterator[HttpEngine]:
    async with HttpEngine(EgressRules(), extra_ca_pem=certificates.pem_of(ca)) as engine:
        yield engine
        assert engine.running == 0


async def test_a_good_certificate_is_verified_and_its_facts_are_told(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.tls is not None
    assert (seen.tls.verified, seen.tls.verify_error) == (True, None)
    assert seen.tls.version == "TLSv1.3"
    assert (seen.tls.cipher or "").startswith("TLS_")
    assert seen.tls.days_to_expiry is not None
    assert seen.tls.days_to_expiry > 0
    assert seen.tls.chain[0].names == ("127.0.0.1", "localhost")
    assert len(seen.tls.chain[0].fingerprint_sha256) == 64
    assert seen.timings.tls is not None


async def test_tls_1_2_is_told_apart(engine: HttpEngine, ca: trustme.CA) -> None:
    context = certificates.good(ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with http_origin(reply(), tls=context) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.tls is not None
    assert seen.tls.version == "TLSv1.2"


async def test_a_server_with_an_unusual_key_exchange_is_reached(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    context = certificates.good(ca)
    context.set_ecdh_curve("secp521r1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = asyncio.create_task(asyncio.to_thread(answer_one, listening, context))
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        seen = await engine.exchange(an_http_request(url), timeout_s=LONG_S)
        refused = await answering
    assert seen.failure is None
    assert seen.tls is not None
    assert seen.tls.verified
    assert refused == 1


def answer_one(listening: socket.socket, context: ssl.SSLContext) -> int:
    """Answer the first client that gets through its handshake; how many did not.

    Not asyncio's TLS: that closes without the alert that real servers send.
    """
    refused = 0
    while True:
        accepted, _ = listening.accept()
        try:
            with context.wrap_socket(accepted, server_side=True) as connection:
                connection.recv(65_536)
                connection.sendall(reply())
                return refused
        except ssl.SSLError:
            refused += 1


async def test_a_server_with_another_tls_version_alone_is_named(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    context = certificates.good(ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA")  # RSA keys only, and the certificate's is none
    async with http_origin(reply(), tls=context) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    assert "did not agree on TLS" in seen.failure.message


BAD: list[tuple[str, Callable[[trustme.CA], ssl.SSLContext], str]] = [
    ("expired", certificates.expired, "it expired on "),
    ("not yet valid", certificates.not_yet_valid, "it is valid from "),
    (
        "wrong host",
        certificates.wrong_host,
        "it does not speak for the address 127.0.0.1 but for shop.example, *.shop.example",
    ),
    ("unknown issuer", lambda _: certificates.good(trustme.CA()), "its issuer OU=Testing CA"),
    ("self-signed", lambda _: certificates.self_signed(), "it is self-signed and names no host"),
]


@pytest.mark.parametrize(("context", "why"), [one[1:] for one in BAD], ids=[b[0] for b in BAD])
async def test_a_bad_certificate_is_refused_with_its_reason_and_its_facts(
    engine: HttpEngine,
    ca: trustme.CA,
    context: Callable[[trustme.CA], ssl.SSLContext],
    why: str,
) -> None:
    async with http_origin(reply(), tls=context(ca)) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    place = f"127.0.0.1:{origin.port}"
    assert f"The certificate of {place} cannot be trusted: {why}" in seen.failure.message
    assert seen.tls is not None
    assert not seen.tls.verified
    assert (seen.tls.verify_error or "").startswith(why)
    assert len(seen.tls.chain) > 0
    assert seen.tls.version == "TLSv1.3"
    assert origin.asked == []


@pytest.mark.parametrize(("context", "why"), [one[1:] for one in BAD], ids=[b[0] for b in BAD])
async def test_with_skip_ssl_the_answer_is_read_and_the_reason_is_told_all_the_same(
    engine: HttpEngine,
    ca: trustme.CA,
    context: Callable[[trustme.CA], ssl.SSLContext],
    why: str,
) -> None:
    async with http_origin(reply(b"inside"), tls=context(ca)) as origin:
        seen = await engine.exchange(an_http_request(origin.url(), skip_ssl=True), timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.answer is not None
    assert seen.answer.body == b"inside"
    assert seen.tls is not None
    assert not seen.tls.verified
    assert (seen.tls.verify_error or "").startswith(why)
    assert len(origin.asked) == 1


async def test_an_expired_certificate_counts_negative_days(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    async with http_origin(reply(), tls=certificates.expired(ca)) as origin:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.tls is not None
    assert seen.tls.days_to_expiry is not None
    assert -4 < seen.tls.days_to_expiry <= -3


async def test_every_exchange_does_a_full_handshake(engine: HttpEngine, ca: trustme.CA) -> None:
    context = certificates.good(ca)
    async with http_origin(reply(), tls=context) as origin:
        for _ in range(4):
            await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert context.session_stats()["accept_good"] == 4
    assert context.session_stats()["hits"] == 0


@pytest.mark.parametrize(
    "words", [b"220 mail.example ESMTP\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
async def test_a_port_without_tls_is_named(engine: HttpEngine, words: bytes) -> None:
    async def banner(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        await asyncio.sleep(3600)

    async with tcp_server(banner) as port:
        seen = await engine.exchange(
            an_http_request(f"https://127.0.0.1:{port}/"), timeout_s=LONG_S
        )
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    assert seen.failure.message == (
        f"127.0.0.1:{port} did not agree on TLS: it does not speak TLS on this port."
    )
    assert seen.tls is None


async def test_a_handshake_that_hangs_is_named_as_the_phase(engine: HttpEngine) -> None:
    async with http_origin(reply()) as origin:
        url = origin.url().replace("http:", "https:")
        for timeout_s in GROWING_S:
            seen = await engine.exchange(an_http_request(url), timeout_s=timeout_s)
            assert seen.failure is not None
            if seen.timings.tcp is not None:
                break
    assert seen.failure.message == (
        f"No TLS handshake with 127.0.0.1:{origin.port} within {timeout_s:g} s."
    )


async def test_http_2_is_negotiated_over_tls(engine: HttpEngine, ca: trustme.CA) -> None:
    context = certificates.context_of(ca.issue_cert("127.0.0.1"), alpn="h2")
    async with http2_origin(tls=context) as url:
        seen = await engine.exchange(an_http_request(url), timeout_s=LONG_S)
        insisted = an_http_request(url, http_version=HttpVersion.HTTP_2)
        again = await engine.exchange(insisted, timeout_s=LONG_S)
    for one in (seen, again):
        assert one.failure is None
        assert one.answer is not None
        assert (one.answer.head.http_version, one.answer.body) == ("2", b"two")
        assert one.answer.head.headers["x-speaks"] == "h2"


async def test_http_1_1_is_kept_when_a_check_asks_for_it(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        request = an_http_request(origin.url(), http_version=HttpVersion.HTTP_1_1)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.answer is not None
    assert seen.answer.head.http_version == "1.1"


async def test_a_server_that_lacks_http_2_fails_a_check_that_insists(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        request = an_http_request(origin.url(), http_version=HttpVersion.HTTP_2)
        seen = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is not None
    assert seen.failure.kind in {FailureKind.TLS, FailureKind.PROTOCOL}
    assert "HTTP/2" in seen.failure.message


def shown_to(issuer: trustme.CA, host: str, *, ca: str | None = None) -> ClientCertificate:
    leaf = issuer.issue_cert("agent@picket.example")
    return ClientCertificate(
        host=host,
        cert=leaf.cert_chain_pems[0].bytes().decode(),
        key=leaf.private_key_pem.bytes().decode(),
        ca=ca,
    )


async def test_a_client_certificate_is_shown_to_the_host_that_it_is_for(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    context = certificates.wants_client(certificates.good(ca), ca)
    async with http_origin(reply(), tls=context) as origin:
        request = an_http_request(origin.url())
        mine = await engine.exchange(
            request, timeout_s=LONG_S, client_certificates=[shown_to(ca, "127.*")]
        )
        none = await engine.exchange(
            request, timeout_s=LONG_S, client_certificates=[shown_to(ca, "*.example.com")]
        )
    assert mine.failure is None
    assert none.failure is not None
    assert none.failure.kind is FailureKind.TLS
    assert none.failure.message == (
        f"127.0.0.1:{origin.port} broke off TLS: it asked for a client certificate, and closed "
        "the connection instead of an answer."
    )


async def test_the_exact_host_wins_over_a_newer_glob(engine: HttpEngine, ca: trustme.CA) -> None:
    stranger = trustme.CA()
    context = certificates.wants_client(certificates.good(ca), ca)
    async with http_origin(reply(), tls=context) as origin:
        chosen = [shown_to(stranger, "127.0.0.*"), shown_to(ca, "127.0.0.1")]
        request = an_http_request(origin.url())
        seen = await engine.exchange(request, timeout_s=LONG_S, client_certificates=chosen)
    assert seen.failure is None


async def test_a_certificate_brings_a_root_of_its_own() -> None:
    private = trustme.CA()
    root = private.cert_pem.bytes().decode()
    async with (
        HttpEngine(EgressRules()) as engine,
        http_origin(reply(), tls=certificates.good(private)) as origin,
    ):
        request = an_http_request(origin.url())
        with_root = [shown_to(private, "127.0.0.1", ca=root)]
        seen = await engine.exchange(request, timeout_s=LONG_S, client_certificates=with_root)
        without = await engine.exchange(request, timeout_s=LONG_S)
    assert seen.failure is None
    assert without.failure is not None


async def test_a_broken_client_certificate_is_the_checks_fault(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    broken = ClientCertificate(host="*", cert="no pem", key="no pem")
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        request = an_http_request(origin.url())
        seen = await engine.exchange(request, timeout_s=LONG_S, client_certificates=[broken])
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    assert "The client certificate for 127.0.0.1 cannot be used" in seen.failure.message
    assert "no pem" not in seen.failure.message


@pytest.mark.parametrize(
    "change",
    [
        {"ca": "no pem"},
        {"ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
        {"passphrase": "null\0byte"},
    ],
    ids=["no root", "broken root", "null byte"],
)
async def test_a_client_certificate_whose_parts_cannot_be_read_is_the_checks_fault(
    engine: HttpEngine, ca: trustme.CA, change: dict[str, str]
) -> None:
    broken = msgspec.structs.replace(shown_to(ca, "*"), **change)
    async with http_origin(reply(), tls=certificates.good(ca)) as origin:
        request = an_http_request(origin.url())
        seen = await engine.exchange(request, timeout_s=LONG_S, client_certificates=[broken])
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.TLS
    assert "The client certificate for 127.0.0.1 cannot be used" in seen.failure.message


async def test_a_passphrase_may_hold_any_letter(engine: HttpEngine, ca: trustme.CA) -> None:
    leaf = shown_to(ca, "*")
    secret = "schlüssel-鍵"
    key = serialization.load_pem_private_key(leaf.key.encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(secret.encode()),
    )
    mine = msgspec.structs.replace(leaf, key=locked.decode(), passphrase=secret)
    context = certificates.wants_client(certificates.good(ca), ca)
    async with http_origin(reply(), tls=context) as origin:
        request = an_http_request(origin.url())
        seen = await engine.exchange(request, timeout_s=LONG_S, client_certificates=[mine])
    assert seen.failure is None


async def test_the_facts_of_the_last_hop_with_tls_are_kept(
    engine: HttpEngine, ca: trustme.CA
) -> None:
    async with http_origin(reply()) as plain:
        page = redirect(plain.url("/"))
        async with http_origin(page, tls=certificates.good(ca)) as origin:
            seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is None
    assert seen.tls is not None
    assert seen.tls.verified


async def test_what_a_first_handshake_loads_is_loaded_before_its_target_is_asked() -> None:
    loaded: list[bool] = []

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        roots = engine._roots
        assert roots is not None
        loaded.append("subjects" in vars(roots))
        writer.close()

    async with HttpEngine(EgressRules()) as engine:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        async with server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            assert (await engine.exchange(an_http_request(url), timeout_s=LONG_S)).failure
    assert loaded == [True]
