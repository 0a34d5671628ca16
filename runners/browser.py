"""Browser checks: a script drives Chromium; each page is measured."""

from contract.checks import BrowserSpec
from runners.runner import Observation, RunContext
from runners.scripting.playwright.chromium import require_browser
from runners.scripting.playwright.evidence import build_browser_evidence, build_observation
from runners.scripting.playwright.run import run_script


class BrowserRunner:
    """Runs scripts that drive a browser."""

    spec = BrowserSpec

    async def observe(self, spec: BrowserSpec, ctx: RunContext) -> Observation:
        """Run the script once, in a fresh browser.

        Raises:
            CheckFailed: of kind SCRIPT, when the check cannot be run as it is written.
        """
        run = await run_script(spec, ctx, browser=require_browser(ctx.network.scripts()))
        evidence = build_browser_evidence(
            run.events, runtime_id=run.runtime_id, start_ms=run.start_ms
        )
        return build_observation(run, evidence)
