"""Browser checks, in real Chromium: what a script and its pages did is told as it was."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.job import Variable
from contract.result import FailureKind, Outcome, Status
from contract.script_evidence import BrowserEvidence
from contract.scripted import BrowserSpec, Dependency
from runners.browser import BrowserRunner
from runners.kit.egress.rules import EgressRules
from runners.kit.failures import CheckFailed
from runners.kit.judge import judge
from runners.kit.playwright.verdict import BrowserDidNotStartError
from runners.kit.runner import RunContext
from runners.kit.scripts.runtimes import MissingRuntimeError
from tests.builders.browser_programs import hanging_browser
from tests.builders.patience import LONG_S
from tests.builders.scripts import a_scripted_context, names, runtimes_here
from tests.servers.measured_site import (
    BLOCKED_MS,
    CONSOLE_ERRORS,
    DOCUMENT_ERRORS,
    FIRST_BYTE_MS,
    IMAGE_MS,
    NETWORK_ERRORS,
    SHIFT,
    measured_site,
)
from tests.servers.recording_proxy import RecordingProxy

PATIENT: dict[str, object] = {
    "timeout": 0,
    "expect": {"timeout": 50_000},
    "use": {"navigationTimeout": 0},
}
"""No limit but the run's: a machine may stand still for seconds."""
ENOUGH_S = (6.0, 20.0, 60.0)
"""Time limits to try in turn, where a script is to come to some step before time is up."""
LONG_TASK_MS = 50
"""What a task may take before it counts as blocking."""


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async with measured_site() as url:
        yield url


async def look(ctx: RunContext, script: str, **changes: Any) -> Outcome:
    spec = BrowserSpec(**{"script": script, "playwright_config": PATIENT, **changes})
    return judge(spec, await BrowserRunner().observe(spec, ctx))


async def looked(script: str, *, ctx: dict[str, Any] | None = None, **changes: Any) -> Outcome:
    async with a_scripted_context(**(ctx or {})) as given:
        return await look(given, script, **changes)


def evidence(outcome: Outcome) -> BrowserEvidence:
    assert isinstance(outcome.evidence, BrowserEvidence)
    return outcome.evidence


def a_test(body: str) -> str:
    return (
        "import { test, expect } from '@playwright/test';\n"
        "test('shop', async ({ page, context, request }) => {\n"
        f"{body}\n"
        "});\n"
    )


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


async def test_a_passed_run_keeps_its_files_when_somebody_asked_for_it(site: str) -> None:
    script = a_test(f"await page.goto('{site}/plain');")
    async with a_scripted_context(keeps_files=True) as ctx:
        outcome = await look(ctx, script)
        kept = names(ctx.workspace.folder)
    assert {one.kind for one in outcome.artifacts} == {"trace", "screenshot", "video"}
    assert {one.name for one in outcome.artifacts} == kept
    scheduled = await looked(script)
    assert (scheduled.status, scheduled.artifacts) == (Status.PASSED, ())


async def test_a_failed_test_is_told_with_its_place_and_keeps_its_files(site: str) -> None:
    script = a_test(
        f"await page.goto('{site}/plain');\n"
        "const heading: string = 'Bad tea';\n"
        "console.log('said by the script'); console.warn('said as a warning');\n"
        "await expect(page.locator('h1')).toHaveText(heading, { timeout: 100 });"
    )
    outcome = await looked(script, script_path="src/shop.spec.ts")
    assert outcome.status is Status.FAILED
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert outcome.failure.detail["where"] == "src/shop.spec.ts:6:34"
    assert "Good tea" in outcome.failure.message
    assert "\x1b" not in outcome.failure.message
    assert {one.kind for one in outcome.artifacts} == {"trace", "screenshot", "video"}
    said = {line.message: line.level for line in outcome.log}
    assert (said["said by the script"], said["said as a warning"]) == ("INFO", "WARN")
    assert evidence(outcome).user_script_errors == 1


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


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_test_that_fails_after_its_end_keeps_its_files(site: str, runtime_id: str) -> None:
    script = a_test(f"await page.goto('{site}/plain');")
    script += "test.afterEach(() => { throw new Error('not tidy'); });\n"
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.status is Status.FAILED
    assert {one.kind for one in outcome.artifacts} == {"trace", "screenshot", "video"}


async def test_a_fixture_that_fails_behind_its_pages_keeps_their_picture(site: str) -> None:
    script = (
        "import { test as one } from '@playwright/test';\n"
        "const tidy = async ({}, use) => { await use(); throw new Error('not tidy'); };\n"
        "const test = one.extend({ tidy: [tidy, { auto: true }] });\n"
        f"test('shop', async ({{ page }}) => {{ await page.goto('{site}/plain'); }});\n"
    )
    outcome = await looked(script)
    assert outcome.status is Status.FAILED
    # Playwright itself has thrown the video away by then.
    assert {one.kind for one in outcome.artifacts} == {"trace", "screenshot"}


async def test_only_the_test_that_failed_keeps_its_files(site: str) -> None:
    went_well = f"async ({{ page }}) => {{ await page.goto('{site}/plain'); }}"
    failed = went_well.replace("await", "expect.soft(1).toBe(2); await")
    tests = (
        f"test('one', {went_well});",
        f"test('two', {failed});",
        f"test('three', {went_well});",
    )
    script = "import { test, expect } from '@playwright/test';\n" + "\n".join(tests)
    outcome = await looked(script)
    assert outcome.status is Status.FAILED
    kinds = sorted(one.kind for one in outcome.artifacts)
    assert kinds == ["screenshot", "trace", "video"]


async def test_what_a_script_wants_kept_is_kept_though_it_passes(site: str) -> None:
    own = "test.use({ video: 'on', screenshot: 'on' });\n"
    outcome = await looked(a_test(f"await page.goto('{site}/plain');") + own)
    assert outcome.status is Status.PASSED
    assert {one.kind for one in outcome.artifacts} == {"screenshot", "video"}


async def test_what_a_dependency_in_json_wants_kept_is_kept(site: str) -> None:
    own = "test.use(require('./use.json'));\n"
    wanted = Dependency(path="use.json", content='{"video": "on"}')
    script = a_test(f"await page.goto('{site}/plain');") + own
    outcome = await looked(script, dependencies=(wanted,))
    assert outcome.status is Status.PASSED
    assert {one.kind for one in outcome.artifacts} == {"video"}


async def test_a_video_that_a_script_takes_itself_is_whole(site: str) -> None:
    outcome = await looked(
        "import { test } from '@playwright/test';\n"
        "test('own', async ({ browser }) => {\n"
        "  const context = await browser.newContext({ recordVideo: { dir: 'films' } });\n"
        "  const page = await context.newPage();\n"
        f"  await page.goto('{site}/plain');\n"
        "  await context.close();\n"
        "});\n"
    )
    assert outcome.status is Status.PASSED
    assert {one.kind for one in outcome.artifacts} == {"video"}
    assert all(one.size_bytes > 0 for one in outcome.artifacts)


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


@pytest.mark.parametrize("browser", [None, "/bin/false"])
async def test_a_browser_that_is_not_there_or_does_not_start_is_our_fault(
    browser: str | None,
) -> None:
    found = runtimes_here()
    path = None if browser is None else Path(browser)
    runtimes = type(found)(by_id=found.by_id, browser=path)
    with pytest.raises((MissingRuntimeError, BrowserDidNotStartError)):
        await looked(a_test("await page.goto('about:blank');"), ctx={"runtimes": runtimes})


@pytest.mark.parametrize("own", ["", "test.setTimeout(1500);"])
async def test_a_browser_that_hangs_as_it_starts_is_our_fault(own: str) -> None:
    script = a_test("await page.goto('about:blank');") + own
    found = runtimes_here()
    with hanging_browser() as browser:
        runtimes = type(found)(by_id=found.by_id, browser=browser)
        for timeout_s in ENOUGH_S:
            try:
                outcome = await looked(script, ctx={"runtimes": runtimes, "timeout_s": timeout_s})
            except BrowserDidNotStartError:
                return
            assert "Launch browser" not in str(outcome.failure)
    pytest.fail("there was time enough for a launch")


@pytest.fixture
def patient_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a browser starts here is told however long it takes."""
    monkeypatch.setattr("runners.kit.playwright.browser_proof._LIMIT_S", LONG_S)


@pytest.mark.usefixtures("patient_proof")
@pytest.mark.parametrize(
    "launch",
    [
        "chromium.launch({ timeout: 1 })",
        "chromium.launch({ slowMo: 'x' })",
        "chromium.launch({ args: ['--version'] })",
        "chromium.launchPersistentContext('/nonexistent/profile')",
        "(process.env.TMPDIR = '/nonexistent', chromium.launch())",
    ],
)
async def test_a_launch_that_fails_by_the_scripts_own_doing_is_its_fault(launch: str) -> None:
    outcome = await looked(f"const {{ chromium }} = require('playwright')\nawait {launch}\n")
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert outcome.failure.message.endswith("(script.js:2:7).") or "script.js:2" in str(
        outcome.failure.detail["where"]
    )


async def test_a_launch_that_failed_and_that_its_script_made_up_for_is_no_failure() -> None:
    script = (
        "const { chromium } = require('playwright')\n"
        "await chromium.launchPersistentContext('/nonexistent/profile').catch(() => null)\n"
        "await (await chromium.launch()).close()\n"
    )
    assert (await looked(script)).failure is None


@pytest.mark.usefixtures("patient_proof")
async def test_a_launch_that_its_tests_own_time_cut_is_no_fault_of_ours() -> None:
    script = (
        "import { test } from '@playwright/test'\ntest.setTimeout(40)\n"
        "test('shop', async ({ page }) => { await page.goto('about:blank') })\n"
    )
    outcome = await looked(script)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT


async def test_a_part_of_the_configuration_that_is_not_allowed_is_refused() -> None:
    config: dict[str, object] = {"use": {"channel": "chrome"}}
    with pytest.raises(CheckFailed, match=r"^playwrightConfig\.use\.channel cannot be set here"):
        await looked(a_test(""), playwright_config=config)


async def test_the_allowed_parts_of_the_configuration_hold(site: str) -> None:
    config: dict[str, object] = {
        **PATIENT,
        "use": {"baseURL": site, "viewport": {"width": 300, "height": 200}},
    }
    body = "await page.goto('/plain'); expect(await page.evaluate('innerWidth')).toBe(300);"
    assert (await looked(a_test(body), playwright_config=config)).failure is None


@pytest.mark.parametrize("names_one", [False, True])
async def test_the_browser_takes_no_proxy_but_one_that_its_script_names(
    site: str, *, names_one: bool
) -> None:
    use = "test.use({ proxy: { server: process.env.OWN_PROXY } });\n" if names_one else ""
    body = f"await page.goto('{site}/plain');"
    async with RecordingProxy() as locations, RecordingProxy() as own:
        variables = (Variable(key="OWN_PROXY", value=own.url),)
        ctx = {"proxy_url": locations.url, "variables": variables}
        outcome = await looked(a_test(body) + use, ctx=ctx)
    assert outcome.failure is None
    assert [asked.url for asked in own.to("/plain")] == [f"{site}/plain"] * names_one
    assert locations.seen == []


async def test_egress_rules_hold_for_the_browser_whatever_proxy_a_script_asks_for(
    site: str,
) -> None:
    rules = EgressRules.parse(["127.0.0.1"], [])
    body = (
        f"await page.goto('{site}/plain');\n"
        "await expect(page.locator('h1')).toHaveText('Good tea');\n"
        "await page.goto('https://127.0.0.2/');"
    )
    own = (
        "test.use({\n"
        "  proxy: { server: 'direct://' },\n"
        "  launchOptions: { args: ['--no-proxy-server'] },\n"
        "});\n"
    )
    outcome = await looked(a_test(body) + own, ctx={"egress": rules})
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.EGRESS
    assert "127.0.0.2" in outcome.failure.message
    assert outcome.failure.detail["where"] == "script.js:5:12"
