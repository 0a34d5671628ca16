"""What only the assembled service shows."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.requests import Request

from service.app import _busy, running
from service.db.engine import DatabaseBusyError
from service.settings import Settings
from tests.servers.service import RunningService, serve_service


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with serve_service(tmp_path) as running_service:
        yield running_service


async def test_nothing_is_lost_while_another_process_holds_the_database(
    service: RunningService, tmp_path: Path
) -> None:
    await service.hello()
    other = sqlite3.connect(tmp_path / "service.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    creating = asyncio.create_task(service.a_url_check())
    claiming = asyncio.create_task(service.claim())
    await asyncio.sleep(0.5)
    assert not creating.done()
    other.execute("ROLLBACK")
    other.close()
    check_id = await creating
    assert [job["checkId"] for job in (await claiming).body["jobs"]] == [check_id]


async def test_a_check_runs_again_when_its_period_is_over(service: RunningService) -> None:
    await service.hello()
    body = {
        "name": "Echo port",
        "request": {"hostname": "127.0.0.1", "port": 9},
        "privateLocations": ["default"],
        "frequency": 0,
        "frequencyOffset": 10,
    }
    check_id = (await service.alice.post("/v1/checks/tcp", body)).body["id"]
    first = (await service.claim("claim-1")).body["jobs"]
    second = (await service.claim("claim-2")).body["jobs"]
    assert [job["checkId"] for job in (*first, *second)] == [check_id] * 2


async def test_a_triggered_session_is_awaited_to_its_end(service: RunningService) -> None:
    await service.hello()
    check_id = await service.a_url_check(activated=True)
    [scheduled] = (await service.claim("claim-1")).body["jobs"]
    assert scheduled["runSource"] == "SCHEDULER"
    triggered = await service.alice.post(
        "/v1/check-sessions/trigger", {"target": {"checkId": [check_id]}}
    )
    session_id = triggered.body["sessions"][0]["checkSessionId"]
    waiting = asyncio.create_task(
        service.alice.get(f"/v1/check-sessions/{session_id}/completion?maxWaitSeconds=30")
    )
    [job] = (await service.claim("claim-2")).body["jobs"]
    result = {
        "jobId": job["jobId"],
        "fence": job["fence"],
        "runId": job["runId"],
        "checkId": check_id,
        "checkType": "URL",
        "agentId": "agent-1",
        "startedAt": "2026-11-21T10:00:00Z",
        "startedAfterSeconds": 0.0,
        "tookSeconds": 0.1,
        "outcome": {"status": "FAILED", "failure": {"kind": "DNS", "message": "no such name"}},
    }
    await service.agent("POST", "/agent/v1/results", {"results": [result]})
    answer = await waiting
    assert (answer.status, answer.body["status"]) == (200, "FAILED")


async def test_a_first_start_happens_once(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_file=tmp_path / "service.db")
    async with running(settings) as first:
        assert first.first_secrets is not None
    async with running(settings) as second:
        assert second.first_secrets is None


async def test_a_busy_database_is_told_as_such_and_asks_to_try_again() -> None:
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
    answer = await _busy(request, DatabaseBusyError("locked"))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert b"Service Unavailable" in bytes(answer.body)
