"""A check may name the address to connect to; all else stays that of its URL."""

import pytest
import trustme

from contract.requests import IpFamily
from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers import http_certificates as certificates
from tests.servers.http_origin import http_origin, redirect, reply


async def exchanged(
    url: str, connect_to: str, *, rules: EgressRules | None = None, ca: trustme.CA | None = None
) -> HttpExchange:
    pem = None if ca is None else certificates.pem_of(ca)
    async with HttpEngine(rules or EgressRules(), extra_ca_pem=pem) as engine:
        request = an_http_request(url, connect_to=connect_to)
        return await engine.exchange(request, timeout_s=LONG_S)


async def test_the_address_is_connected_to_and_the_host_header_is_the_urls() -> None:
    async with http_origin(reply()) as origin:
        seen = await exchanged(f"http://shop.invalid:{origin.port}/a", "127.0.0.1")
    assert seen.failure is None
    assert origin.asked[0].one("host") == f"shop.invalid:{origin.port}"
    assert seen.remote_address == "127.0.0.1"
    assert seen.timings.dns is None


async def test_a_port_beside_the_address_is_connected_to() -> None:
    async with http_origin(reply()) as origin:
        seen = await exchanged("http://shop.invalid/", f"127.0.0.1:{origin.port}")
    assert seen.failure is None
    assert origin.asked[0].one("host") == "shop.invalid"


async def test_the_certificate_must_be_that_of_the_urls_host() -> None:
    ca = trustme.CA()
    async with http_origin(reply(), tls=certificates.good(ca, "shop.invalid")) as origin:
        to = f"127.0.0.1:{origin.port}"
        good = await exchanged("https://shop.invalid/", to, ca=ca)
        other = await exchanged("https://other.invalid/", to, ca=ca)
    assert good.failure is None
    assert other.failure is not None
    assert other.failure.kind is FailureKind.TLS


async def test_a_redirect_to_the_same_host_takes_the_address_and_to_another_does_not() -> None:
    async with http_origin(reply()) as other:
        pages = {"/": redirect("/next"), "/next": redirect(other.url())}
        async with http_origin(pages) as origin:
            seen = await exchanged("http://shop.invalid/", f"127.0.0.1:{origin.port}")
    assert seen.failure is None
    assert [one.target for one in origin.asked] == ["/", "/next"]
    assert len(other.asked) == 1


@pytest.mark.parametrize("host", ["shop.invalid", "192.0.2.7"])
async def test_the_egress_rules_hold_for_the_address(host: str) -> None:
    rules = EgressRules.parse((), ("127.0.0.0/8",))
    async with http_origin(reply()) as origin:
        seen = await exchanged(f"http://{host}:{origin.port}/", "127.0.0.1", rules=rules)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.EGRESS
    assert f"{host} (127.0.0.1) is refused" in seen.failure.message
    assert origin.connections == 0


async def test_an_address_of_the_other_family_is_named() -> None:
    seen = await exchanged("http://shop.invalid/", "[::1]:80")
    assert seen.failure is not None
    assert "::1 is an IPv6 address" in seen.failure.message
    assert IpFamily.IPV6 in seen.failure.message


async def test_what_is_no_address_is_named() -> None:
    async with HttpEngine(EgressRules()) as engine:
        request = an_http_request("http://shop.invalid/", connect_to="shop.example")
        with pytest.raises(
            Exception, match=r"connectTo is shop\.example; it must be an IP address"
        ):
            await engine.exchange(request, timeout_s=LONG_S)
