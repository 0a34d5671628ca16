"""Bytes between two connections, and when these end."""

import ssl

import aiohttp
import trustme

from runners.net.http.exchange import Route
from runners.net.tls.local_authority import LocalAuthority
from runners.scripting.proxy.client_certificates import CertificateRoute
from runners.scripting.proxy.egress_proxy import EgressProxy
from runners.scripting.proxy.egress_routes import DirectRoute
from tests.builders.context import a_network
from tests.runners.scripting.proxy.test_presenting import locked, shown_to
from tests.servers.http_certificates import pem_of
from tests.servers.http_origin import http_origin, reply


async def anybody(_port: int, _to: int) -> bool:
    return True


async def test_a_target_is_left_when_the_browser_leaves() -> None:
    ca = trustme.CA()
    authority = LocalAuthority()
    trusted = ssl.create_default_context(cadata=authority.pem)
    mine = Route.choose(None, (shown_to("*", ca),))
    async with (
        http_origin(reply(b"kept open"), tls=locked(ca)) as origin,
        a_network(extra_ca_pem=pem_of(ca).decode()) as network,
    ):
        way = CertificateRoute(
            DirectRoute(network), mine, authority=authority, contexts=network.tls
        )
        gate = EgressProxy(way, admits=anybody)
        await gate.open()
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(origin.url(), proxy=gate.url, ssl=trusted) as answer,
            ):
                assert await answer.read() == b"kept open"
            await origin.until_left_alone()
        finally:
            await gate.close()
            await way.close()
    assert way.problems == ()
