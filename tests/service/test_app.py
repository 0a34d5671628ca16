"""What only the assembled service shows."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from service.app import _busy, running
from service.db.engine import DatabaseBusyError
from service.settings import Settings
from tests.builders.certificates import encrypted, issued
from tests.servers.service import RunningService, serve_service


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
    settings = Settings(data_dir=tmp_path, database=tmp_path / "service.db")
    async with running(settings) as first:
        assert first.first_secrets is not None
    async with running(settings) as second:
        assert second.first_secrets is None


async def test_a_busy_database_is_told_as_such_and_asks_to_try_again() -> None:
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
    answer = await _busy(request, DatabaseBusyError("locked"))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert b"Service Unavailable" in bytes(answer.body)


async def test_no_secret_can_be_read_in_the_files_of_the_database(tmp_path: Path) -> None:
    cert, key = issued()
    locked = encrypted(key, "open-sesame-passphrase")
    async with serve_service(tmp_path) as running:
        for number, (path, body) in enumerate(
            (
                ("variables", {"key": "TOKEN", "value": "s3cr3t-account", "secret": True}),
                ("variables", {"key": "PLAIN", "value": "plain-account"}),
                (
                    "client-certificates",
                    {
                        "host": "*",
                        "cert": cert,
                        "key": locked,
                        "passphrase": "open-sesame-passphrase",
                    },
                ),
                ("checks/multistep", _scripted({"key": "OWN", "value": "s3cr3t-check"})),
            )
        ):
            once = {"idempotency-key": f"key {number}"}
            made = await running.alice.post(f"/v1/{path}", body, headers=once)
            assert made.status == 201, made.body
        changed = {"value": "s3cr3t-changed", "secret": True}
        assert (await running.alice.put("/v1/variables/TOKEN", changed)).status == 200
        await running.hello(checkTypes=["MULTI_STEP"], slots={"main": 1})
        dealt = await running.claim(checkTypes=["MULTI_STEP"], slots={"main": 1})
        assert "s3cr3t-check" in str(dealt.body)
        files = _files(tmp_path)
    assert {"service.db", "master-key"} <= files.keys()
    secrets = (
        b"s3cr3t-account",
        b"s3cr3t-changed",
        b"plain-account",
        b"s3cr3t-check",
        b"open-sesame-passphrase",
    )
    for name, content in files.items():
        for secret in (*secrets, locked.splitlines()[1].encode()):
            assert secret not in content, name


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _scripted(*variables: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "Order",
        "script": "1",
        "privateLocations": ["default"],
        "environmentVariables": list(variables),
    }


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("trusted", "status"), [("127.0.0.0/8", 401), ("192.0.2.9", 429)])
async def test_wrong_keys_count_for_the_address_that_a_trusted_proxy_tells(
    tmp_path: Path, trusted: str, status: int, method: str
) -> None:
    async with serve_service(tmp_path, trusted_proxies=(trusted,), refused_requests=1) as service:
        assert await _with_wrong_key(service, method, sender="192.0.2.1") == 401
        assert await _with_wrong_key(service, method, sender="192.0.2.2") == status


async def _with_wrong_key(service: RunningService, method: str, *, sender: str) -> int:
    headers = {"authorization": f"Bearer cu_{'0' * 40}", "x-forwarded-for": sender}
    address = f"{service.url}/v1/checks"
    async with service.http.request(method, address, headers=headers) as answer:
        return answer.status


async def test_the_document_is_written_once_and_not_by_the_framework_each_time(
    tmp_path: Path,
) -> None:
    async with serve_service(tmp_path) as service:
        async with service.http.get(f"{service.url}/openapi.json") as answer:
            seen = await answer.read()
        assert seen == json.dumps(json.loads(seen), separators=(",", ":")).encode()
