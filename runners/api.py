"""API checks: does this API answer as it should?"""

from contract.checks import ApiSpec
from runners.kit.http_look import look
from runners.kit.observation import Observation
from runners.kit.runner import RunContext


class ScriptedCheckError(RuntimeError):
    """An API check with setup or teardown scripts came to a runner that has no Node.

    Such a check belongs to the lane `main`, which this runner does not serve; the job goes back.
    """


class ApiRunner:
    """Looks at APIs."""

    spec = ApiSpec

    async def observe(self, spec: ApiSpec, ctx: RunContext) -> Observation:
        """Send the request once.

        Raises:
            CheckFailed: of kind PROTOCOL, when the request cannot be sent as it is written.
            ScriptedCheckError: the check has scripts.
        """
        if spec.setup_script is not None or spec.teardown_script is not None:
            raise ScriptedCheckError(
                "This API check has a setup or teardown script, which this agent cannot run."
            )
        sources = frozenset(assertion.source for assertion in spec.assertions)
        return await look(spec.request, ctx, sources=sources)
