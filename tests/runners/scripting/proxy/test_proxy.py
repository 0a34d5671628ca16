"""The proxy before browsers and scripts: what is allowed passes unchanged, the rest is told."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest
import trustme

from contract.result import FailureKind
from runners.net.egress.rules import EgressRules
from runners.scripting.proxy import egress_proxy as egress_gate
from runners.scripting.proxy.egress_proxy import EgressProxy, UnreachedTarget
from runners.scripting.proxy.egress_routes import DirectRoute
from tests.builders.context import a_network
from tests.servers.http_certificates import good, pem_of
from tests.servers.http_origin import Asked, http_origin, redirect, reply, silence
from tests.servers.tcp import refusing_port

EGRESS = FailureKind.EGRESS
LOOPBACK = EgressRules.parse(["127.0.0.1"], [])
NAMES = {"shop.test": ("127.0.0.1",), "vault.test": ("127.0.0.2",)}


async def anybody(*_: int) -> bool:
    return True


@asynccontextmanager
async def a_gate(
    rules: EgressRules = LOOPBACK, names: Mapping[str, tuple[str, ...]] | None = None
) -> AsyncIterator[EgressProxy]:
    async with a_network(egress=rules, names=names or NAMES) as network:
        gate = EgressProxy(DirectRoute(network), admits=anybody)
        await gate.open()
        try:
            yield gate
        finally:
            await gate.close()


@asynccontextmanager
async def asked_through(
    gate: EgressProxy, url: str, *, method: str = "GET", **how: object
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
    assert gate.unreached == ()


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
    assert gate.unreached == (UnreachedTarget(host="vault.test", kind=EGRESS, why=sentence),)


async def test_a_tunnel_to_a_forbidden_address_is_refused_too() -> None:
    async with a_gate() as gate:
        with pytest.raises(aiohttp.ClientHttpProxyError) as refused:
            async with asked_through(gate, "https://vault.test/"):
                pass
    assert refused.value.status == 403
    why = "vault.test (127.0.0.2) matches no rule of EGRESS_ALLOW."
    assert gate.unreached == (UnreachedTarget(host="vault.test", kind=EGRESS, why=why),)


async def test_each_hop_of_a_redirect_is_judged() -> None:
    async with http_origin({"/": redirect("http://vault.test/")}) as origin, a_gate() as gate:
        async with asked_through(gate, origin.url()) as answer:
            assert answer.status == 403
        assert [one.host for one in gate.unreached] == ["vault.test"]


async def test_a_target_that_refuses_is_told_from_one_that_is_forbidden() -> None:
    with refusing_port() as port:
        async with a_gate() as gate, asked_through(gate, f"http://shop.test:{port}/") as answer:
            assert answer.status == 502
            why = f"127.0.0.1:{port} refused the connection (nothing listens there)."
            assert await answer.text() == f"{why}\n"
    assert gate.unreached == (UnreachedTarget(host="shop.test", kind=FailureKind.CONNECT, why=why),)


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
        gate = EgressProxy(DirectRoute(network), admits=anybody)
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

    async def nobody(port: int, to: int) -> bool:
        seen.append((port, to))
        return False

    async with a_network(egress=LOOPBACK) as network, http_origin({"/": reply()}) as origin:
        gate = EgressProxy(DirectRoute(network), admits=nobody)
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
        assert gate.unreached == ()
        [told] = gate.notes
        assert "connections at once" in told
        for _, writer in idle:
            writer.close()


class Doorkeeper:
    """Says nothing of anybody until it is told who is the run's."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.told = asyncio.Event()
        self.rightful = 0

    async def admits(self, port: int, _: int) -> bool:
        self.seen.append(port)
        await self.told.wait()
        return port == self.rightful


@asynccontextmanager
async def guarded(keeper: Doorkeeper) -> AsyncIterator[int]:
    """The port of a gate with this doorkeeper."""
    async with a_network(egress=LOOPBACK) as network:
        gate = EgressProxy(DirectRoute(network), admits=keeper.admits)
        await gate.open()
        try:
            yield int(gate.url.rpartition(":")[2])
        finally:
            await gate.close()


async def test_strangers_do_not_take_a_runs_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_gate, "MOST_AT_ONCE", 1)
    keeper = Doorkeeper()
    async with http_origin({"/": reply(b"fine")}) as origin, guarded(keeper) as port:
        all_of_them = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        reader, writer = all_of_them[-1]
        keeper.rightful = writer.get_extra_info("sockname")[1]
        writer.write(f"GET {origin.url()} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        keeper.told.set()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        for _, one in all_of_them:
            one.close()


async def test_strangers_past_their_number_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress_gate, "_MOST_UNKNOWN", 2)
    keeper = Doorkeeper()
    async with guarded(keeper) as port:
        strangers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert await strangers[2][0].read() == b""
        assert len(keeper.seen) == 2
        for _, stranger in strangers:
            stranger.close()


async def test_an_address_with_a_line_break_in_it_is_no_request() -> None:
    async with a_gate() as gate:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(gate.url.rpartition(":")[2])
        )
        writer.write(b"GET http://shop.test/\nx HTTP/1.1\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()
