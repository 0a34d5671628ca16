"""`/v1/runtimes`: what the scripts of checks can run on."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from contract.runtimes import RETIRED, RUNTIMES, RuntimeFacts, RuntimeStage
from service.http.errors import NotFoundError
from service.http.routing import ONE, answers, json, json_model, open_operations
from service.http.schema import NO_NUL, ResponseModel


class RuntimeShown(ResponseModel):
    """A fixed set of Node.js and libraries for scripts."""

    name: str
    """The value for `runtimeId` of a check."""
    multi_step_support: bool
    """Whether MULTI_STEP checks can use it."""
    node_js_version: str
    stage: RuntimeStage
    runtime_end_of_life: str
    """The last day on which its Node.js gets fixes, as in 2028-04-30."""
    description: str
    dependencies: dict[str, str]
    """What scripts can require, by name and version."""


def render_runtimes() -> list[RuntimeShown]:
    """All of them, the newest first; then those that no agent has any more."""
    return [*map(render_runtime, RUNTIMES.values()), *map(_render_retired, RETIRED)]


def render_runtime(runtime: RuntimeFacts) -> RuntimeShown:
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


def _render_retired(name: str) -> RuntimeShown:
    """One that no agent has: with the facts of the oldest that agents have, to which to move."""
    oldest = list(RUNTIMES.values())[-1]
    return render_runtime(oldest).model_copy(
        update={
            "name": name,
            "stage": RuntimeStage.REMOVED,
            "description": (
                f"Retired: no agent has it. Scripts that name it are refused; use {oldest.id},"
                " whose versions are listed here."
            ),
        }
    )


router = open_operations("Runtimes", prefix="/v1/runtimes")

RuntimeName = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]


@router.get(
    "",
    responses=answers(
        200, list[RuntimeShown], "All, the newest first, then those that no agent has any more."
    ),
)
async def list_runtimes() -> Response:
    """List runtimes. A check that names none uses the newest of its agent."""
    return json([runtime.model_dump(by_alias=True, mode="json") for runtime in render_runtimes()])


@router.get(ONE, responses=answers(200, RuntimeShown, "The runtime.", 400, 404))
async def read_runtime(name: RuntimeName) -> Response:
    """Read a runtime by its name."""
    found = next((one for one in render_runtimes() if one.name == name), None)
    if found is None:
        raise NotFoundError(f"There is no runtime of this name; there are {', '.join(RUNTIMES)}.")
    return json_model(found)
