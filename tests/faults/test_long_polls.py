"""The service goes while a hundred long polls are open."""

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.faults.scene import LOCATION_KEY, Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(60)]

POLLS = 100
_AGENT = {"version": "1.0.0", "platform": "linux", "checkTypes": ["API"], "slots": {"uptime": 1}}


class Crowd:
    """A hundred agents that only wait for work."""

    def __init__(self, scene: Scene, http: aiohttp.ClientSession) -> None:
        self._scene, self._http = scene, http

    async def arrive(self) -> list[asyncio.Task[Any]]:
        """Everyone says hello and waits; the polls that are open then."""
        names = [f"agent-{number}" for number in range(POLLS)]
        hellos = [self._post(name, "hello", {**_AGENT, "agentId": name}) for name in names]
        await asyncio.gather(*hellos)
        return [asyncio.create_task(self._wait(name)) for name in names]

    async def _wait(self, name: str) -> Any:
        claim = {
            "claimId": f"claim-{name}-{id(self)}",
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

    async def all_wait(self) -> None:
        """Wait until the service holds every poll."""
        before = self._scene.service.fds_at_start
        await self._scene.until(lambda: self._scene.service.fds() >= before + POLLS)
        await asyncio.sleep(0.5)


@pytest.fixture
async def crowd(scene: Scene) -> AsyncIterator[Crowd]:
    connections = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connections) as http:
        yield Crowd(scene, http)


async def test_a_polite_stop_answers_every_poll_and_is_soon_over(
    scene: Scene, crowd: Crowd
) -> None:
    polls = await crowd.arrive()
    await crowd.all_wait()
    scene.service.signal(signal.SIGTERM)
    answers = await asyncio.wait_for(asyncio.gather(*polls), 10)
    assert all(answer["jobs"] == [] for answer in answers)
    assert all(answer["nextPollSeconds"] > 0 for answer in answers), "not all at once again"
    assert await scene.service.ended() == 0


async def test_after_a_crash_every_poll_comes_back_and_each_job_goes_to_one(
    scene: Scene, crowd: Crowd
) -> None:
    polls = await crowd.arrive()
    await crowd.all_wait()
    await scene.service.kill()
    ended = await asyncio.gather(*polls, return_exceptions=True)
    assert all(isinstance(end, aiohttp.ClientError) for end in ended)
    await scene.start_service()
    polls = await crowd.arrive()
    await crowd.all_wait()
    await scene.check(count=POLLS)
    answers = await asyncio.wait_for(asyncio.gather(*polls), 20)
    jobs = [job["jobId"] for answer in answers for job in answer["jobs"]]
    assert len(jobs) == len(set(jobs)) == POLLS


async def test_polls_that_hang_up_leave_nothing_open(scene: Scene, crowd: Crowd) -> None:
    polls = await crowd.arrive()
    await crowd.all_wait()
    for poll in polls:
        poll.cancel()
    await asyncio.gather(*polls, return_exceptions=True)
    await scene.until(lambda: scene.service.fds() <= scene.service.fds_at_start + 12)
