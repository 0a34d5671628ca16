"""Faults of TLS are told in the same words, whichever check meets them."""

import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest
import trustme

from contract.assertions import Comparison, Source
from contract.checks import TcpRequest
from contract.evidence import Certificate
from contract.result import Failure, FailureKind
from runners.net.tls.words import certificate_fault, handshake_fault
from runners.runner import RunContext
from runners.tcp import TcpRunner
from runners.url import UrlRunner
from tests.builders.context import a_context
from tests.builders.patience import LONG_S
from tests.builders.specs import a_tcp_spec, a_url_spec, an_assertion
from tests.servers import http_certificates as certificates

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
READS = (an_assertion(Source.RESPONSE_DATA, Comparison.NOT_EMPTY),)


@contextmanager
def listening(context: ssl.SSLContext | None) -> Iterator[int]:
    """A TLS server that says why it refuses, which asyncio's does not; None: one without TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server, context), name="TLS server")
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def serve(server: socket.socket, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            accepted, _ = server.accept()
        except OSError:
            return  # the test is over
        accepted.settimeout(LONG_S)
        with accepted, suppress(OSError):
            if context is None:
                accepted.sendall(b"220 mail.example ESMTP\r\n")
                accepted.recv(65_536)
            else:
                refuse_politely(accepted, context)


def refuse_politely(accepted: socket.socket, context: ssl.SSLContext) -> None:
    """Shake hands and, like real servers, close only after the client has read the alert."""
    connection = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
    try:
        connection.do_handshake()
    except ssl.SSLError:
        with socket.socket(fileno=connection.detach()) as plain:
            plain.settimeout(LONG_S)
            while plain.recv(65_536):
                pass
    connection.close()


async def by_url(port: int, ctx: RunContext) -> Failure | None:
    return (await UrlRunner().observe(a_url_spec(f"https://127.0.0.1:{port}/"), ctx)).failure


async def by_tcp(port: int, ctx: RunContext) -> Failure | None:
    request = TcpRequest(hostname="127.0.0.1", port=port, tls=True, data="hello\r\n")
    spec = a_tcp_spec(request=request, assertions=READS)
    return (await TcpRunner().observe(spec, ctx)).failure


def old_only(ca: trustme.CA) -> ssl.SSLContext:
    context = certificates.good(ca)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # being old is what is tested
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def other_ciphers(ca: trustme.CA) -> ssl.SSLContext:
    context = certificates.good(ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA")  # RSA keys only, and the certificate's is none
    return context


DISTRUST = "The certificate of {place} cannot be trusted: it "
REFUSAL = "{place} did not agree on TLS: it "


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        (
            certificates.expired,
            DISTRUST + f"expired on {certificates.NOW - 3 * certificates.DAY:%Y-%m-%d %H:%M} UTC.",
        ),
        (
            certificates.not_yet_valid,
            DISTRUST
            + f"is valid from {certificates.NOW + 3 * certificates.DAY:%Y-%m-%d %H:%M} UTC only.",
        ),
        (
            certificates.wrong_host,
            DISTRUST + "does not speak for the address 127.0.0.1 but for "
            "shop.example, *.shop.example.",
        ),
        (lambda _: None, REFUSAL + "does not speak TLS on this port."),
        (
            old_only,
            REFUSAL + "accepts neither TLS 1.2 nor TLS 1.3, and older versions are not offered.",
        ),
        (
            other_ciphers,
            REFUSAL + "accepts none of the ciphers and keys offered, or it wants a "
            "client certificate.",
        ),
        (
            lambda ca: certificates.wants_client(certificates.good(ca), ca),
            "{place} broke off TLS: it wants a client certificate, and none was shown.",
        ),
    ],
    # Of their own: the sentences hold minutes of now, and each worker's must be the same.
    ids=[
        "expired",
        "not yet valid",
        "wrong host",
        "no TLS",
        "old only",
        "other ciphers",
        "wants a certificate",
    ],
)
async def test_both_kinds_of_checks_use_the_same_sentence(
    server: Callable[[trustme.CA], ssl.SSLContext | None], sentence: str
) -> None:
    ca = trustme.CA()
    with listening(server(ca)) as port:
        async with a_context(extra_ca_pem=certificates.pem_of(ca).decode()) as ctx:
            seen = [await by_url(port, ctx), await by_tcp(port, ctx)]
    told = sentence.format(place=f"127.0.0.1:{port}")
    assert [failure and (failure.kind, failure.message) for failure in seen] == [
        (FailureKind.TLS, told)
    ] * 2


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (
            "TLS connect error: error:0A00042E:SSL routines::tlsv1 alert protocol version",
            "it accepts neither TLS 1.2 nor TLS 1.3, and older versions are not offered",
        ),
        (
            "SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
            "it wants a client certificate, and none was shown",
        ),
        ("TLSV1_ALERT_UNKNOWN_CA", "it does not accept the client certificate"),
        ("BAD_KEY_SHARE", "bad key share"),
        ("error:0A00006C:SSL routines::bad key share, errno 0", "bad key share"),
        ("unknown error (_ssl.c:992)", "unknown error"),
        ("[SSL] internal error (_ssl.c:2580)", "[SSL] internal error"),
        ("", "no reason given"),
    ],
)
def test_openssls_words_become_a_sentence(words: str, fault: str) -> None:
    assert handshake_fault(words) == fault


def a_certificate(**changes: object) -> Certificate:
    fields = {
        "subject": "CN=shop.test",
        "issuer": "CN=Example CA",
        "serial": "1",
        "not_before": NOW - timedelta(days=1),
        "not_after": NOW + timedelta(days=1),
        "names": ("*.shop.test", "shop.test"),
        "fingerprint_sha256": "ab" * 32,
    }
    return Certificate(**{**fields, **changes})  # type: ignore[arg-type]  # a builder takes any


LEAF = a_certificate()
MIDDLE = a_certificate(subject="CN=Example CA", issuer="CN=Far Root", names=())
ROOT = a_certificate(subject="CN=Far Root", issuer="CN=Far Root", names=())


@pytest.mark.parametrize(
    ("code", "chain", "host", "fault"),
    [
        (20, (LEAF,), "shop.test", "its issuer CN=Example CA is unknown"),
        (20, (LEAF, MIDDLE), "a.shop.test", "its chain's issuer CN=Far Root is unknown"),
        (19, (LEAF, MIDDLE, ROOT), "shop.test", "its chain ends in the self-signed CN=Far Root"),
        (20, (LEAF,), "a.b.shop.test", "it does not speak for a.b.shop.test but for *.shop.test"),
        (62, (LEAF,), "shop.test", "it does not speak for shop.test but for"),
        (18, (a_certificate(issuer="CN=shop.test"),), "SHOP.test.", "it is self-signed"),
        (10, (LEAF, MIDDLE), "shop.test", "a certificate of its chain has expired"),
        (10, (), "shop.test", "a certificate of its chain has expired"),
        (99, (LEAF,), "shop.test", "odd"),
        (99, (), "shop.test", "odd"),
    ],
)
def test_a_distrusted_certificate_is_told_with_names(
    code: int, chain: tuple[Certificate, ...], host: str, fault: str
) -> None:
    told = certificate_fault(code, chain, host=host, now=NOW, words="odd")
    assert told.startswith(fault)


def test_a_code_without_words_is_told_as_it_is() -> None:
    assert certificate_fault(99, (LEAF,), host="shop.test", now=NOW, words="") == (
        "OpenSSL reports 99"
    )
