"""Which files a browser check keeps: of what failed, and what was asked for."""

import pytest

from contract.checks import Dependency
from contract.result import FailureKind, Status
from tests.builders.browser_checks import a_test, evidence, look, looked
from tests.builders.scripts import a_scripted_context, names, runtimes_here


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
    kinds = {one.kind for one in outcome.artifacts}
    assert kinds == {"trace", "screenshot", "video", "file"}
    assert "error-context.md" in {one.name for one in outcome.artifacts}
    said = {line.message: line.level for line in outcome.log}
    assert (said["said by the script"], said["said as a warning"]) == ("INFO", "WARN")
    assert evidence(outcome).user_script_errors == 1


@pytest.mark.parametrize("runtime_id", runtimes_here().installed)
async def test_a_test_that_fails_after_its_end_keeps_its_files(site: str, runtime_id: str) -> None:
    script = a_test(f"await page.goto('{site}/plain');")
    script += "test.afterEach(() => { throw new Error('not tidy'); });\n"
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.status is Status.FAILED
    assert {one.kind for one in outcome.artifacts} - {"file"} == {"trace", "screenshot", "video"}


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
    assert {one.kind for one in outcome.artifacts} - {"file"} == {"trace", "screenshot"}


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
    assert kinds == ["file", "screenshot", "trace", "video"]


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
