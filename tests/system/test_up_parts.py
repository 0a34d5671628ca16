"""`picket service` and `picket agent` in the foreground: their codes and what they never say."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from picket.api_client import ApiRefusedError, PublicApi
from tests.builders.patience import LONG_S
from tests.system.waiting import until

API_KEY = "cu_" + "a" * 40
LOCATION_KEY = "pl_" + "b" * 40
QUIET_AGENT = {"AGENT_HEALTH_PORT": "0", "HEARTBEAT_PORT": "0", "API_KEY": LOCATION_KEY}


async def start(command: str, **settings: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "picket",
        command,
        env={"PATH": os.environ["PATH"], **settings},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    said, _ = await asyncio.wait_for(process.communicate(), LONG_S)
    return process.returncode, said.decode()


@asynccontextmanager
async def a_service(folder: Path) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """At a port that it chooses itself: one that was free before may be somebody else's by now."""
    process = await start(
        "service",
        SERVICE_HOST="127.0.0.1",
        SERVICE_PORT="0",
        SERVICE_DATA_DIR=str(folder),
        FIRST_API_KEY=API_KEY,
        FIRST_LOCATION_KEY=LOCATION_KEY,
        LOG_FORMAT="json",
    )
    try:
        yield f"http://127.0.0.1:{await port_of(process)}", process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def port_of(process: asyncio.subprocess.Process) -> int:
    """Where it listens, by its own word, once it is ready; until then it says no key."""
    assert process.stdout is not None
    async with asyncio.timeout(LONG_S):
        async for line in process.stdout:
            assert not any(key in line.decode() for key in (API_KEY, LOCATION_KEY))
            if b'"service.ready"' in line:
                return int(json.loads(line)["port"])
    raise AssertionError("it ended before it was ready")


@pytest.mark.parametrize(
    ("command", "settings", "sentence"),
    [
        ("agent", {"AGENT_HEALTH_PORT": "99999"}, "AGENT_HEALTH_PORT is 99999; use 0 to 65535"),
        ("agent", {}, "API_KEY is not set"),
        ("service", {"SERVICE_PORT": "99999"}, "SERVICE_PORT is 99999; use 0 to 65535"),
    ],
)
async def test_wrong_settings_end_it_with_2_and_a_line_each(
    command: str, settings: dict[str, str], sentence: str
) -> None:
    code, said = await ended(await start(command, **settings))
    assert code == 2
    assert sentence in said
    assert "Traceback" not in said


async def test_a_refused_key_ends_the_agent_with_3(tmp_path: Path) -> None:
    async with a_service(tmp_path / "service") as (url, _):
        wrong = "pl_" + "c" * 40
        agent = await start(
            "agent",
            **QUIET_AGENT | {"API_KEY": wrong},
            SERVICE_URL=url,
            AGENT_DATA_DIR=str(tmp_path / "agent"),
        )
        code, said = await ended(agent)
    assert code == 3
    assert wrong not in said


async def agent_count(api: PublicApi) -> int:
    return int((await api.locations())[0]["agentCount"])


async def test_both_stop_politely_and_never_say_a_key(tmp_path: Path) -> None:
    async with a_service(tmp_path / "service") as (url, service):
        agent = await start(
            "agent", **QUIET_AGENT, SERVICE_URL=url, AGENT_DATA_DIR=str(tmp_path / "agent")
        )
        async with PublicApi(url, API_KEY) as api:
            await until(lambda: agent_count(api))
        agent.send_signal(signal.SIGTERM)
        agent_code, agent_said = await ended(agent)
        service.send_signal(signal.SIGTERM)
        service_code, service_said = await ended(service)
    assert (agent_code, service_code) == (0, 0)
    for key in (API_KEY, LOCATION_KEY):
        assert key not in agent_said + service_said


async def test_the_api_client_says_what_the_api_refused(tmp_path: Path) -> None:
    async with a_service(tmp_path / "service") as (url, _), PublicApi(url, "cu_wrong") as api:
        with pytest.raises(ApiRefusedError, match="GET /v1/private-locations returned 401"):
            await api.locations()
