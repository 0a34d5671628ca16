"""Variables, secrets and client certificates from end to end: service, agent and targets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web

from tests.builders.certificates import encrypted, issued
from tests.faults.processes import AgentChild, Child
from tests.servers.http_certificates import good, pem_of, wants_client
from tests.servers.http_origin import http_origin, reply
from tests.system.scripted_scene import API_KEY, AS_DEPLOYED, LOCATION_KEY, ScriptedScene

TOKEN = "s3cr3t-t0ken-of-the-shop"
SETUP = """
if (process.env.TOKEN.length !== 24) throw new Error('Where is the token?');
console.log('the token is', process.env.TOKEN);
request.headers['x-token'] = process.env.TOKEN;
"""


@dataclass(slots=True)
class Shop:
    """Answers with whatever it was asked, token and all."""

    url: str
    asked: list[tuple[str, str]]


@asynccontextmanager
async def a_shop() -> AsyncIterator[Shop]:
    asked: list[tuple[str, str]] = []

    async def echo(request: web.Request) -> web.Response:
        asked.append((request.path_qs, request.headers.get("x-token", "")))
        return web.json_response({"path": request.path_qs, "token": asked[-1][1]})

    app = web.Application()
    app.router.add_get("/{tail:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield Shop(f"http://127.0.0.1:{port}", asked)
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_scene(folder: Path, roots: bytes) -> AsyncIterator[ScriptedScene]:
    """A service, and an agent without a browser that trusts these roots too."""
    trusted = folder / "roots.pem"
    trusted.write_bytes(roots)
    service = await Child.start(
        "service",
        {
            "SERVICE_HOST": "127.0.0.1",
            "SERVICE_PORT": "0",
            "SERVICE_DATA_DIR": str(folder / "service"),
            "RESULT_LISTS_PER_MINUTE": "0",  # it waits by asking
            "FIRST_API_KEY": API_KEY,
            "FIRST_LOCATION_KEY": LOCATION_KEY,
        },
    )
    url = f"http://127.0.0.1:{(await service.logged('service.ready'))['port']}"
    environ = {
        "API_KEY": LOCATION_KEY,
        "SERVICE_URL": url,
        "AGENT_HEALTH_PORT": "0",
        "HEARTBEAT_PORT": "0",
        "AGENT_DATA_DIR": str(folder / "agent"),
        "JOB_CONCURRENCY": "1",
        "EXTRA_CA_CERTS": str(trusted),
    }
    agent = await AgentChild.start("agent", environ, within=AS_DEPLOYED)
    headers = {"authorization": f"Bearer {API_KEY}"}
    try:
        async with aiohttp.ClientSession(url, headers=headers) as http:
            yield ScriptedScene("", http)
            assert await agent.stop() == 0, agent.output()
        for child in (service, agent):
            assert TOKEN not in child.output()
    finally:
        for child in (agent, service):
            await child.kill()


async def variables(scene: ScriptedScene, shop: Shop) -> None:
    for body in (
        {"key": "SHOP", "value": shop.url},
        {"key": "TOKEN", "value": TOKEN, "secret": True},
        {"key": "PAGE", "value": "of-the-account"},
    ):
        await scene.ask("POST", "/v1/variables", json=body)


async def certificates(scene: ScriptedScene, clients: trustme.CA) -> None:
    """One that no host knows, and then the good one, which is newer."""
    stranger, strange_key = issued()
    cert, key = issued(clients)
    locked = encrypted(key, "open sesame")
    for body in (
        {"host": "127.0.0.*", "cert": stranger, "key": strange_key},
        {"host": "127.0.*", "cert": cert, "key": locked, "passphrase": "open sesame"},
    ):
        await scene.ask("POST", "/v1/client-certificates", json=body)


@pytest.mark.timeout(300)
async def test_variables_reach_templates_and_scripts_and_certificates_their_hosts(
    tmp_path: Path,
) -> None:
    servers, clients = trustme.CA(), trustme.CA()
    pages = {"/": reply(b"come in")}
    closed = wants_client(good(servers), clients)
    async with (
        a_shop() as shop,
        http_origin(pages, tls=closed) as vault,
        a_scene(tmp_path, pem_of(servers)) as scene,
    ):
        await variables(scene, shop)
        await certificates(scene, clients)
        seen = await asyncio.gather(
            a_template(scene), a_script(scene), scene.check("url", request={"url": vault.url()})
        )
        results: list[dict[str, Any]] = [await scene.scheduled(one) for one in seen]
    for result in results:
        assert (result["hasFailures"], result["hasErrors"]) == (False, False), result
        assert TOKEN not in str(result)
    assert ("/of-the-check?token=" + TOKEN, "") in shop.asked
    assert ("/script", TOKEN) in shop.asked
    assert "the token is" in str(results[1])


async def a_template(scene: ScriptedScene) -> str:
    return await scene.check(
        "api",
        request={"method": "GET", "url": "{{SHOP}}/{{PAGE}}?token={{TOKEN}}"},
        environmentVariables=[{"key": "PAGE", "value": "of-the-check"}],
    )


async def a_script(scene: ScriptedScene) -> str:
    return await scene.check(
        "api", request={"method": "GET", "url": "{{SHOP}}/script"}, localSetupScript=SETUP
    )
