"""The commands of docs/api.md, as they stand there: a real service, a real agent, curl."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builders.rights import can_ping
from tests.faults.processes import Child
from tests.servers.dns import dns_server

ROOT = Path(__file__).parents[2]
KEY = "cu_" + "w" * 40
PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
END = "\nkill %1\nwait\n"
LIMIT_S = 500.0


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """Where a service listens that was started for the first time."""
    environ = {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": "0",
        "SERVICE_DATA_DIR": str(tmp_path / "service"),
        "FIRST_API_KEY": KEY,
    }
    service = await Child.start("service", environ)
    try:
        yield int((await service.logged("service.ready"))["port"])
    finally:
        await service.kill()


def as_installed(folder: Path) -> None:
    """`.venv/bin/picket` of this folder is the program of this tree."""
    program = folder / ".venv/bin/picket"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m picket "$@"\n')
    program.chmod(0o755)


async def typed(script: str, folder: Path, **environ: str) -> str:
    """What a shell prints that gets these commands; whatever it started has ended then."""
    ports = {"AGENT_HEALTH_PORT": "0", "HEARTBEAT_PORT": "0", "LOG_FORMAT": "json"}
    told = folder / "told"
    with told.open("wb") as out:
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", script),
            cwd=folder,
            env={"PATH": os.environ["PATH"], **ports, **environ},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(shell.wait(), LIMIT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, told.read_text()
    return told.read_text()


@pytest.mark.timeout(600)
@pytest.mark.skipif(not can_ping(), reason="one of the checks pings, which this user may not")
async def test_a_newcomer_gets_a_result_of_each_type_by_the_commands_of_the_page(
    port: int, tmp_path: Path
) -> None:
    as_installed(tmp_path)
    async with dns_server({("example.com.", "A"): ["192.0.2.1"]}) as server:
        told = await typed(
            "\n".join(COMMANDS) + END,
            tmp_path,
            HOST="127.0.0.1",
            PORT=str(port),
            KEY=KEY,
            NAME_SERVER="127.0.0.1",
            NAME_SERVER_PORT=str(server.port),
        )
    # An answer before it may end without a new line.
    verdicts = re.findall(r"([A-Z_]+) [0-9a-f-]{36}$", told, re.MULTILINE)
    assert verdicts == ["PASSED"] * 8, told
    assert '"state":"RECEIVED"' in told
    assert '"checkSessionId"' in told
    assert '"lastRunLocation":"cellar"' in told


def test_the_page_has_the_commands() -> None:
    assert len(COMMANDS) == 7
    assert not [block for block in COMMANDS if KEY in block]
