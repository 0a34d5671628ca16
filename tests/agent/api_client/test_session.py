"""The way to the service: proxies and roots come from the settings alone."""

import asyncio
import ssl
from base64 import b64encode
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from agent.api_client.client import ServiceClient
from agent.api_client.connection import build_endpoint, open_session
from agent.api_client.errors import ServiceAwayError
from agent.settings import Settings
from contract.agent_api import Claim, Pings
from contract.checks import Lane
from tests.builders.agents import a_lifecycle, metrics, settings, until
from tests.fakes.service import KEY, FakeService
from tests.servers.recording_proxy import RecordingProxy


async def ask(with_settings: Settings) -> None:
    """One call by these settings."""
    door = build_endpoint(with_settings, agent_id="agent-1", version="1")
    async with open_session(with_settings) as session:
        client = ServiceClient(door, session, lifecycle=a_lifecycle(), metrics=metrics())
        await client.relay_pings(Pings(pings=()))


async def test_the_proxy_of_the_settings_is_used_with_its_credentials() -> None:
    async with FakeService() as service, RecordingProxy() as proxy:
        with_credentials = proxy.url.replace("http://", "http://me:p%40ss@")
        await ask(settings(service.url, http_proxy=with_credentials))
        (seen,) = proxy.seen
    expected = b64encode(b"me:p@ss").decode()
    assert seen.headers["proxy-authorization"] == f"Basic {expected}"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert service.calls("pings") == 1


async def test_no_proxy_goes_around_it() -> None:
    async with FakeService() as service, RecordingProxy() as proxy:
        await ask(settings(service.url, http_proxy=proxy.url, no_proxy=("127.0.0.0/8",)))
        assert proxy.seen == []


async def test_the_environment_sets_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeService() as service, RecordingProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        await ask(settings(service.url))
        assert proxy.seen == []


async def test_a_private_root_is_trusted_only_when_it_is_named(tmp_path: Path) -> None:
    authority = trustme.CA()
    pem = tmp_path / "root.pem"
    authority.cert_pem.write_to_path(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def nothing(_request: web.Request) -> web.Response:
        return web.Response(body=b"{}")

    app = web.Application()
    app.router.add_post("/{path:.*}", nothing)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        await ask(settings(url, extra_ca_certs=pem))
        with pytest.raises(ServiceAwayError, match="certificate"):
            await ask(settings(url))
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("url", "compresses"), [("http://127.0.0.1:1", False), ("https://picket.example", True)]
)
def test_only_a_network_is_spared_by_gzip(url: str, *, compresses: bool) -> None:
    assert build_endpoint(settings(url), agent_id="a", version="1").compresses is compresses


async def test_a_long_poll_notices_when_its_service_is_gone_without_a_word() -> None:
    async with FakeService() as service, open_session(settings(service.url)) as session:
        door = build_endpoint(settings(service.url), agent_id="agent-1", version="1")
        client = ServiceClient(door, session, lifecycle=a_lifecycle(), metrics=metrics())
        claim = Claim(claim_id="1", slots={Lane.UPTIME: 1}, check_types=())
        polling = asyncio.create_task(client.claim(claim))
        port = int(service.url.rpartition(":")[2])
        await until(lambda: timers_of_connections_to(port) == ["02"])
        polling.cancel()


def timers_of_connections_to(port: int) -> list[str]:
    """Which timers the kernel has set; 02 is the one that asks the other end whether it lives."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[5][:2] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"]
