"""Scripted checks from end to end: set up at the service, run by schedule at a real agent."""

import shutil
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from runners.scripting.suites.bundle_archive import pack
from tests.builders.suites import NEWEST, SUITES
from tests.system.scripted_scene import ScriptedScene, a_scripted_scene

SETUP = """
request.url = request.url + 'orders';
request.body = JSON.stringify({ number: 7, check: process.env.CHECK_NAME });
if (!process.env.ACCOUNT_ID) throw new Error('Whose check is this?');
"""
TEARDOWN = """
const order = JSON.parse(response.body);
console.log('torn down', response.statusCode);
response.body = JSON.stringify({ number: order.asked.number, seen: order.asked.check });
"""
BROWSER = """
import { test, expect } from '@playwright/test';
import { heading } from './heading';
test('the page greets', async ({ page }) => {
  expect([process.env.CHECK_TYPE, process.env.RUNTIME_VERSION]).toEqual(['BROWSER', '2026.04']);
  await page.goto('/plain');
  await expect(page.getByRole('heading')).toHaveText(heading);
});
"""
HEADING = "export const heading = 'Good tea';"
MULTI_STEP = """
import { test, expect } from '@playwright/test';
test('orders', async ({ request }) => {
  const answer = await request.post('SITE/orders', { data: { number: 8 } });
  expect(await answer.json()).toEqual({ asked: { number: 8 } });
});
"""
SUITE = """
const { test, expect } = require('@playwright/test');
test('the suite runs as a service runs it', async ({ page }) => {
  const { SERVICE, SERVICE_RUN_SOURCE, CI } = process.env;
  expect([SERVICE, SERVICE_RUN_SOURCE, CI]).toEqual(['1', 'SCHEDULER', undefined]);
  await page.goto('SITE/plain');
  await expect(page).toHaveTitle('Plain');
});
"""


async def an_api_check(scene: ScriptedScene) -> str:
    request = {
        "method": "POST",
        "url": f"{scene.site}/",
        "bodyType": "JSON",
        "assertions": [
            {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "201"},
            {
                "source": "JSON_BODY",
                "property": "$.seen",
                "comparison": "EQUALS",
                "target": "Orders",
            },
        ],
    }
    scripts = {"localSetupScript": SETUP, "localTearDownScript": TEARDOWN}
    return await scene.check("api", name="Orders", request=request, **scripts)


async def a_browser_check(
    scene: ScriptedScene, *, heading: str = HEADING, patience_ms: int = 30_000
) -> str:
    return await scene.check(
        "browser",
        script=BROWSER,
        scriptPath="front.spec.ts",
        dependencies=[{"path": "heading.ts", "content": heading}],
        playwrightConfig={"use": {"baseURL": scene.site}, "expect": {"timeout": patience_ms}},
    )


async def a_suite_check(scene: ScriptedScene, folder: Path) -> str:
    project = folder / "suite"
    shutil.copytree(SUITES / f"versions/{NEWEST}", project)
    (project / "playwright.config.js").write_text("module.exports = { retries: 0 };")
    (project / "front.spec.js").write_text(SUITE.replace("SITE", scene.site))
    pack(project, folder / "suite.tar.gz")
    sha256 = await scene.bundle((folder / "suite.tar.gz").read_bytes())
    return await scene.check("playwright", codeBundlePath=sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A result of each kind; those without a word beside them came by schedule."""

    api: dict[str, Any]
    browser: dict[str, Any]
    browser_failed: dict[str, Any]
    browser_on_demand: dict[str, Any]
    steps: dict[str, Any]
    suite: dict[str, Any]
    traces: list[bytes]
    """Of the browser check that failed, and of the one on demand."""


async def look(scene: ScriptedScene, folder: Path) -> Seen:
    """Set everything up, and wait for it."""
    suite, api = await a_suite_check(scene, folder), await an_api_check(scene)
    steps = await scene.check("multistep", script=MULTI_STEP.replace("SITE", scene.site))
    good = await a_browser_check(scene)
    bad = await a_browser_check(scene, heading=HEADING.replace("Good", "Bad"), patience_ms=1)
    by_schedule, failed = await scene.scheduled(good), await scene.scheduled(bad)
    on_demand = await scene.on_demand(good)
    return Seen(
        api=await scene.scheduled(api),
        browser=by_schedule,
        browser_failed=failed,
        browser_on_demand=on_demand,
        steps=await scene.scheduled(steps),
        suite=await scene.scheduled(suite),
        traces=[
            await scene.ask("GET", asset["url"])
            for asset in (*failed["assets"], *on_demand["assets"])
            if asset["type"] == "trace"
        ],
    )


def verdict(result: dict[str, Any]) -> tuple[str, str, str | None]:
    return result["runSource"], result["status"], result["error"]


def kinds(result: dict[str, Any]) -> set[str]:
    assert all(asset["isKept"] for asset in result["assets"])
    return {asset["type"] for asset in result["assets"]}


def assert_setup_and_teardown_changed_what_they_may(result: dict[str, Any]) -> None:
    sent, got = (result["apiCheckResult"][part] for part in ("request", "response"))
    assert (sent["method"], sent["url"].rpartition("/")[2]) == ("POST", "orders")
    assert got["body"] == '{"number":7,"seen":"Orders"}'


def assert_a_page_has_its_measures(result: dict[str, Any]) -> None:
    (page,) = result["browserCheckResult"]["pages"]
    assert page["url"].endswith("/plain")
    assert page["webVitals"]["TTFB"]["value"] > 0


def assert_a_request_is_a_node(result: dict[str, Any]) -> None:
    (node,) = result["multiStepCheckResult"]["requests"]
    assert (node["method"], node["url"].rpartition("/")[2]) == ("POST", "orders")


def assert_a_suite_ran_on_the_playwright_that_it_locks(result: dict[str, Any]) -> None:
    seen = result["playwrightCheckResult"]
    (test,) = seen["tests"]
    assert test["title"] == "the suite runs as a service runs it"
    assert seen["playwrightVersion"] == NEWEST


def assert_traces_open(traces: list[bytes]) -> None:
    members = [set(ZipFile(BytesIO(trace)).namelist()) for trace in traces]
    assert len(members) == 2
    assert all({"test.trace", "0-trace.trace", "0-trace.network"} <= names for names in members)


@pytest.mark.timeout(600)
async def test_checks_of_each_scripted_type_run_by_schedule_and_on_demand_with_what_they_leave(
    tmp_path: Path,
) -> None:
    """In one test, as an agent takes seconds to find out that it has Node and a browser."""
    async with a_scripted_scene(tmp_path) as scene:
        seen = await look(scene, tmp_path)
    for result in (seen.api, seen.browser, seen.steps, seen.suite):
        assert verdict(result) == ("SCHEDULER", "PASSED", None)
    assert verdict(seen.browser_failed)[:2] == ("SCHEDULER", "FAILED")
    assert verdict(seen.browser_on_demand) == ("TRIGGER_API", "PASSED", None)
    assert_setup_and_teardown_changed_what_they_may(seen.api)
    assert_a_page_has_its_measures(seen.browser)
    assert_a_request_is_a_node(seen.steps)
    assert_a_suite_ran_on_the_playwright_that_it_locks(seen.suite)
    assert kinds(seen.browser).isdisjoint({"trace", "video"})
    assert "trace" in kinds(seen.browser_failed) & kinds(seen.browser_on_demand) & kinds(seen.suite)
    assert_traces_open(seen.traces)
