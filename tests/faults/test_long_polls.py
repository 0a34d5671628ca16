"""The service goes while a hundred long polls are open."""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from tests.faults.scene import LOCATION_KEY, Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

POLLS = 100
NAMES = [f"agent-{number}" for number in range(POLLS)]
_AGENT = {"version": "1.0.0", "platform": "linux", "checkTypes": ["API"], "slots": {"uptime": 1}}


class Crowd:
    """A hundred agents that only wait for work."""

    def __init__(self, scene: Scene, http: aiohttp.ClientSession) -> None:
        self._scene, self._http = scene, http
        self._claims = itertools.count()

    async def arrive(self) -> list[asyncio.Task[Any]]:
        """Everyone says hello and waits; the polls, once the service holds all of them.

        It holds a poll as a request and as a look at who hangs up: two tasks.
        """
        idle = await self._scene.service_tasks()
        hellos = [self._post(name, "hello", {**_AGENT, "agentId": name}) for name in NAMES]
        await asyncio.gather(*hellos)
        await self._until_tasks(lambda count: count <= idle)
        polls = [asyncio.create_task(self._poll(name)) for name in NAMES]
        await self._until_tasks(lambda count: count >= idle + 2 * POLLS)
        return polls

    async def _until_tasks(self, fits: Callable[[int], bool]) -> None:
        async def holds() -> bool:
            return fits(await self._scene.service_tasks())

        await self._scene.until(holds)

    async def work(self, polls: list[asyncio.Task[Any]]) -> list[str]:
        """The jobs that the agents get, each of which asks for as long as it has none."""
        return await asyncio.gather(*(self._job(*one) for one in zip(NAMES, polls, strict=True)))

    async def _job(self, name: str, poll: asyncio.Task[Any]) -> str:
        answer = await poll
        while not answer["jobs"]:
            answer = await self._poll(name)
        (job,) = answer["jobs"]
        return str(job["jobId"])

    async def _poll(self, name: str) -> Any:
        claim = {
            "claimId": f"claim-{name}-{next(self._claims)}",
            "slots": {"uptime": 1},
            "checkTypes": ["API"],
            "waitSeconds": 30,
        }
        return await self._post(name, "jobs/claim", claim)

    async def _post(self, name: str, call: str, body: Any) -> Any:
        headers = {"authorization": f"Bearer {LOCATION_KEY}", "x-agent-id": name}
        url = f"{self._scene.url}/agent/v1/{call}"
        async with self._http.post(url, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()


@pytest.fixture
async def crowd(scene: Scene) -> AsyncIterator[Crowd]:
    connections = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connections) as http:
        yield Crowd(scene, http)


async def test_a_polite_stop_answers_every_poll_and_is_soon_over(
    scene: Scene, crowd: Crowd
) -> None:
    polls = await crowd.arrive()
    scene.service.signal(signal.SIGTERM)
    answers = await asyncio.gather(*polls)
    assert all(answer["jobs"] == [] for answer in answers)
    assert all(answer["nextPollSeconds"] > 0 for answer in answers), "not all at once again"
    assert await scene.service.ended() == 0


async def test_after_a_crash_every_poll_comes_back_and_each_job_goes_to_one(
    scene: Scene, crowd: Crowd
) -> None:
    polls = await crowd.arrive()
    await scene.service.kill()
    ended = await asyncio.gather(*polls, return_exceptions=True)
    assert all(isinstance(end, aiohttp.ClientError) for end in ended)
    await scene.start_service()
    polls = await crowd.arrive()
    await scene.check(count=POLLS)
    assert len(set(await crowd.work(polls))) == POLLS


async def test_polls_that_hang_up_leave_nothing_open(scene: Scene, crowd: Crowd) -> None:
    polls = await crowd.arrive()
    for poll in polls:
        poll.cancel()
    await asyncio.gather(*polls, return_exceptions=True)
    await scene.until(lambda: scene.service.fds() <= scene.service.fds_at_start + 12)
