"""`picket trace` shows a trace to a real browser, which asks this machine alone for anything."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from contract.runtimes import RUNTIMES
from picket.trace import TraceFile, choose_runtime, newest_playwright
from tests.builders.patience import LONG_S
from tests.builders.scripts import runtimes_here
from tests.builders.trace_viewer import looked_at
from tests.servers.recording_proxy import RecordingProxy

ONLY_LOOPBACK = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "viewer")
"""Starts a command where there is no network but loopback."""
SCRIPT = """
const { expect, test } = require('@playwright/test');
test('shows a page', async ({ page }) => {
  await page.setContent('<h1>Open</h1><img src="http://elsewhere.invalid/logo.png">');
  await page.getByRole('heading').click();
  expect(1).toBe(2);
});
"""


async def a_trace(folder: Path, runtime_id: str) -> Path:
    """What a check that fails leaves on this runtime."""
    check = {"type": "BROWSER", "runtimeId": runtime_id, "script": SCRIPT}
    (folder / "check.yaml").write_text(json.dumps(check))
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "picket", "run", "check.yaml", "--artifacts", "out"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await run.communicate()
    assert run.returncode == 1
    assert said.decode().splitlines()[-1].endswith(" -m picket trace out/trace.zip")
    return folder / "out/trace.zip"


async def until_printed(out: asyncio.StreamReader, last: str) -> str:
    printed = ""
    async with asyncio.timeout(LONG_S):
        while last not in printed:
            line = (await out.readline()).decode()
            assert line, printed
            printed += line
    return printed


@pytest.mark.timeout(300)
@pytest.mark.parametrize("runtime_id", RUNTIMES)
async def test_the_printed_address_shows_the_actions_and_asks_nobody_else(
    runtime_id: str, tmp_path: Path
) -> None:
    trace = await a_trace(tmp_path, runtime_id)
    async with a_viewer(trace) as (viewer, printed):
        url = address(printed)
        port = urlsplit(url).port
        assert f"ssh -L {port}:127.0.0.1:{port} " in printed
        async with RecordingProxy() as proxy:
            seen = await looked_at(url, "actions", proxy.url)
            asked = {urlsplit(request.url).netloc for request in proxy.seen}
        await nothing_is_shown_without_the_word(url)
    assert viewer.returncode == 0
    assert seen.problems == []
    assert any("click" in action.lower() for action in seen.actions), seen.actions
    assert asked == {f"127.0.0.1:{port}"}


@pytest.mark.timeout(300)
async def test_the_printed_address_works_without_display_and_without_any_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not may_be_without_a_network():
        pytest.skip("only root that may make network namespaces can be without a network")
    monkeypatch.delenv("DISPLAY", raising=False)
    trace = await a_trace(tmp_path, next(iter(RUNTIMES)))
    async with a_viewer(trace, enter=ONLY_LOOPBACK) as (viewer, printed):
        there = ("nsenter", f"--net=/proc/{viewer.pid}/ns/net")
        seen = await looked_at(address(printed), "actions", enter=there)
    assert viewer.returncode == 0
    assert seen.problems == []
    assert any("click" in action.lower() for action in seen.actions), seen.actions


def may_be_without_a_network() -> bool:
    return not subprocess.run([*ONLY_LOOPBACK, "true"], capture_output=True, check=False).returncode


@asynccontextmanager
async def a_viewer(
    trace: Path, *, enter: tuple[str, ...] = ()
) -> AsyncIterator[tuple[Process, str]]:
    """The command that is printed for a trace, and what it prints; it is stopped by Ctrl-C."""
    viewer = await asyncio.create_subprocess_exec(
        *(*enter, sys.executable, "-m", "picket", "trace", str(trace)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert viewer.stdout is not None
    try:
        yield viewer, await until_printed(viewer.stdout, "Ctrl-C stops it")
    finally:
        viewer.send_signal(signal.SIGINT)
        await viewer.wait()


def address(printed: str) -> str:
    url = re.search(r"http://127\.0\.0\.1:\d+/\S+trace=\S+", printed)
    assert url is not None, printed
    return url[0]


async def nothing_is_shown_without_the_word(url: str) -> None:
    at = urlsplit(url)
    async with aiohttp.ClientSession(f"http://{at.netloc}") as session:
        for path in ("/", "/index.html", "/traces/1.zip", "/guessed/traces/1.zip"):
            async with session.get(path) as answer:
                assert answer.status == 404, path


@pytest.mark.parametrize(
    ("wrote", "shows"),
    [
        (None, "1.65.1"),
        ("1.65.1", "1.65.1"),
        ("1.51.1", "1.51.1"),
        ("1.40.0", "1.51.1"),
        ("1.56.0", "1.65.1"),
        ("1.100.0", "1.65.1"),
        ("1.66.0-alpha-2027", "1.65.1"),
    ],
)
def test_the_viewer_is_the_next_one_that_is_no_older_than_the_trace(
    wrote: str | None, shows: str
) -> None:
    runtimes = tuple(runtimes_here().by_id.values())
    assert choose_runtime(runtimes, wrote).playwright == shows


def test_the_newest_trace_of_several_decides() -> None:
    wrote = (None, "1.9.3", "1.51.1", "1.50.0")
    traces = [TraceFile(path=Path("a"), name="a", playwright=version) for version in wrote]
    assert newest_playwright(traces) == "1.51.1"
    assert newest_playwright(traces[:1]) is None
