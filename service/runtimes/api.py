"""`/v1/runtimes`: what the scripts of checks can run on."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from contract.runtimes import RUNTIMES
from service.http.errors import NotFoundError
from service.http.operations import open_operations
from service.http.routes import ONE, answers, json, json_model
from service.http.strict import NO_NUL
from service.runtimes.views import RuntimeShown, runtime_shown, runtimes_shown

router = open_operations("Runtimes", prefix="/v1/runtimes")

RuntimeName = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]


@router.get("", responses=answers(200, list[RuntimeShown], "All, the newest first."))
async def list_runtimes() -> Response:
    """List runtimes. A check that names none runs on the newest that its agent has."""
    return json([runtime.model_dump(by_alias=True, mode="json") for runtime in runtimes_shown()])


@router.get(ONE, responses=answers(200, RuntimeShown, "The runtime.", 400, 404))
async def read_runtime(name: RuntimeName) -> Response:
    """Read a runtime by its name."""
    runtime = RUNTIMES.get(name)
    if runtime is None:
        raise NotFoundError(f"There is no runtime of this name; there are {', '.join(RUNTIMES)}.")
    return json_model(runtime_shown(runtime))
