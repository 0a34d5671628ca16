"""URL and TCP checks judge the same certificate alike, each with its own TLS library."""

import ssl
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from contract.checks import TcpRequest
from contract.evidence import HttpEvidence, TlsFacts
from contract.result import Failure, FailureKind, TcpEvidence
from runners.runner import Observation, RunContext
from runners.tcp import TcpRunner
from runners.url import UrlRunner
from tests.builders.certificate_chains import Chain, address, dns
from tests.builders.context import a_context
from tests.builders.specs import a_tcp_spec, a_url_spec
from tests.servers.http_origin import http_origin, reply

HOSTS = (
    *("localhost", "localhost.", "127.1"),
    *(f"{label}.shop.localhost" for label in ("a", "a_b", "xn--bcher-kva")),
)
NAMES = dict.fromkeys(HOSTS, ("127.0.0.1",))
UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), b"\x05\x00")


def permitted(name: str) -> x509.NameConstraints:
    return x509.NameConstraints(permitted_subtrees=dns(name), excluded_subtrees=None)


def excluded(name: str) -> x509.NameConstraints:
    return x509.NameConstraints(permitted_subtrees=None, excluded_subtrees=dns(name))


async def by_url(host: str, port: int, ctx: RunContext) -> Observation:
    return await UrlRunner().observe(a_url_spec(f"https://{host}:{port}/"), ctx)


async def by_tcp(host: str, port: int, ctx: RunContext) -> Observation:
    request = TcpRequest(hostname=host, port=port, tls=True)
    return await TcpRunner().observe(a_tcp_spec(request=request), ctx)


async def by_both(
    chain: Chain, roots: bytes, host: str = "localhost", *, server: ssl.SSLContext | None = None
) -> list[Observation]:
    async with (
        http_origin(reply(), tls=server or chain.server()) as origin,
        a_context(extra_ca_pem=roots.decode(), names=NAMES) as ctx,
    ):
        return [await look(host, origin.port, ctx) for look in (by_url, by_tcp)]


def reason(failure: Failure | None) -> str | None:
    """Why the certificate is not trusted. None: it is."""
    if failure is None:
        return None
    assert failure.kind is FailureKind.TLS
    return failure.message.partition(" cannot be trusted: ")[2]


def facts(seen: Observation) -> TlsFacts:
    assert isinstance(seen.evidence, HttpEvidence | TcpEvidence)
    assert seen.evidence.tls is not None
    return seen.evidence.tls


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("localhost", {}),
    "address": ("127.0.0.1", {}),
    "wildcard": ("a.shop.localhost", {"names": dns("*.shop.localhost")}),
    "wildcard for a label with an underscore": (
        "a_b.shop.localhost",
        {"names": dns("*.shop.localhost")},
    ),
    "wildcard for an international label": (
        "xn--bcher-kva.shop.localhost",
        {"names": dns("*.shop.localhost")},
    ),
    "short form of an address": ("127.1", {}),
    "name in capitals": ("localhost", {"names": dns("LOCALHOST")}),
    "host with a final dot": ("localhost.", {}),
    "without key identifiers": ("localhost", {"has_key_identifiers": False}),
    "root without critical constraints": ("localhost", {"root_is_critical": False}),
    "permitted name": (
        "localhost",
        {"names": dns("localhost"), "middle_constraints": permitted("localhost")},
    ),
}

BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "common name alone": (
        "localhost",
        {"names": ()},
        "it names no host as a subject alternative name; its subject CN=localhost does not count",
    ),
    "common name beside an e-mail address": (
        "localhost",
        {"names": (x509.RFC822Name("a@shop.example"),)},
        "it names no host as a subject alternative name",
    ),
    "address as the common name alone": (
        "127.0.0.1",
        {"names": (), "common_name": "127.0.0.1"},
        "it names no host as a subject alternative name",
    ),
    "common name beside another host": (
        "localhost",
        {"names": dns("shop.example")},
        "it does not speak for localhost but for shop.example",
    ),
    "address as a DNS name": ("127.0.0.1", {"names": dns("127.0.0.1")}, "it "),
    "another address": ("127.0.0.1", {"names": (address("127.0.0.2"),)}, "it does not speak for"),
    "wildcard over two labels": ("a.shop.localhost", {"names": dns("*.localhost")}, "it does not"),
    "wildcard inside a label": ("a.shop.localhost", {"names": dns("a*.shop.localhost")}, "it does"),
    "wildcard in the second label": (
        "a.shop.localhost",
        {"names": dns("a.*.localhost")},
        "it does",
    ),
    "name with a final dot": ("localhost", {"names": dns("localhost.")}, "it does not speak for"),
    "for clients": (
        "localhost",
        {"usage": ExtendedKeyUsageOID.CLIENT_AUTH},
        "it is not meant for servers",
    ),
    "expired intermediate": (
        "localhost",
        {"middle_days": -1},
        "a certificate of its chain has expired",
    ),
    "expired root": ("localhost", {"root_days": -1}, "a certificate of its chain has expired"),
    "intermediate that is no authority": (
        "localhost",
        {"middle_is_ca": False, "middle_signs": False},
        "a certificate of its chain is no certificate authority",
    ),
    "intermediate that may not sign": ("localhost", {"middle_signs": False}, "a certificate of"),
    "name that is not permitted": (
        "localhost",
        {"middle_constraints": permitted("shop.example")},
        "a certificate authority of its chain may not sign for one of its names",
    ),
    "name that is excluded": (
        "localhost",
        {"middle_constraints": excluded("localhost")},
        "a certificate authority of its chain is forbidden to sign for one of its names",
    ),
    "unknown critical extension": (
        "localhost",
        {"extension": UNKNOWN},
        "a certificate of its chain has a critical extension that is not known",
    ),
    "key of 1024 bits": (
        "localhost",
        {"key": rsa.generate_private_key(65537, 1024)},
        "its key is too weak",
    ),
}


@pytest.mark.parametrize("case", GOOD)
async def test_both_trust_a_good_certificate(case: str) -> None:
    host, fields = GOOD[case]
    chain = Chain(**fields)
    seen = await by_both(chain, chain.root, host)
    assert [one.failure for one in seen] == [None, None]
    assert [facts(one).verified for one in seen] == [True, True]


@pytest.mark.parametrize("case", BAD)
async def test_both_refuse_a_bad_certificate_for_the_same_reason(case: str) -> None:
    host, fields, words = BAD[case]
    chain = Chain(**fields)
    url, tcp = [reason(one.failure) for one in await by_both(chain, chain.root, host)]
    assert url == tcp
    assert url is not None
    assert url.startswith(words)


async def test_both_take_an_intermediate_for_a_root() -> None:
    chain = Chain()
    seen = await by_both(chain, chain.middle)
    assert [one.failure for one in seen] == [None, None]


async def test_both_take_a_servers_own_certificate_for_a_root() -> None:
    chain = Chain()
    seen = await by_both(chain, chain.leaf)
    assert [one.failure for one in seen] == [None, None]


async def test_both_refuse_a_chain_to_an_unknown_root() -> None:
    chain = Chain()
    url, tcp = [reason(one.failure) for one in await by_both(chain, Chain().root)]
    assert url == tcp
    assert url is not None


async def test_both_offer_the_same_ciphers_with_tls_1_2() -> None:
    chain = Chain(key=rsa.generate_private_key(65537, 2048))
    server = chain.server()
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    server.set_ciphers("AES128-SHA")
    seen = await by_both(chain, chain.root, server=server)
    assert [facts(one).cipher for one in seen] == ["AES128-SHA"] * 2


@pytest.mark.parametrize(
    ("fields", "subject", "days"),
    [
        ({"leaf_days": 30, "middle_days": 60}, "CN=localhost", 30),
        ({"leaf_days": 30, "middle_days": 10}, "CN=Odd Middle", 10),
    ],
)
async def test_both_count_the_days_of_the_certificate_that_expires_first(
    fields: dict[str, int], subject: str, days: int
) -> None:
    chain = Chain(**fields)  # type: ignore[arg-type]  # a builder
    for seen in await by_both(chain, chain.root):
        assert facts(seen).expires_first == subject
        assert facts(seen).days_to_expiry == pytest.approx(days, abs=0.1)
