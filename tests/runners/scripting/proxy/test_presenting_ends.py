"""Connections on which a certificate was shown end, whatever becomes of the run's side."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trustme

from contract.job import ClientCertificate
from contract.result import CheckFailed
from runners.net.http.exchange import Route
from runners.net.tls.local_authority import LocalAuthority
from runners.scripting.proxy.client_certificates import CertificateRoute
from runners.scripting.proxy.egress_routes import DirectRoute, ProxyRequest
from tests.builders.context import a_network
from tests.servers.http_certificates import good, pem_of, wants_client


@pytest.fixture
def ca() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def a_listener(ca: trustme.CA) -> AsyncIterator[tuple[int, asyncio.Event, asyncio.Event]]:
    """A port that wants a certificate; when somebody has come, and when they have gone."""
    came, left = asyncio.Event(), asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        with suppress(OSError):
            await reader.read()
        left.set()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=wants_client(good(ca), ca))
    async with server:
        yield server.sockets[0].getsockname()[1], came, left


@asynccontextmanager
async def presenting_to_all(ca: trustme.CA) -> AsyncIterator[CertificateRoute]:
    leaf = ca.issue_cert("agent@shop.test")
    mine = ClientCertificate(
        host="*",
        cert=leaf.cert_chain_pems[0].bytes().decode(),
        key=leaf.private_key_pem.bytes().decode(),
        ca=pem_of(ca).decode(),
    )
    route = Route.choose(None, (mine,))
    names = {"t\u00e9a.test": ("127.0.0.1",)}
    async with a_network(names=names) as network:
        yield CertificateRoute(
            DirectRoute(network), route, authority=LocalAuthority(), contexts=network.tls
        )


def a_tunnel(port: int, host: str = "127.0.0.1") -> ProxyRequest:
    return ProxyRequest(
        host=host, port=port, method="CONNECT", target=f"{host}:{port}", first_bytes=b"\x16\x03"
    )


async def test_a_target_is_left_when_a_browser_never_ends_its_handshake(ca: trustme.CA) -> None:
    async with a_listener(ca) as (port, came, left), presenting_to_all(ca) as presenting:
        with await presenting.connect(a_tunnel(port)):
            await came.wait()
            await presenting.close()
            await left.wait()


async def test_a_target_is_left_when_there_are_no_descriptors_for_the_run(
    ca: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(**_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async with a_listener(ca) as (port, _, left), presenting_to_all(ca) as presenting:
        monkeypatch.setattr(socket, "socketpair", none_left)
        with pytest.raises(OSError, match="Too many open files"):
            await presenting.connect(a_tunnel(port))
        await left.wait()


async def test_a_host_that_no_certificate_can_name_is_never_connected_to(ca: trustme.CA) -> None:
    async with a_listener(ca) as (port, came, _), presenting_to_all(ca) as presenting:
        with pytest.raises(CheckFailed, match="is no name that a certificate can be shown to"):
            await presenting.connect(a_tunnel(port, "t\u00e9a.test"))
        assert not came.is_set()
