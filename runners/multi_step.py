"""Multi-step checks: a script sends requests, one after the other; there is no browser."""

from contract.scripted import MultiStepSpec
from runners.kit.observation import Observation
from runners.kit.playwright.evidence import multi_step_evidence
from runners.kit.playwright.observation import observation_of
from runners.kit.playwright.run import run_script
from runners.kit.runner import RunContext


class MultiStepRunner:
    """Runs scripts of several requests."""

    spec = MultiStepSpec

    async def observe(self, spec: MultiStepSpec, ctx: RunContext) -> Observation:
        """Run the script once.

        Raises:
            CheckFailed: of kind SCRIPT, when the check cannot be run as it is written.
        """
        run = await run_script(spec, ctx, browser=None)
        evidence = multi_step_evidence(run.book, runtime_id=run.runtime_id, start_ms=run.start_ms)
        return observation_of(run, evidence)
