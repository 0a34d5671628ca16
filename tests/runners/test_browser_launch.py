"""How the browser of a check is started: whose fault it is that it is not, and what may be set."""

from pathlib import Path

import pytest

from contract.job import Variable
from contract.result import CheckFailed, FailureKind
from runners.net.egress.rules import EgressRules
from runners.scripting.node.runtimes import MissingRuntimeError
from runners.scripting.playwright.verdict import BrowserDidNotStartError
from tests.builders.browser_checks import ENOUGH_S, PATIENT, a_test, looked
from tests.builders.browser_programs import hanging_browser
from tests.builders.patience import LONG_S
from tests.builders.scripts import runtimes_here
from tests.servers.recording_proxy import RecordingProxy


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
    monkeypatch.setattr("runners.scripting.playwright.chromium._LIMIT_S", LONG_S)


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
