"""The service as a process: starting, first secrets, stopping, starting again."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).parents[2]
API_KEY = "cu_" + "k" * 40
LOCATION_KEY = "pl_" + "k" * 40
GIVEN = {"FIRST_API_KEY": API_KEY, "FIRST_LOCATION_KEY": LOCATION_KEY}
HELLO = {
    "agentId": "agent-1",
    "version": "1.0.0",
    "platform": "linux",
    "checkTypes": ["URL"],
    "slots": {"uptime": 1},
}


@dataclass(slots=True)
class Process:
    child: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)
    port: int = 0

    async def read_until(self, event: str = "service.ready") -> None:
        assert self.child.stdout is not None
        while line := (await self.child.stdout.readline()).decode():
            self.lines.append(line.rstrip())
            if f'"{event}"' in line:
                self.port = json.loads(line)["port"]
                return
        raise AssertionError(self.lines)

    async def probe(self, path: str) -> int:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            return answer.status

    async def stop(self) -> int:
        self.child.send_signal(signal.SIGTERM)
        rest, _ = await self.child.communicate()
        self.lines += rest.decode().splitlines()
        assert self.child.returncode is not None
        return self.child.returncode


async def start(directory: Path, **environ: str) -> Process:
    chosen = {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": "0",
        "SERVICE_DATA_DIR": str(directory),
        "LOG_FORMAT": "json",
        **environ,
    }
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "service"),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **chosen},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    return Process(child)


@asynccontextmanager
async def a_service(directory: Path, **environ: str) -> AsyncIterator[Process]:
    process = await start(directory, **environ)
    try:
        await process.read_until()
        yield process
    finally:
        if process.child.returncode is None:
            process.child.kill()
            await process.child.communicate()


async def ask(
    process: Process,
    method: str,
    path: str,
    key: str,
    body: object = None,
    *,
    sent: list[str] | None = None,
) -> tuple[int, Any]:
    """One request; its path is added to `sent` once all of it is on its way."""

    async def note(*_: object) -> None:
        if sent is not None:
            sent.append(path)

    trace = aiohttp.TraceConfig()
    trace.on_request_chunk_sent.append(note)
    headers = {"authorization": f"Bearer {key}", "x-agent-id": "agent-1"}
    url = f"http://127.0.0.1:{process.port}{path}"
    async with (
        aiohttp.ClientSession(trace_configs=[trace]) as http,
        http.request(method, url, headers=headers, json=body) as answer,
    ):
        return answer.status, await answer.json()


async def test_bad_settings_are_said_in_one_line_each_and_end_the_process(tmp_path: Path) -> None:
    process = await start(tmp_path, SERVICE_PORT="99999", LOG_LEVEL="LOUD")
    said, _ = await process.child.communicate()
    assert process.child.returncode == 2
    assert said.decode().splitlines() == [
        "SERVICE_PORT is 99999; use 0 to 65535",
        "LOG_LEVEL is LOUD; use DEBUG, INFO, WARN or ERROR",
    ]


async def test_a_misspelt_setting_is_logged_with_the_nearest_name_and_no_value(
    tmp_path: Path,
) -> None:
    async with a_service(tmp_path, SERVICE_PROT="what-nobody-reads") as process:
        await process.stop()
    events = [json.loads(line) for line in process.lines if line.startswith("{")]
    (told,) = [one for one in events if one["event"] == "settings.unknown"]
    assert (told["level"], told["name"]) == ("warning", "SERVICE_PROT")
    assert told["did_you_mean"] == "SERVICE_PORT"
    assert "what-nobody-reads" not in "\n".join(process.lines)


async def test_a_taken_port_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await start(tmp_path / "data", SERVICE_PORT=str(port))
        said, _ = await process.child.communicate()
    assert process.child.returncode == 2
    assert said.decode().splitlines() == [
        f"SERVICE_PORT is {port}, but another program listens there; use a free port, or 0 for any"
    ]
    assert not (tmp_path / "data").exists()


async def test_a_host_that_is_not_ours_is_said_in_one_line(tmp_path: Path) -> None:
    process = await start(tmp_path, SERVICE_HOST="192.0.2.1")
    said, _ = await process.child.communicate()
    assert process.child.returncode == 2
    assert said.decode().splitlines() == [
        "SERVICE_HOST is 192.0.2.1; use an address of this machine, as in 127.0.0.1"
    ]


async def test_another_master_key_is_said_in_one_sentence(tmp_path: Path) -> None:
    body = {"key": "TOKEN", "value": "s3cr3t", "secret": True}
    async with a_service(tmp_path, **GIVEN, SERVICE_MASTER_KEY="a1" * 32) as first:
        assert (await ask(first, "POST", "/v1/variables", API_KEY, body))[0] == 201
        assert await first.stop() == 0
    second = await start(tmp_path, SERVICE_MASTER_KEY="b2" * 32)
    said, _ = await second.child.communicate()
    assert second.child.returncode == 2
    (sentence,) = [line for line in said.decode().splitlines() if not line.startswith("{")]
    assert sentence.startswith("SERVICE_MASTER_KEY does not hold the key ")
    assert "b2b2" not in said.decode()
    changed = f"{'b2' * 32} {'a1' * 32}"
    async with a_service(tmp_path, SERVICE_MASTER_KEY=changed) as third:
        assert any('"vault.sealed_anew"' in line for line in third.lines)
        assert (await ask(third, "GET", "/v1/variables/TOKEN", API_KEY))[0] == 200
        assert await third.stop() == 0


async def test_what_the_service_keeps_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with a_service(tmp_path / "data") as process:
        kept = [tmp_path / "data", *(tmp_path / "data").iterdir()]
        assert [path for path in kept if path.stat().st_mode & 0o077] == []
        assert await process.stop() == 0


def assert_a_block(lines: list[str], api_key: str, location_key: str) -> None:
    """Keys stand between blank lines, and log lines hold neither."""
    (at,) = [number for number, line in enumerate(lines) if line.startswith("First start.")]
    blank, first, second = lines[at + 1 : at + 4]
    assert (lines[at - 1], blank, lines[at + 4]) == ("", "", "")
    assert first.split()[-1] == api_key
    assert second.split()[-1] == location_key
    assert not [line for line in lines if line.startswith("{") and "_key" in line]


async def test_a_first_start_prints_each_secret_once_and_a_second_none(tmp_path: Path) -> None:
    async with a_service(tmp_path) as first:
        assert await first.stop() == 0
    api_key, location_key = (
        next(word for line in first.lines for word in line.split() if word.startswith(prefix))
        for prefix in ("cu_", "pl_")
    )
    assert "\n".join(first.lines).count(api_key) == 1
    assert_a_block(first.lines, api_key, location_key)
    async with a_service(tmp_path) as second:
        assert (await ask(second, "GET", "/v1/checks", api_key))[0] == 200
        assert (await ask(second, "POST", "/agent/v1/hello", location_key, HELLO))[0] == 200
        assert await second.stop() == 0
    assert not [line for line in second.lines if "cu_" in line or "pl_" in line]


async def test_keys_that_were_given_work_and_are_not_printed(tmp_path: Path) -> None:
    async with a_service(tmp_path, **GIVEN) as process:
        assert (await ask(process, "GET", "/v1/checks", API_KEY))[0] == 200
        assert (await ask(process, "POST", "/agent/v1/hello", LOCATION_KEY, HELLO))[0] == 200
        await process.stop()
    assert API_KEY not in "\n".join(process.lines)
    assert LOCATION_KEY not in "\n".join(process.lines)


async def test_while_the_database_cannot_be_opened_yet_the_service_is_live_but_not_ready(
    tmp_path: Path,
) -> None:
    async with a_service(tmp_path, **GIVEN) as process:
        assert await process.stop() == 0
    other = sqlite3.connect(tmp_path / "picket.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    process = await start(tmp_path, **GIVEN)
    try:
        await process.read_until("service.listening")
        assert await process.probe("/-/liveness") == 200
        assert await process.probe("/-/readiness") == 503
        asking = asyncio.create_task(ask(process, "GET", "/v1/checks", API_KEY))
        other.execute("ROLLBACK")
        await process.read_until("service.ready")
        assert await process.probe("/-/readiness") == 200
        assert (await asking)[0] == 200
        assert await process.stop() == 0
    finally:
        other.close()
        if process.child.returncode is None:
            process.child.kill()
            await process.child.communicate()


async def test_a_stop_answers_a_hundred_long_polls_and_exits_in_peace(tmp_path: Path) -> None:
    async with a_service(tmp_path, **GIVEN) as process:
        await ask(process, "POST", "/agent/v1/hello", LOCATION_KEY, HELLO)
        claim = {"slots": {"uptime": 1}, "checkTypes": ["URL"], "waitSeconds": 30}
        sent: list[str] = []
        polls = [
            asyncio.create_task(
                ask(
                    process,
                    "POST",
                    "/agent/v1/jobs/claim",
                    LOCATION_KEY,
                    {"claimId": f"claim-{n}", **claim},
                    sent=sent,
                )
            )
            for n in range(100)
        ]
        while len(sent) < len(polls):  # noqa: ASYNC110 - many tasks add to it
            await asyncio.sleep(0.01)
        # What was sent before this question has been read before its answer.
        assert (await ask(process, "GET", "/v1/checks", API_KEY))[0] == 200
        assert await process.stop() == 0
        answers = await asyncio.gather(*polls)
    assert {status for status, _ in answers} == {200}


async def test_what_was_claimed_before_a_kill_is_settled_after_the_restart(tmp_path: Path) -> None:
    claim = {
        "claimId": "claim-1",
        "slots": {"uptime": 1},
        "checkTypes": ["URL"],
        "waitSeconds": 30,
    }
    check = {
        "name": "Front page",
        "request": {"method": "GET", "url": "http://127.0.0.1:9/"},
        "privateLocations": ["default"],
    }
    async with a_service(tmp_path, **GIVEN) as process:
        await ask(process, "POST", "/agent/v1/hello", LOCATION_KEY, HELLO)
        _, made = await ask(process, "POST", "/v1/checks/url", API_KEY, check)
        _, given = await ask(process, "POST", "/agent/v1/jobs/claim", LOCATION_KEY, claim)
        process.child.kill()
        await process.child.communicate()
    async with a_service(tmp_path, **GIVEN) as process:
        _, again = await ask(process, "POST", "/agent/v1/jobs/claim", LOCATION_KEY, claim)
        [job] = again["jobs"]
        assert (job["jobId"], job["fence"]) == (
            given["jobs"][0]["jobId"],
            given["jobs"][0]["fence"],
        )
        result = {
            "jobId": job["jobId"],
            "fence": job["fence"],
            "runId": job["runId"],
            "checkId": job["checkId"],
            "checkType": "URL",
            "agentId": "agent-1",
            "startedAt": "2026-11-21T10:00:00Z",
            "startedAfterSeconds": 0.0,
            "tookSeconds": 0.1,
            "outcome": {"status": "PASSED", "responseTimeMs": 12.5},
        }
        _, settled = await ask(
            process, "POST", "/agent/v1/results", LOCATION_KEY, {"results": [result]}
        )
        assert len(settled["accepted"]) == 1
        _, shown = await ask(process, "GET", f"/v1/check-results/{made['id']}", API_KEY)
        assert len(shown) == 1


async def test_a_database_that_cannot_be_opened_ends_the_process_with_a_sentence(
    tmp_path: Path,
) -> None:
    (tmp_path / "text.db").write_text("no database at all " * 100)
    for path in (tmp_path, tmp_path / "text.db", tmp_path / "text.db" / "below.db"):
        process = await start(tmp_path, DATABASE_URL=f"sqlite:///{path}")
        said, _ = await process.child.communicate()
        assert process.child.returncode == 2
        assert str(path) in said.decode()
        assert "Traceback" not in said.decode()
