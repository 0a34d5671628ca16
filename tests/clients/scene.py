"""A service, a shop to look at, and the established command line in a project; no agent yet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from runners.installation.places import runtimes_folder
from tests.builders.agent_process import NO_RUNTIMES
from tests.clients.command_line import (
    CommandLine,
    a_project,
    five_variables,
    outside_the_project,
)
from tests.faults.processes import AgentChild, Child
from tests.system.alert_chain import picket_up

API_KEY: Final = "cu_" + "s" * 40
LOCATION_KEY: Final = "pl_" + "s" * 40
SLOW: Final = web.AppKey("slow", asyncio.Event)
_BOOKS: Final = [{"id": 1, "title": "The Tale of the Tape"}]


@dataclass(frozen=True, slots=True)
class ClientScene:
    """Made by `a_client_scene`."""

    folder: Path
    url: str
    """The service's."""
    shop: str
    """The web site that projects look at."""
    account_id: str
    key: str
    """Of its API."""
    http: aiohttp.ClientSession
    slow_request: asyncio.Event
    """Set once somebody asks for the shop's slow page, which never answers."""

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request of the public API, which must succeed."""
        async with self.http.request(method, self.url + path, json=body) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{answer.status} {text}"
            return await answer.json() if text else None

    def client(self, project: str, *, url: str | None = None, copy: int = 0) -> CommandLine:
        """The command line in a new copy of a project; `url`: another way to the service."""
        variables = five_variables(url or self.url, key=self.key, account_id=self.account_id)
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return CommandLine(
            a_project(self.folder / f"copy-{copy}", project),
            {**outside_the_project(home), **variables, "SHOP_URL": self.shop},
        )


@asynccontextmanager
async def a_client_scene(folder: Path, *, agent: str | None = None) -> AsyncIterator[ClientScene]:
    """A fresh service. `agent`: None for none, `uptime` or `scripts` for what it can run."""
    async with AsyncExitStack() as stack:
        service = await Child.start("service", _service_environ(folder))
        stack.push_async_callback(service.kill)
        url = f"http://127.0.0.1:{(await service.logged('service.ready'))['port']}"
        if agent is not None:
            running = await AgentChild.start("agent", _agent_environ(url, folder, agent))
            stack.push_async_callback(running.kill)
        yield await stack.enter_async_context(_a_scene_at(url, folder, key=API_KEY))


@asynccontextmanager
async def a_fresh_picket(folder: Path) -> AsyncIterator[ClientScene]:
    """What `picket up` starts in an empty folder, with its own checks, key and settings."""
    runtimes = {"PICKET_RUNTIMES": str(runtimes_folder())}
    async with picket_up(folder, runtimes) as url:
        key = (folder / "data/api-key").read_text().strip()
        async with _a_scene_at(url, folder, key=key) as scene:
            yield scene


@asynccontextmanager
async def _a_scene_at(url: str, folder: Path, *, key: str) -> AsyncIterator[ClientScene]:
    """What there is beside a service that runs."""
    slow = asyncio.Event()
    headers = {"authorization": f"Bearer {key}"}
    async with serve_shop(slow) as shop, aiohttp.ClientSession(headers=headers) as http:
        async with http.get(f"{url}/v1/accounts/me") as answer:
            account = await answer.json()
        yield ClientScene(folder, url, shop, account["id"], key, http, slow)


def _service_environ(folder: Path) -> dict[str, str]:
    return {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": "0",
        "TRACE_VIEWER_PORT": "off",
        "SERVICE_DATA_DIR": str(folder / "service"),
        "REGION_LOCATIONS": "*=default",
        "API_REQUESTS_PER_MINUTE": "0",
        "FIRST_API_KEY": API_KEY,
        "FIRST_LOCATION_KEY": LOCATION_KEY,
    }


def _agent_environ(url: str, folder: Path, kind: str) -> dict[str, str]:
    return {
        "API_KEY": LOCATION_KEY,
        "SERVICE_URL": url,
        "AGENT_HEALTH_PORT": "0",
        "HEARTBEAT_PORT": "0",
        "AGENT_DATA_DIR": str(folder / "agent"),
        **({"PICKET_RUNTIMES": str(NO_RUNTIMES)} if kind == "uptime" else {}),
    }


@asynccontextmanager
async def serve_shop(slow: asyncio.Event) -> AsyncIterator[str]:
    """Serve the shop that the projects look at; `slow` is set once its slow page is asked for."""
    application = web.Application()
    application[SLOW] = slow
    application.router.add_get("/", _home)
    application.router.add_route("*", "/api/books", _books)
    application.router.add_get("/slow", _answer_never)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _home(_request: web.Request) -> web.Response:
    return web.Response(text="<title>Shop</title><h1>Books</h1>", content_type="text/html")


async def _answer_never(request: web.Request) -> web.Response:
    request.app[SLOW].set()
    await asyncio.Event().wait()
    return web.Response()


async def _books(_request: web.Request) -> web.Response:
    return web.json_response(_BOOKS)
