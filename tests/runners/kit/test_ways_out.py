"""A run's connections by the location's proxy: its credentials, its refusals, and the rules."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import trustme

from runners.kit.egress import EgressRules
from runners.kit.egress_gate import EgressGate
from runners.kit.ways_out import ThroughProxy, Wish, is_http
from tests.builders.context import a_network
from tests.servers.http_certificates import good, pem_of
from tests.servers.http_origin import begins, http_origin, reply
from tests.servers.http_proxies import http_proxy

NO_RULES = EgressRules()


async def anyone(_port: int, _to: int) -> bool:
    return True


@asynccontextmanager
async def asked(
    url: str,
    proxy_url: str,
    *,
    rules: EgressRules = NO_RULES,
    trusted: ssl.SSLContext | bool = True,
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Through a gate whose way is this proxy."""
    async with a_network(egress=rules) as network, aiohttp.ClientSession() as session:
        gate = EgressGate(ThroughProxy(network, proxy_url), admits=anyone)
        await gate.open()
        try:
            async with session.get(url, proxy=gate.url, ssl=trusted) as answer:
                yield answer
        finally:
            await gate.close()


async def test_pages_come_through_a_proxy_that_wants_a_password(tmp_path: Path) -> None:
    ca = trustme.CA()
    trusted = ssl.create_default_context(cadata=pem_of(ca).decode())
    async with (
        http_origin(reply(b"plain")) as plain,
        http_origin(reply(b"secure"), tls=good(ca)) as secure,
        http_proxy(tmp_path, basic_auth="user:p@ss") as place,
    ):
        proxy = f"http://user:p%40ss@{place}"
        async with asked(plain.url("/a?b"), proxy) as answer:
            assert await answer.read() == b"plain"
        async with asked(secure.url(), proxy, trusted=trusted) as answer:
            assert await answer.read() == b"secure"
    assert [one.target for one in plain.asked] == ["/a?b"]
    assert plain.asked[0].one("proxy-authorization") is None


async def test_a_proxy_that_gives_no_tunnel_is_named_without_its_password(tmp_path: Path) -> None:
    async with http_proxy(tmp_path, basic_auth="user:right") as place:
        with pytest.raises(aiohttp.ClientHttpProxyError) as refused:
            async with asked("https://127.0.0.1:9/", f"http://user:wrong-one@{place}"):
                pass
    assert refused.value.status == 502


async def test_what_a_proxy_says_in_place_of_a_tunnel_is_told() -> None:
    said = b"HTTP/1.1 407 Who are you\r\n\r\n"
    async with http_origin(begins(said)) as proxy:
        way = f"http://user:secret@127.0.0.1:{proxy.port}"
        with pytest.raises(aiohttp.ClientHttpProxyError) as refused:
            async with asked("https://127.0.0.1:9/", way):
                pass
    assert refused.value.status == 502
    [wish] = proxy.asked
    assert (wish.method, wish.target) == ("CONNECT", "127.0.0.1:9")
    assert wish.one("proxy-authorization") == "Basic dXNlcjpzZWNyZXQ="


async def test_a_proxy_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with asked("http://127.0.0.1:9/", f"http://user:secret@127.0.0.1:{port}") as answer:
        assert answer.status == 502
        assert await answer.text() == (
            f"The location's proxy 127.0.0.1:{port} cannot be reached: "
            f"127.0.0.1:{port} refused the connection.\n"
        )


async def test_the_rules_judge_the_target_and_not_the_proxy() -> None:
    rules = EgressRules.parse(["*.shop.test"], [])
    async with http_origin(reply(b"through")) as proxy:
        way = f"http://127.0.0.1:{proxy.port}"
        async with asked("http://tea.shop.test/", way, rules=rules) as answer:
            assert await answer.read() == b"through"
        async with asked("http://vault.test/", way, rules=rules) as answer:
            assert answer.status == 403
            assert await answer.text() == "vault.test matches no rule of EGRESS_ALLOW.\n"
    assert [one.target for one in proxy.asked] == ["http://tea.shop.test/"]


@pytest.mark.parametrize(
    ("proxy_url", "expected"),
    [
        ("http://proxy.test:3128", True),
        ("proxy.test:3128", True),
        ("http://user:pass@proxy.test", True),
        ("socks5://proxy.test:1080", False),
        ("https://proxy.test", False),
        ("http://", False),
        ("http://proxy.test:port", False),
    ],
)
def test_proxies_of_one_kind_alone_are_spoken_to(proxy_url: str, *, expected: bool) -> None:
    assert is_http(proxy_url) is expected


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://shop.test", "/"),
        ("http://shop.test?x=1", "/?x=1"),
        ("http://shop.test/a?", "/a?"),
        ("http://shop.test:81/a;b//c?d=http://e/#f", "/a;b//c?d=http://e/#f"),
        ("HTTP://me:secret@[::1]:81//a", "//a"),
    ],
)
def test_a_target_is_asked_for_its_path_as_the_browser_wrote_it(target: str, path: str) -> None:
    assert Wish(host="shop.test", port=80, method="GET", target=target).path == path
