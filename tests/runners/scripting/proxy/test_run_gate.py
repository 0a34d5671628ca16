"""When a run has a gate, and what it says of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from string import Template

import msgspec

from contract.checks import BrowserSpec
from contract.job import ClientCertificate
from runners.browser import BrowserRunner
from runners.net.egress.rules import EgressRules
from runners.runner import RunContext
from runners.scripting.proxy.run_proxy import build_proxy_settings, open_run_proxy
from runners.scripting.trust.roots import Trust
from tests.builders.context import a_context
from tests.builders.scripts import a_scripted_context
from tests.servers.http_origin import http_origin, reply

ALLOWED = EgressRules.parse(["127.0.0.1"], [])
ELSEWHERE = "127.0.0.3"
PAGE = Template("""<link rel=preconnect href=http://$there><script>
const gathered = new Promise((done) => {
  const urls = ['stun:$there', 'turn:$there?transport=tcp', 'turn:$there?transport=udp'];
  const peer = new RTCPeerConnection({ iceServers: [{ urls, username: 'a', credential: 'b' }] });
  peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && done();
  peer.createDataChannel('tea');
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
});
const refused = new Promise((done) => { new WebSocket('ws://$there/').onerror = done; });
const asked = fetch('http://$there/', { mode: 'no-cors' }).catch(() => {});
const workers = navigator.serviceWorker;
const worked = workers.register('/worker.js').then(() => workers.ready);
Promise.all([gathered, refused, asked, worked]).then(() => { document.title = 'tried'; });
</script>""")
WORKER = Template("""
const tried = () => fetch('http://$there/', { mode: 'no-cors' }).catch(() => {});
self.addEventListener('install', (event) => event.waitUntil(tried()));
""")
SCRIPT = Template("""
import { test, expect } from '@playwright/test';
test('tries', async ({ page, request }) => {
  await page.goto('$here');
  await expect(page).toHaveTitle('tried');
  expect((await request.get('http://$there/')).status()).toBe(403);
});
""")
MINE = (ClientCertificate(host="*", cert="", key=""),)


def showing(ctx: RunContext) -> RunContext:
    return msgspec.structs.replace(ctx, client_certificates=MINE)


async def test_without_rules_and_certificates_a_browser_connects_by_itself(tmp_path: Path) -> None:
    async with (
        a_context() as ctx,
        open_run_proxy(ctx, Trust(tmp_path, "").roots(presents=False), tmp_path) as gate,
    ):
        assert gate is None
    assert build_proxy_settings(None) == {}


async def test_only_the_operators_rules_make_it_binding(tmp_path: Path) -> None:
    trust = Trust(tmp_path, "")
    async with (
        a_context(egress=ALLOWED) as ctx,
        open_run_proxy(ctx, trust.roots(presents=False), tmp_path) as gate,
    ):
        assert gate is not None
        assert build_proxy_settings(gate)["gate"] == gate.url
    async with (
        a_context() as plain,
        open_run_proxy(showing(plain), trust.roots(presents=True), tmp_path) as gate,
    ):
        assert gate is not None
        told = build_proxy_settings(gate)
        assert (told["gate"], told["proxy"]) == (None, {"server": gate.url})


class _Wire(asyncio.DatagramProtocol):
    """Takes down what comes."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def datagram_received(self, data: bytes, _: object) -> None:
        self.heard.append(data)


@asynccontextmanager
async def a_forbidden_place() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Address and port, of UDP and of TCP, and what came there."""
    wire, loop = _Wire(), asyncio.get_running_loop()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire.heard.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(take, ELSEWHERE, 0)
    port = server.sockets[0].getsockname()[1]
    transport, _ = await loop.create_datagram_endpoint(lambda: wire, local_addr=(ELSEWHERE, port))
    async with server:
        yield f"{ELSEWHERE}:{port}", wire.heard
    transport.close()


async def test_nothing_that_a_page_can_do_leads_past_the_rules() -> None:
    async with a_forbidden_place() as (there, heard):
        pages = {
            "/": reply(PAGE.substitute(there=there).encode(), content_type="text/html"),
            "/worker.js": reply(
                WORKER.substitute(there=there).encode(), content_type="text/javascript"
            ),
        }
        async with http_origin(pages) as shop, a_scripted_context(egress=ALLOWED) as ctx:
            spec = BrowserSpec(
                script=SCRIPT.substitute(here=shop.url(), there=there),
                playwright_config={"timeout": 0, "expect": {"timeout": 50_000}},
            )
            seen = await BrowserRunner().observe(spec, ctx)
    assert seen.failure is None
    assert heard == []
    assert f"{ELSEWHERE} matches no rule of EGRESS_ALLOW." in [one.message for one in seen.log]
