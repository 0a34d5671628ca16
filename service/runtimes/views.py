"""Runtimes as the API shows them; pure."""

from contract.runtimes import RUNTIMES, RuntimeFacts, RuntimeStage
from service.http.strict import Shown


class RuntimeShown(Shown):
    """A fixed set of what scripts run on."""

    name: str
    """What `runtimeId` of a check says."""
    multi_step_support: bool
    """Whether MULTI_STEP checks run on it."""
    node_js_version: str
    stage: RuntimeStage
    runtime_end_of_life: str
    """The last day on which its Node.js gets fixes, as in 2028-04-30."""
    description: str
    dependencies: dict[str, str]
    """What scripts may require, by name and version."""


def runtimes_shown() -> list[RuntimeShown]:
    """All of them, the newest first."""
    return [runtime_shown(one) for one in RUNTIMES.values()]


def runtime_shown(runtime: RuntimeFacts) -> RuntimeShown:
    """One as its answer."""
    return RuntimeShown(
        name=runtime.id,
        multi_step_support=True,
        node_js_version=runtime.node,
        stage=runtime.stage,
        runtime_end_of_life=runtime.ends_on.isoformat(),
        description=(
            f"Node.js {runtime.node}, Playwright {runtime.playwright} and further libraries."
            " Its browser is the Chromium of each agent's system."
        ),
        dependencies=dict(runtime.libraries),
    )
