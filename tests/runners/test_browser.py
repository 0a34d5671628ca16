"""Browser checks, in real Chromium: what a script and its pages did is told as it was."""

import pytest

from contract.checks import Dependency
from contract.job import Variable
from contract.result import FailureKind, Status
from tests.builders.browser_checks import ENOUGH_S, a_test, evidence, looked
from tests.builders.scripts import runtimes_here
from tests.servers.measured_site import (
    BLOCKED_MS,
    CONSOLE_ERRORS,
    DOCUMENT_ERRORS,
    FIRST_BYTE_MS,
    IMAGE_MS,
    NETWORK_ERRORS,
    SHIFT,
)

LONG_TASK_MS = 50
"""What a task may take before it counts as blocking."""


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_page_is_measured_and_its_errors_are_counted(site: str, runtime_id: str) -> None:
    done = "await expect(page).toHaveTitle('Done');"
    script = a_test(f"await page.goto('{site}/'); {done}")
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.failure is None
    (page,) = evidence(outcome).pages
    found = page.metrics
    assert found.ttfb_ms is not None
    assert found.fcp_ms is not None
    assert found.lcp_ms is not None
    assert found.tbt_ms is not None
    assert FIRST_BYTE_MS <= found.ttfb_ms <= found.fcp_ms
    assert found.fcp_ms + IMAGE_MS - 1 <= found.lcp_ms
    assert found.cls == pytest.approx(SHIFT, abs=0.002)
    # A machine that stands still lengthens a task; nothing shortens it.
    assert found.tbt_ms >= sum(BLOCKED_MS) - 2 * LONG_TASK_MS - 2
    counts = (page.console_errors, page.network_errors, page.document_errors)
    assert counts == (CONSOLE_ERRORS, NETWORK_ERRORS, DOCUMENT_ERRORS)
    assert page.url == f"{site}/"
    assert [line.message for line in outcome.log if "thrown" in line.message] == [
        "Page error: thrown by the page"
    ]


@pytest.mark.parametrize(
    ("path", "script", "message"),
    [
        (
            "a/shop.spec.ts",
            "import { test } from '@playwright/test'\ntest('a', (;\n",
            "SyntaxError: Unexpected token (a/shop.spec.ts:2:1",
        ),
        (
            "a/shop.spec.js",
            "const { test } = require('@playwright/test')\nrequire('./pages')\n",
            "Error: Cannot find module './pages' (a/shop.spec.js:2:1)\nRequire stack:\n- a/shop.s",
        ),
        (
            "a/shop.js",
            "const { chromium } = require('playwright')\nrequire('./pages')\n",
            "Error: Cannot find module './pages' (a/shop.js:2:1)\nRequire stack:\n- a/shop.js",
        ),
        (
            "a/shop.mjs",
            "import { chromium } from 'playwright'\nimport 'no-such-package'\n",
            "Error: Cannot find package 'no-such-package' imported from a/shop.mjs",
        ),
    ],
    ids=["test syntax", "test import", "plain import", "module import"],
)
@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_what_cannot_be_loaded_is_told_by_the_scripts_own_file(
    runtime_id: str, path: str, script: str, message: str
) -> None:
    outcome = await looked(script, script_path=path, runtime_id=runtime_id)
    assert outcome.failure is not None
    assert outcome.failure.message.startswith(message)
    assert "/picket-run-" not in outcome.failure.message


async def test_a_plain_script_awaits_and_requires_as_it_likes(site: str) -> None:
    script = (
        "const { chromium } = require('playwright')\n"
        "const { path } = require('./snippets/paths')\n"
        "const browser = await chromium.launch({ channel: 'chrome', headless: false })\n"
        "const page = await browser.newPage()\n"
        f"await page.goto('{site}' + path)\n"
        "if ((await page.title()) !== process.env.TITLE) throw new Error('another title')\n"
    )
    snippet = Dependency(path="snippets/paths.js", content="exports.path = '/plain'")
    variables = (Variable(key="TITLE", value="Plain"), Variable(key="NODE_OPTIONS", value="--x"))
    outcome = await looked(
        script, snippets=(snippet,), ctx={"variables": variables, "keeps_files": True}
    )
    assert outcome.failure is None
    assert [page.url for page in evidence(outcome).pages] == [f"{site}/plain"]
    assert {one.kind for one in outcome.artifacts} >= {"trace", "screenshot"}


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_plain_module_that_throws_is_told_with_its_place(
    site: str, runtime_id: str
) -> None:
    script = (
        "import { chromium } from 'playwright'\n"
        "import { open } from './lib/open.ts'\n"
        "const browser = await chromium.launch()\n"
        f"await open(browser, '{site}/plain')\n"
    )
    helper = (
        "export async function open(browser: any, url: string) {\n"
        "  await (await browser.newPage()).goto(url)\n"
        "  throw new Error('no tea')\n"
        "}\n"
    )
    dependency = Dependency(path="lib/open.ts", content=helper)
    outcome = await looked(script, dependencies=(dependency,), runtime_id=runtime_id)
    assert outcome.failure is not None
    assert outcome.failure.message == "Error: no tea (lib/open.ts:3:9)"


async def test_soft_failures_leave_a_check_degraded_that_calls_itself_so(site: str) -> None:
    soft = f"await page.goto('{site}/plain'); expect.soft(1, 'one is two').toBe(2);"
    hard = await looked(a_test(soft))
    assert hard.status is Status.FAILED
    assert [error.is_soft for error in evidence(hard).errors] == [True]
    said = "require('fs').writeFileSync('degraded.json', JSON.stringify({ messages: ['slow'] }));"
    outcome = await looked(a_test(soft + said))
    assert (outcome.status, outcome.degraded_because) == (Status.DEGRADED, "slow")


async def test_a_time_out_names_the_step_that_the_run_hung_in(site: str) -> None:
    script = a_test(f"await page.goto('{site}/plain');\nawait page.locator('#nope').click();")
    for timeout_s in ENOUGH_S:
        outcome = await looked(script, ctx={"timeout_s": timeout_s})
        if "#nope" in str(outcome.failure):
            break
    assert outcome.status is Status.TIMED_OUT
    assert outcome.failure is not None
    assert "#nope" in outcome.failure.message
    assert outcome.failure.detail["where"] == "script.js:4:29"


async def test_every_page_has_a_record_in_the_order_of_the_run(site: str) -> None:
    script = a_test(
        f"await page.goto('{site}/popup');\n"
        "const opened = page.waitForEvent('popup');\n"
        "await page.click('button');\n"
        "await (await opened).waitForLoadState();\n"
        f"await page.goto('{site}/away');"
    )
    outcome = await looked(script)
    assert outcome.failure is None
    seen = [(page.index, page.url) for page in evidence(outcome).pages]
    assert seen == [(0, f"{site}/popup"), (1, f"{site}/plain"), (2, f"{site}/plain")]


async def test_a_page_that_crashes_fails_the_check() -> None:
    outcome = await looked(a_test("await page.goto('chrome://crash');"))
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "crash" in outcome.failure.message


async def test_a_file_without_a_test_is_told_what_it_lacks() -> None:
    outcome = await looked("console.log(1);", script_path="shop.spec.ts")
    assert outcome.failure is not None
    first, then = outcome.failure.message.split("\n", 1)
    assert first.startswith("Error: No tests found")
    assert "test('opens', async ({ page }) => { … })" in then


TYPED_TEST = """
import { test, expect, type Page } from '@playwright/test';
class Shop {
  constructor(private readonly page: Page) {}
  title = (): Promise<string> => this.page.title();
}
test('shop', async ({ page }) => { expect(await new Shop(page).title()).toBe('' as string); });
"""
TYPED_PLAIN = """
import { chromium, type Browser } from 'playwright';
enum Shade { Dark = 7 }
const browser: Browser = await chromium.launch();
if (Shade.Dark !== 7) throw new Error(String(browser));
await browser.close();
"""


@pytest.mark.parametrize("script", [TYPED_TEST, TYPED_PLAIN], ids=["test", "plain"])
@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_typescript_needs_no_path(script: str, runtime_id: str) -> None:
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.failure is None, outcome.failure


async def test_a_script_that_ends_its_process_fails_the_check() -> None:
    outcome = await looked("import { test } from '@playwright/test'; process.exit(0)")
    assert outcome.failure is not None
    assert outcome.failure.message == "The script ended its own process, with exit code 0."
