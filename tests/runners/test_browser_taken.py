"""A browser that goes in the midst of a run: whose fault that is, by what the system counted."""

import itertools
from typing import Any

import pytest

from contract.checks import BrowserSpec
from contract.result import FailureKind, Outcome
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from sandbox.memory import TooLittleMemoryError
from tests.builders.scripts import a_scripted_context

LOSES_ITS_BROWSER = """\
const fs = require('node:fs')
const { test } = require('@playwright/test')
const mine = (pid) => {
  try {
    const said = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return said.includes('--remote-debugging-pipe') && said.includes(process.env.HOME)
  } catch { return false }
}
test('shop', async ({ page }) => {
  await page.goto('data:text/html,<h1>Tea</h1>')
  const [browser] = fs.readdirSync('/proc').filter((one) => /^\\d+$/.test(one)).filter(mine)
  process.kill(Number(browser), 'SIGKILL')
  await page.locator('#nope').click()
})
"""


async def looked() -> Outcome:
    config: Any = {"timeout": 0}
    spec = BrowserSpec(script=LOSES_ITS_BROWSER, playwright_config=config)
    async with a_scripted_context() as ctx:
        return judge(spec, await BrowserRunner().observe(spec, ctx))


async def test_a_script_that_ends_its_own_browser_has_failed() -> None:
    outcome = await looked()
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "has been closed" in outcome.failure.message


async def test_a_browser_that_the_system_took_below_the_limit_is_our_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No test can have the system run out of memory: here it only counts as if it had.
    counts = itertools.count()
    asks = "sandbox.child.count_oom_kills"
    monkeypatch.setattr(asks, lambda: next(counts))
    with pytest.raises(TooLittleMemoryError, match="this location has too little memory"):
        await looked()
