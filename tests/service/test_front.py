"""The front door: what it answers before, while and after the application is there."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from starlette.responses import PlainTextResponse

from contract.release import RELEASE
from service.serving import StartupGate
from tests.servers.public_api import listening

APPLICATION = PlainTextResponse("the application")
PROBES = ("/health", "/-/readiness", "/-/liveness")


@dataclass(frozen=True, slots=True)
class Door:
    front: StartupGate
    url: str
    http: aiohttp.ClientSession

    async def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        async with self.http.request(method, self.url + path) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    front = StartupGate()
    async with listening(front) as url, aiohttp.ClientSession() as http:
        yield Door(front, url, http)


async def test_before_the_database_is_open_the_service_is_live_but_not_ready(door: Door) -> None:
    assert await door.ask("/-/liveness") == (200, "OK\n")
    assert await door.ask("/-/readiness") == (503, "The service is starting.\n")


async def test_an_open_service_is_live_and_ready(door: Door) -> None:
    door.front.open(APPLICATION)
    assert await door.ask("/-/liveness") == (200, "OK\n")
    assert await door.ask("/-/readiness") == (200, "OK\n")


async def test_a_draining_service_is_not_ready_but_still_serves(door: Door) -> None:
    door.front.open(APPLICATION)
    door.front.drain()
    assert await door.ask("/-/readiness") == (503, "The service is draining.\n")
    assert await door.ask("/-/liveness") == (200, "OK\n")
    assert await door.ask("/") == (200, "the application")


async def test_a_service_that_opens_while_it_is_told_to_stop_does_not_turn_ready(
    door: Door,
) -> None:
    door.front.drain()
    door.front.open(APPLICATION)
    assert (await door.ask("/-/readiness"))[0] == 503


async def test_health_says_as_json_how_far_the_service_is_and_needs_no_key(door: Door) -> None:
    told = []
    for step in (lambda: None, lambda: door.front.open(APPLICATION), door.front.drain):
        step()
        async with door.http.get(f"{door.url}/health") as answer:
            assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
            told.append(await answer.json())
    stages = ("starting", "ready", "draining")
    assert told == [{"status": stage, "version": RELEASE} for stage in stages]


async def test_a_request_that_comes_too_early_waits_for_the_application(door: Door) -> None:
    early = asyncio.create_task(door.ask("/v1/checks"))
    await door.ask("/health")
    door.front.open(APPLICATION)
    assert await early == (200, "the application")


async def test_a_request_that_waited_for_nothing_is_told_to_try_again() -> None:
    front = StartupGate(patience_s=0.01)
    async with (
        listening(front) as url,
        aiohttp.ClientSession() as http,
        http.get(url) as answer,
    ):
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert (await answer.json())["message"] == "The service is starting; try again."


@pytest.mark.parametrize("path", PROBES)
async def test_a_probe_is_read_only(door: Door, path: str) -> None:
    status, body = await door.ask(path, "POST")
    assert (status, f"POST is not supported at {path}." in body) == (405, True)
    assert await door.ask(path, "HEAD") == ((await door.ask(path))[0], "")
