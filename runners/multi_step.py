"""Multi-step checks: a script sends requests, one after the other; there is no browser."""

from contract.checks import MultiStepSpec
from runners.runner import Observation, RunContext
from runners.scripting.playwright.evidence import build_multi_step_evidence, build_observation
from runners.scripting.playwright.run import run_script


class MultiStepRunner:
    """Runs scripts of several requests."""

    spec = MultiStepSpec

    async def observe(self, spec: MultiStepSpec, ctx: RunContext) -> Observation:
        """Run the script once.

        Raises:
            CheckFailed: of kind SCRIPT, when the check cannot be run as it is written.
        """
        run = await run_script(spec, ctx, browser=None)
        evidence = build_multi_step_evidence(
            run.events, runtime_id=run.runtime_id, start_ms=run.start_ms
        )
        return build_observation(run, evidence)
