"""API checks: does this API answer as it should?"""

from contract.checks import ApiSpec, is_scripted
from runners.kit.api_scripts import look_with_scripts
from runners.kit.http_look import look
from runners.kit.observation import Observation
from runners.kit.runner import RunContext


class ApiRunner:
    """Looks at APIs."""

    spec = ApiSpec

    async def observe(self, spec: ApiSpec, ctx: RunContext) -> Observation:
        """Send the request once, between the check's scripts if it has any.

        Raises:
            CheckFailed: of kind PROTOCOL, when the request cannot be sent as it is written.
            MissingRuntimeError: the check has scripts, and there is nothing to run them with.
        """
        sources = frozenset(assertion.source for assertion in spec.assertions)
        if is_scripted(spec):
            return await look_with_scripts(spec, ctx, sources=sources)
        return await look(spec.request, ctx, sources=sources)
