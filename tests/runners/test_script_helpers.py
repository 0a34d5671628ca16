"""The library by which scripts call their check degraded does what it documents."""

import pytest

from contract.checks import BrowserSpec, MultiStepSpec
from contract.result import Outcome, Status
from contract.runtimes import RUNTIMES
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from tests.builders.scripts import a_scripted_context

HELPERS = "import { getAPIResponseTime, markCheckAsDegraded } from '@checkly/playwright-helpers';\n"
EACH = pytest.mark.parametrize("runtime_id", RUNTIMES)


async def looked(body: str, runtime_id: str) -> Outcome:
    script = f"{HELPERS}import {{ test, expect }} from '@playwright/test';\n{body}"
    spec = MultiStepSpec(script=script, runtime_id=runtime_id)
    async with a_scripted_context() as ctx:
        return judge(spec, await MultiStepRunner().observe(spec, ctx))


@EACH
async def test_a_check_that_is_marked_is_degraded_though_a_soft_assertion_fails(
    site: str, runtime_id: str
) -> None:
    outcome = await looked(
        "test('slow', async ({ request }) => {\n"
        f"  const response = await request.get('{site}/plain');\n"
        "  expect.soft(getAPIResponseTime(response)).toBeLessThan(0);\n"
        "  expect(getAPIResponseTime(response)).toBeGreaterThan(0);\n"
        "  markCheckAsDegraded('The site is slow.');\n"
        "});\n"
        "test('slow again', () => markCheckAsDegraded('And again.'));\n",
        runtime_id,
    )
    assert (outcome.status, outcome.degraded_because) == (
        Status.DEGRADED,
        "The site is slow. And again.",
    )


async def test_a_check_can_be_marked_without_a_message() -> None:
    outcome = await looked("test('marks', () => markCheckAsDegraded());\n", next(iter(RUNTIMES)))
    assert outcome.status is Status.DEGRADED


@EACH
async def test_a_check_that_is_marked_fails_by_any_other_assertion(runtime_id: str) -> None:
    outcome = await looked(
        "test('fails', () => {\n  markCheckAsDegraded('slow');\n  expect(1).toBe(2);\n});\n",
        runtime_id,
    )
    assert outcome.status is Status.FAILED


@EACH
async def test_a_browser_check_can_be_marked(runtime_id: str) -> None:
    body = "test('slow', async ({ page }) => markCheckAsDegraded(await page.title() || 'slow'));\n"
    script = f"{HELPERS}import {{ test }} from '@playwright/test';\n{body}"
    spec = BrowserSpec(script=script, runtime_id=runtime_id)
    async with a_scripted_context() as ctx:
        outcome = judge(spec, await BrowserRunner().observe(spec, ctx))
    assert (outcome.status, outcome.degraded_because) == (Status.DEGRADED, "slow")
