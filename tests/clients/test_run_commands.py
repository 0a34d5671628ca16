"""The established command line runs checks, behind the address alone."""

import asyncio
import re
import signal
from pathlib import Path

from tests.clients.scene import ClientScene, a_client_scene

_DOWN = """
import { ApiCheck, AssertionBuilder, TcpMonitor } from 'checkly/constructs'

new ApiCheck('teapot', {
  name: 'Teapot',
  request: {
    url: `${process.env.SHOP_URL}/api/books`,
    method: 'GET',
    assertions: [AssertionBuilder.statusCode().equals(418)],
  },
})

new TcpMonitor('nobody', {
  name: 'Nobody listens',
  request: { hostname: '127.0.0.1', port: 1 },
})
"""


async def test_a_project_is_tested_recorded_and_its_session_is_read_back(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path, agent="uptime") as scene:
        client = scene.client("template")
        (client.project / "__checks__/homepage.spec.ts").unlink()
        passed = await client.run("test")
        assert "2 passed, 2 total" in passed
        assert await scene.ask("GET", "/v1/checks") == [], "nothing is stored"
        assert "Books API" in await client.run("test", "--list")
        (client.project / "__checks__/down.check.ts").write_text(_DOWN)
        failed = await client.run("test", "--verbose", code=1)
        assert "2 failed, 2 passed, 4 total" in failed
        assert "418" in failed
        assert "refused the connection" in failed
        one = await client.run("test", "--grep", "Teapot", "--retries", "1", code=1)
        assert "1 failed, 1 total" in one
        detached = await client.run("test", "--detach", "--test-session-name", "Nightly")
        session = re.findall(r"[0-9a-f-]{36}", detached)[-1]
        seen = await client.run("test-sessions", "get", session, "--watch")
        assert "Teapot" in seen
        assert "Nightly" in await client.run("test-sessions", "list")


async def test_stored_checks_are_triggered_and_run(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path, agent="uptime") as scene:
        client = scene.client("template")
        for name in ("Shop", "Blog"):
            body = {"name": name, "tags": ["mac"], "locations": ["us-east-1"]}
            await scene.ask("POST", "/v1/checks/url", {**body, "request": {"url": scene.shop}})
        triggered = await client.run("trigger", "--tags", "mac", "--env", "SHELF=2")
        assert "2 passed, 2 total" in triggered
        nothing = await client.run("trigger", "--tags", "nobody-has-it", code=1)
        assert "No matching checks" in nothing
        await client.run("trigger", "--tags", "nobody-has-it", "--no-fail-on-no-matching")
        ran = await client.run("checks", "run", "--tags", "mac")
        assert ran.count("passing") + ran.count("passed") > 0
        assert "passing" in await client.run("checks", "list")


async def test_ctrl_c_cancels_what_is_tested(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path, agent="uptime") as scene:
        client = scene.client("template")
        (client.project / "__checks__/homepage.spec.ts").unlink()
        (client.project / "__checks__/slow.check.ts").write_text(_SLOW)
        running = await client.start("test", "--grep", "Slow")
        await running.says("Running 1 check")
        await asyncio.wait_for(scene.slow_request.wait(), 60)
        running.process.send_signal(signal.SIGINT)
        await running.end()
        await cancelled(scene)


async def cancelled(scene: ClientScene) -> None:
    async with asyncio.timeout(60):
        while True:
            sessions = (await scene.ask("GET", "/v1/test-sessions"))["entries"]
            if [one["status"] for one in sessions] == ["CANCELLED"]:
                return
            await asyncio.sleep(0.2)


_SLOW = """
import { UrlMonitor } from 'checkly/constructs'

new UrlMonitor('slow', {
  name: 'Slow',
  request: { url: `${process.env.SHOP_URL}/slow` },
})
"""


async def test_browser_checks_and_suites_run_from_the_project(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path, agent="scripts") as scene:
        client = scene.client("everything")
        passed = await client.run("test", "scripted")
        assert "3 passed, 3 total" in passed
        words = ("--config", "suite/playwright.config.ts", "--project", "chromium")
        options = ("pw-test", "--env", f"SHOP_URL={scene.shop}")
        suite = await client.run(*options, "--", *words)
        assert "1 passed, 1 total" in suite
        assert suite.count("Running 1 test using 1 worker") == 1, "its log"
        quiet = await client.run(*options, "--no-stream-logs", "--", *words)
        assert "Running 1 test" not in quiet


_LOOKS = """
import { expect, test } from '@playwright/test'

test('the shop looks as ever', async ({ page }) => {
  await page.goto('/')
  console.log('looking at the shop')
  await expect(page).toHaveScreenshot('shop.png')
})
"""


async def test_snapshots_are_written_into_the_project_and_compared_with(tmp_path: Path) -> None:
    async with a_client_scene(tmp_path, agent="scripts") as scene:
        client = scene.client("everything")
        (client.project / "scripts/browser.spec.ts").write_text(_LOOKS)
        words = ("test", "scripted", "--grep", "Browser")
        missing = await client.run(*words, code=1)
        assert "A snapshot doesn't exist" in missing
        updated = await client.run(*words, "--update-snapshots", "--verbose")
        assert "1 passed, 1 total" in updated
        assert "looking at the shop" in updated, "its log"
        written = client.project / "scripts/browser.spec.ts-snapshots/shop-linux.png"
        assert written.read_bytes().startswith(b"\x89PNG")
        assert "1 passed, 1 total" in await client.run(*words)
