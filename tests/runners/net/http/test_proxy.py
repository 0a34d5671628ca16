"""Through a proxy: the location's, of every kind."""

from pathlib import Path

import pytest
import trustme

from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers import http_certificates as certificates
from tests.servers.http_origin import http_origin, reply
from tests.servers.http_proxies import http_proxy, socks_proxy


async def through(
    proxy_url: str, url: str, *, ca: trustme.CA | None = None, deny: tuple[str, ...] = ()
) -> HttpExchange:
    pem = None if ca is None else certificates.pem_of(ca)
    async with HttpEngine(EgressRules.parse([], deny), extra_ca_pem=pem) as engine:
        return await engine.exchange(an_http_request(url), timeout_s=LONG_S, proxy_url=proxy_url)


async def test_plain_http_is_asked_of_the_proxy_by_its_whole_address(tmp_path: Path) -> None:
    async with http_origin(reply(b"inside")) as origin, http_proxy(tmp_path) as place:
        seen = await through(f"http://{place}", origin.url())
        without_scheme = await through(place, origin.url())
    for one in (seen, without_scheme):
        assert one.failure is None
        assert one.answer is not None
        assert one.answer.body == b"inside"
        assert one.remote_address is None
        assert one.hops[0].remote_address is None
    assert any(name.lower() == "via" for name, _ in origin.asked[0].headers)


async def test_https_goes_through_a_tunnel_and_is_verified_to_the_end(tmp_path: Path) -> None:
    ca = trustme.CA()
    async with (
        http_origin(reply(b"inside"), tls=certificates.good(ca)) as origin,
        http_proxy(tmp_path) as place,
    ):
        seen = await through(f"http://{place}", origin.url(), ca=ca)
        untrusted = await through(f"http://{place}", origin.url())
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.head.status_code, seen.answer.body) == (200, b"inside")
    assert seen.tls is not None
    assert seen.tls.verified
    assert untrusted.failure is not None
    assert untrusted.failure.kind is FailureKind.TLS


async def test_a_proxy_wants_its_password_and_gets_it(tmp_path: Path) -> None:
    ca = trustme.CA()
    async with (
        http_origin(reply(), tls=certificates.good(ca)) as origin,
        http_proxy(tmp_path, basic_auth="us:p%w") as place,
    ):
        seen = await through(f"http://us:p%25w@{place}", origin.url(), ca=ca)
        stranger = await through(f"http://us:wrong@{place}", origin.url(), ca=ca)
    assert seen.failure is None
    assert stranger.failure is not None
    assert stranger.failure.kind is FailureKind.CONNECT
    assert stranger.failure.message == (
        f"The location's proxy {place} answered 407 and did not connect to"
        f" 127.0.0.1:{origin.port}: user and password in its proxyUrl are missing or wrong."
    )


@pytest.mark.parametrize("user", ["", "us:no@"])
async def test_a_407_of_the_proxy_is_no_answer_of_the_target(tmp_path: Path, user: str) -> None:
    """A check that expects an error status would pass by it."""
    async with http_origin(reply()) as origin, http_proxy(tmp_path, basic_auth="us:pw") as place:
        seen = await through(f"http://{user}{place}", origin.url())
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.detail["code"]) == (FailureKind.CONNECT, "EPROXY")
    assert seen.failure.message == (
        f"The location's proxy {place} answered 407 and did not connect to"
        f" 127.0.0.1:{origin.port}: user and password in its proxyUrl are missing or wrong."
    )
    assert origin.asked == []


async def test_a_407_that_can_only_be_the_targets_is_its_answer(tmp_path: Path) -> None:
    ca = trustme.CA()
    async with (
        http_origin(
            reply(status="407 Proxy Authentication Required"), tls=certificates.good(ca)
        ) as origin,
        http_origin(reply(status="407 Proxy Authentication Required")) as plain,
        socks_proxy(user="us", password="pw") as socks,
        http_proxy(tmp_path) as place,
    ):
        seen = [
            await through(f"http://{place}", origin.url(), ca=ca),
            await through(f"socks5://us:pw@{socks.place}", plain.url()),
        ]
        async with HttpEngine(EgressRules()) as engine:
            seen.append(await engine.exchange(an_http_request(plain.url()), timeout_s=LONG_S))
    assert [one.failure for one in seen] == [None] * 3
    assert [one.answer.head.status_code for one in seen if one.answer] == [407] * 3


@pytest.mark.parametrize(
    ("scheme", "asked_for"), [("socks5", "127.0.0.1"), ("socks5h", "shop.example")]
)
async def test_socks_resolves_here_or_there_as_its_scheme_says(scheme: str, asked_for: str) -> None:
    host = "localhost" if scheme == "socks5" else "shop.example"
    async with (
        http_origin(reply(b"inside")) as origin,
        socks_proxy(user="us", password="pw") as socks,
    ):
        url = f"http://{host}:{origin.port}/"
        seen = await through(f"{scheme}://us:pw@{socks.place}", url)
        stranger = await through(f"{scheme}://us:no@{socks.place}", url)
    assert seen.failure is None
    assert seen.answer is not None
    assert seen.answer.body == b"inside"
    assert socks.asked_for == [asked_for]
    assert stranger.failure is not None
    assert stranger.failure.kind is FailureKind.CONNECT


async def test_a_proxy_that_is_down_is_named_without_its_password() -> None:
    seen = await through("http://user:geheim@127.0.0.1:1", "http://shop.example/")
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.CONNECT
    assert seen.failure.message == (
        "The location's proxy 127.0.0.1:1 refused the connection (nothing listens there)."
    )


@pytest.mark.parametrize(
    "proxy_url",
    ["http://[geheim", "http://user:geheim/x@127.0.0.1:1", "http://ü:geheim@127.0.0.1:1"],
)
async def test_a_proxy_address_that_cannot_be_read_shows_no_password(proxy_url: str) -> None:
    seen = await through(proxy_url, "http://shop.example/")
    assert seen.failure is not None
    assert "geheim" not in seen.failure.message
    assert "he location's proxy" in seen.failure.message


async def test_the_target_is_judged_before_the_proxy_is_asked_and_the_proxy_is_not(
    tmp_path: Path,
) -> None:
    async with http_origin(reply()) as origin, http_proxy(tmp_path) as place:
        refused = await through(f"http://{place}", "http://169.254.169.254/")
        denied = await through(f"http://{place}", origin.url(), deny=("127.0.0.0/8",))
        by_name = await through(
            f"http://{place}", f"http://localhost:{origin.port}/", deny=("127.0.0.0/8",)
        )
    for one in (refused, denied):
        assert one.failure is not None
        assert one.failure.kind is FailureKind.EGRESS
    # The proxy resolves the name where we cannot see it; the operator's proxy has its own rules.
    assert by_name.failure is None


async def test_the_agents_own_proxy_settings_are_not_for_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "https_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with http_origin(reply()) as origin, HttpEngine(EgressRules()) as engine:
        seen = await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S)
    assert seen.failure is None
