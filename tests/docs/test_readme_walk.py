"""The commands of README.md, as they stand there, beside a running `picket up`."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.builders.patience import LONG_S
from tests.builders.trace_viewer import looked_at
from tests.picket.test_trace_viewer import SCRIPT, until_printed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
LIMIT_S = 120.0
PICKET = (sys.executable, "-m", "picket")


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    """Where somebody has started `picket up`, which is ready."""
    up = await asyncio.create_subprocess_exec(
        *PICKET, "up", cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert up.stdout is not None
    try:
        await until_printed(up.stdout, "target ")
        reading = asyncio.create_task(up.stdout.read())
        yield tmp_path
    finally:
        up.send_signal(signal.SIGINT)
        await up.wait()
    await reading


async def typed(script: str, folder: Path) -> str:
    """What a shell prints that gets these commands."""
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(shell.communicate(), LIMIT_S)
    assert shell.returncode == 0, said.decode()
    return said.decode()


@pytest.mark.timeout(300)
async def test_the_block_of_the_page_runs_as_it_stands(folder: Path) -> None:
    (block,) = COMMANDS
    said = await typed(block, folder)
    session, rest = json.JSONDecoder().raw_decode(said)
    results = json.loads(said[rest:])
    assert session["status"] == "PASSED"
    assert results
    assert {result["status"] for result in results} == {"PASSED"}


@pytest.mark.timeout(600)
async def test_a_result_of_a_running_service_is_opened_by_its_id(folder: Path) -> None:
    result = await a_failed_browser_result(folder)
    viewer = await asyncio.create_subprocess_exec(
        *PICKET, "trace", result["id"], cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    assert viewer.stdout is not None
    try:
        printed = await until_printed(viewer.stdout, "Ctrl-C stops it")
        url = re.search(r"http://127\.0\.0\.1:\d+/\S+trace=\S+", printed)
        assert url is not None
        seen = await looked_at(url[0], "actions")
    finally:
        viewer.send_signal(signal.SIGINT)
        await viewer.wait()
    assert result["id"] in printed  # by then `picket up` may have kept the trace in a file
    assert any("click" in action.lower() for action in seen.actions), seen.actions


async def a_failed_browser_result(folder: Path) -> dict[str, Any]:
    key = (folder / ".picket/api-key").read_text()
    url = (folder / ".picket/service-url").read_text().strip()
    headers = {"authorization": f"Bearer {key}"}
    body = {
        "name": "Page",
        "script": SCRIPT,
        "privateLocations": ["default"],
        "doubleCheck": False,
    }
    async with aiohttp.ClientSession(url, headers=headers) as session:
        async with session.post("/v1/checks/browser", json=body) as answer:
            check = await answer.json()
        async with asyncio.timeout(4 * LONG_S):  # one browser at a time, which others use
            while True:
                async with session.get(f"/v1/check-results/{check['id']}") as answer:
                    if results := await answer.json():
                        return dict(results[0])
                await asyncio.sleep(0.5)
