from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.servers.service import RunningService, serve_service

BEAT = {"period": 1, "periodUnit": "minutes", "grace": 30, "graceUnit": "seconds"}


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
    assert await ping(service, method, "nightly-token") == 405


async def test_a_ping_is_what_the_next_job_counts_from(service: RunningService) -> None:
    await ping(service, "POST", "nightly-token")
    await service.hello()
    [job] = (await service.claim()).body["jobs"]
    assert 0 <= job["spec"]["silentForSeconds"] < 60
