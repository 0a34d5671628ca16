"""Browser checks of one script, run in real Chromium."""

from typing import Any

from contract.checks import BrowserSpec
from contract.evidence import BrowserEvidence
from contract.result import Outcome
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.runner import RunContext
from tests.builders.scripts import a_scripted_context

PATIENT: dict[str, object] = {
    "timeout": 0,
    "expect": {"timeout": 50_000},
    "use": {"navigationTimeout": 0},
}
"""No limit but the run's: a machine may stand still for seconds."""
ENOUGH_S = (6.0, 20.0, 60.0)
"""Time limits to try in turn, where a script is to come to some step before time is up."""


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
