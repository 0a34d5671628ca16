"""The service dies under a running agent, and comes back: no result is lost, none counts twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from contract.checks import CheckType
from picket.api_client import PublicApi
from picket.up.addresses import Ports
from picket.up.data_dir import DataDir, open_data_dir
from picket.up.demo_target import make_certificate
from picket.up.processes import Child, agent_program, service_program
from tests.builders.patience import LONG_S
from tests.system.waiting import until

HOST = "127.0.0.1"


class HeldPage:
    """A page that answers when the test says so."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.released = asyncio.Event()
        self.url = ""

    async def _answer(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.released.wait()
        return web.Response(text="released")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["HeldPage"]:
        app = web.Application()
        app.add_routes([web.get("/", self._answer)])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, 0).start()
            self.url = f"http://{HOST}:{runner.addresses[0][1]}/"
            yield self
        finally:
            await runner.cleanup()


async def metrics(port: int) -> dict[str, float]:
    """The agent's metrics by name and labels."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{HOST}:{port}/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()
    pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


async def started(stack: AsyncExitStack, program: Any) -> Child:
    child = await Child.start(program)
    stack.push_async_callback(child.stop, limit_s=5)
    return child


def a_check(name: str, url: str) -> dict[str, Any]:
    return {
        "name": name,
        "request": {"method": "GET", "url": url},
        "privateLocations": ["default"],
        "frequency": 0,
        "frequencyOffset": 10,
        "maxResponseTime": 30_000,
        "degradedResponseTime": 30_000,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    with open_data_dir(tmp_path / "data", fresh=False) as opened:
        opened.make_keys()
        yield opened


async def test_results_that_came_while_the_service_was_dead_are_there_afterwards(
    folder: DataDir,
) -> None:
    ports = Ports.free(wanted=())
    authority = make_certificate(folder.path, host=HOST).authority
    async with AsyncExitStack() as stack:
        held = await stack.enter_async_context(HeldPage().serving())
        service = await started(stack, service_program(folder, port=ports.service))
        api = await stack.enter_async_context(PublicApi(ports.service_url, folder.api_key()))
        await until(api.locations)
        check = await api.create(CheckType.API, a_check("held", held.url))
        await started(
            stack,
            agent_program(folder, ports, authority=authority, secrets={}),
        )
        await asyncio.wait_for(held.asked.wait(), LONG_S)

        # A machine that stands still may end a run by its time limit: only the later ones count.
        earlier = {result["id"] for result in await api.results(check.id, limit=100)}
        if earlier:
            held.asked.clear()
            await asyncio.wait_for(held.asked.wait(), LONG_S)
        killed_at = datetime.now(UTC)
        await service.stop(limit_s=0)
        held.released.set()

        async def spooled() -> bool:
            return (await metrics(ports.health))["picket_agent_results_spooled"] >= 1

        await until(spooled)
        await started(stack, service_program(folder, port=ports.service))

        async def several() -> list[dict[str, Any]] | None:
            found = await api.results(check.id, limit=100)
            ran = [result for result in found if result["status"] != "MISSED"]
            later = [result for result in ran if result["id"] not in earlier]
            return later if len(later) >= 2 else None

        results = await until(several)
        counted = await metrics(ports.health)
    runs = [result["checkRunId"] for result in results]
    assert len(set(runs)) == len(runs)
    assert {result["status"] for result in results} == {"PASSED"}
    first = min(results, key=lambda result: str(result["startedAt"]))
    assert datetime.fromisoformat(first["startedAt"]) < killed_at, "it was under way then"
    assert counted["picket_agent_results_dropped_total"] == 0
