"""The proxy before browsers and scripts: what is allowed passes unchanged, the rest is told."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest
import trustme

from runners.kit import egress_gate
from runners.kit.egress import EgressRules
from runners.kit.egress_gate import EgressGate
from runners.kit.ways_out import Straight
from tests.builders.context import a_network
from tests.servers.http_certificates import good, pem_of
from tests.servers.http_origin import Asked, http_origin, redirect, reply, silence

LOOPBACK = EgressRules.parse(["127.0.0.1"], [])
NAMES = {"shop.test": ("127.0.0.1",), "vault.test": ("127.0.0.2",)}


def anybody(*_: int) -> bool:
    return True


@asynccontextmanager
async def a_gate(
    rules: EgressRules = LOOPBACK, names: Mapping[str, tuple[str, ...]] | None = None
) -> AsyncIterator[EgressGate]:
    async with a_network(egress=rules, names=names or NAMES) as network:
        gate = EgressGate(Straight(network), admits=anybody)
        await gate.open()
        try:
            yield gate
        finally:
            await gate.close()


@asynccontextmanager
async def asked_through(
    gate: EgressGate, url: str, *, method: str = "GET", **how: object
) -> AsyncIterator[aiohttp.ClientResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, proxy=gate.url, **how) as answer,  # type: ignore[arg-type]
    ):
        yield answer


async def test_an_allowed_page_comes_through_unchanged() -> None:
    async with (
        http_origin({"/a": reply(b"fine")}) as origin,
        a_gate() as gate,
        asked_through(
            gate, f"http://shop.test:{origin.port}/a?b=%20c", headers={"x-own": "1"}
        ) as answer,
    ):
        assert await answer.read() == b"fine"
    [asked] = origin.asked
    assert asked.target == "/a?b=%20c"
    assert asked.one("host") == f"shop.test:{origin.port}"
    assert asked.one("x-own") == "1"
    assert asked.one("proxy-connection") is None
    assert gate.refusals == ()


async def test_a_body_reaches_the_target() -> None:
    body = b"x" * 300_000
    async with (
        http_origin({"/": reply()}) as origin,
        a_gate() as gate,
        asked_through(gate, origin.url(), method="POST", data=body) as answer,
    ):
        assert answer.status == 200
    assert origin.asked[0].body == body


async def test_tls_goes_through_a_tunnel_to_the_target_itself() -> None:
    ca = trustme.CA()
    trusted = ssl.create_default_context(cadata=pem_of(ca).decode())
    async with (
        http_origin({"/": reply(b"sealed")}, tls=good(ca, "shop.test")) as origin,
        a_gate() as gate,
        asked_through(gate, f"https://shop.test:{origin.port}/", ssl=trusted) as answer,
    ):
        assert await answer.read() == b"sealed"


async def test_a_name_that_leads_to_a_forbidden_address_is_refused_with_the_rule() -> None:
    rules = EgressRules.parse([], ["127.0.0.2"])
    said: list[str] = []
    async with a_gate(rules) as gate:
        for _ in range(2):
            async with asked_through(gate, "http://vault.test/") as answer:
                assert answer.status == 403
                said.append(await answer.text())
    sentence = "vault.test (127.0.0.2) is refused by the EGRESS_DENY rule 127.0.0.2."
    assert said == [f"{sentence}\n"] * 2
    assert gate.refusals == (sentence,)


async def test_a_tunnel_to_a_forbidden_address_is_refused_too() -> None:
    async with a_gate() as gate:
        with pytest.raises(aiohttp.ClientHttpProxyError) as refused:
            async with asked_through(gate, "https://vault.test/"):
                pass
    assert refused.value.status == 403
    assert gate.refusals == ("vault.test (127.0.0.2) matches no rule of EGRESS_ALLOW.",)


async def test_each_hop_of_a_redirect_is_judged() -> None:
    async with http_origin({"/": redirect("http://vault.test/")}) as origin, a_gate() as gate:
        async with asked_through(gate, origin.url()) as answer:
            assert answer.status == 403
        assert len(gate.refusals) == 1


async def test_a_target_that_refuses_is_told_from_one_that_is_forbidden() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with a_gate() as gate, asked_through(gate, f"http://shop.test:{port}/") as answer:
        assert answer.status == 502
        assert await answer.text() == f"127.0.0.1:{port} refused the connection.\n"
    assert gate.refusals == ()


async def test_a_server_that_does_not_close_gets_no_others_request() -> None:
    async with (
        http_origin(reply(b"first")) as one,
        http_origin(reply(b"second")) as other,
        a_gate() as gate,
        aiohttp.ClientSession() as session,
    ):
        for origin in (one, other, one):
            async with session.get(origin.url("/page"), proxy=gate.url) as answer:
                assert answer.headers["connection"] == "close"
                assert await answer.read() == (b"first" if origin is one else b"second")
    assert [asked.target for asked in (*one.asked, *other.asked)] == ["/page"] * 3


async def test_a_server_that_asks_for_the_body_first_gets_it() -> None:
    async def asks(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" + reply(b"taken"))
        await writer.drain()

    async with (
        http_origin(asks) as origin,
        a_gate() as gate,
        asked_through(gate, origin.url(), method="POST", data=b"tea") as answer,
    ):
        assert await answer.read() == b"taken"


async def test_what_is_no_request_for_a_proxy_is_refused() -> None:
    async with (
        a_gate() as gate,
        aiohttp.ClientSession() as session,
        session.get(gate.url) as answer,
    ):
        assert answer.status == 400


async def test_closing_cuts_what_is_still_open() -> None:
    arrived = asyncio.Event()

    async def stay(asked: Asked, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await silence(asked, writer)

    async with http_origin({"/": stay}) as origin, a_network(egress=LOOPBACK) as network:
        gate = EgressGate(Straight(network), admits=anybody)
        await gate.open()
        port = int(gate.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {origin.url()} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        await arrived.wait()
        await gate.close()
        assert await reader.read() == b""
        writer.close()


async def test_whoever_is_not_let_in_gets_nowhere() -> None:
    seen: list[tuple[int, int]] = []

    def nobody(port: int, to: int) -> bool:
        seen.append((port, to))
        return False

    async with a_network(egress=LOOPBACK) as network, http_origin({"/": reply()}) as origin:
        gate = EgressGate(Straight(network), admits=nobody)
        await gate.open()
        own = int(gate.url.rpartition(":")[2])
        async with asked_through(gate, origin.url()) as answer:
            assert (answer.status, await answer.text()) == (403, "This proxy is another run's.\n")
        await gate.close()
    assert [to for _, to in seen] == [own]
    assert origin.asked == []


async def test_connections_past_their_number_are_refused_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(egress_gate, "MOST_AT_ONCE", 2)
    async with a_gate() as gate:
        port = int(gate.url.rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        async with asked_through(gate, "http://shop.test/") as answer:
            assert answer.status == 503
        assert len(gate.refusals) == 1
        assert "connections at once" in gate.refusals[0]
        for _, writer in idle:
            writer.close()
