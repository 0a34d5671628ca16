"""Browser checks: a script drives Chromium; each page is measured."""

from contract.scripted import BrowserSpec
from runners.kit.observation import Observation
from runners.kit.playwright.evidence import browser_evidence
from runners.kit.playwright.ground import required_browser
from runners.kit.playwright.observation import observation_of
from runners.kit.playwright.run import run_script
from runners.kit.runner import RunContext


class BrowserRunner:
    """Runs scripts that drive a browser."""

    spec = BrowserSpec

    async def observe(self, spec: BrowserSpec, ctx: RunContext) -> Observation:
        """Run the script once, in a fresh browser.

        Raises:
            CheckFailed: of kind SCRIPT, when the check cannot be run as it is written.
        """
        run = await run_script(spec, ctx, browser=required_browser(ctx.network.scripts()))
        evidence = browser_evidence(run.book, runtime_id=run.runtime_id, start_ms=run.start_ms)
        return observation_of(run, evidence)
