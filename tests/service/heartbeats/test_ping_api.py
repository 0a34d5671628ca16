import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from service.http.rate_limits.rate_limit import ALLOWANCES, RateClass
from tests.servers.service import RunningService, serve_service

BEAT = {"period": 1, "periodUnit": "minutes", "grace": 30, "graceUnit": "seconds"}


class Answer(NamedTuple):
    """What came of one ping."""

    status: int
    retry_after: str | None
    """None: nothing is said of it."""
    body: Any


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with serve_service(tmp_path) as running:
        body = {"name": "Nightly", "heartbeat": {**BEAT, "pingToken": "nightly-token"}}
        assert (await running.alice.post("/v1/checks/heartbeat", body)).status == 201
        yield running


async def ping(service: RunningService, method: str, token: str) -> int:
    url = f"{service.url}/ping/{token}"
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, url, allow_redirects=False) as answer,
    ):
        return answer.status


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whoever_knows_the_token_can_ping(service: RunningService, method: str) -> None:
    assert await ping(service, method, "nightly-token") == 200


async def test_a_slash_at_the_end_is_a_ping_too(service: RunningService) -> None:
    assert await ping(service, "GET", "nightly-token/") == 200


async def test_an_unknown_token_is_not_found(service: RunningService) -> None:
    assert await ping(service, "GET", "guessed") == 404


@pytest.mark.parametrize("method", ["PUT", "HEAD"])
async def test_looking_at_the_address_in_other_ways_is_no_ping(
    service: RunningService, method: str
) -> None:
    address = f"{service.url}/ping/nightly-token"
    async with service.http.request(method, address) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")


async def test_a_ping_is_what_the_next_job_counts_from(service: RunningService) -> None:
    await ping(service, "POST", "nightly-token")
    await service.hello()
    [job] = (await service.claim()).body["jobs"]
    assert 0 <= job["spec"]["silentForSeconds"] < 60


async def pings_until_held_back(service: RunningService, token: str) -> list[Answer]:
    """What each of them was answered; some drip in while they are sent."""

    async def one() -> Answer:
        async with service.http.get(f"{service.url}/ping/{token}") as answer:
            return Answer(answer.status, answer.headers.get("retry-after"), await answer.json())

    seen: list[Answer] = []
    for _ in range(10):
        seen += await asyncio.gather(*(one() for _ in range(100)))
        if any(answer.status == 429 for answer in seen):
            return seen
    raise AssertionError("1000 pings, and none was held back")


async def test_a_token_that_pings_without_end_is_held_back_and_no_other(
    service: RunningService,
) -> None:
    body = {"name": "Hourly", "heartbeat": {**BEAT, "pingToken": "hourly-token"}}
    assert (await service.alice.post("/v1/checks/heartbeat", body)).status == 201
    seen = await pings_until_held_back(service, "nightly-token")
    taken = [answer for answer in seen if answer.status == 200]
    assert len(taken) >= ALLOWANCES[RateClass.PINGS].requests
    assert await ping(service, "GET", "hourly-token") == 200


async def test_a_ping_that_is_held_back_is_told_in_the_words_of_the_specification(
    service: RunningService,
) -> None:
    seen = await pings_until_held_back(service, "guessed")
    refusal = next(answer for answer in seen if answer.status == 429)
    assert 1 <= int(refusal.retry_after or 0) <= 60
    assert (refusal.body["statusCode"], refusal.body["error"]) == (429, "Too Many Requests")


async def test_whoever_guesses_tokens_is_held_back_and_no_ping_is_lost_by_that(
    service: RunningService,
) -> None:
    """Nor of a job that has not pinged before, as after a start: its silence would be told."""
    seen = await pings_until_held_back(service, "guessed")
    assert {answer.status for answer in seen} == {404, 429}
    assert await ping(service, "GET", "nightly-token") == 200
