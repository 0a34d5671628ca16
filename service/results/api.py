"""`/v1/check-results/{checkId}/{checkResultId}`: one result, and the files of its run."""

from typing import Annotated

from fastapi import Depends, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckRow
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.files import file_answer
from service.http.operations import keyed_operations
from service.http.routes import answers, json, refusals
from service.http.strict import NO_NUL
from service.results import assets, store
from service.results.assets import Asset
from service.results.model import StoredResult
from service.results.script_shapes import AssetShown
from service.results.shapes import CheckResultShown
from service.results.views import shown

router = keyed_operations("Check results", prefix="/v1/check-results")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
ResultId = Annotated[str, Path(alias="checkResultId", pattern=NO_NUL, max_length=200)]

_OF_CHECK = "/{checkId}"


@router.get(
    _OF_CHECK + "/{checkResultId}", responses=answers(200, CheckResultShown, "The result.", 404)
)
async def read_check_result(
    check_id: CheckId, result_id: ResultId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a result."""

    def query(connection: Connection) -> tuple[CheckRow, StoredResult]:
        check = checks.find(connection, caller.account_id, check_id)
        return check, _result(connection, check_id, result_id)

    check, found = await backend.database.read(query)
    return json(shown(found, name=check.name, check_type=check.type))


_ASSETS = "/{checkResultId}/assets"


class _Files:
    """A request about the files of one result of the caller's."""

    def __init__(
        self, check_id: CheckId, result_id: ResultId, caller: CallerDep, backend: BackendDep
    ) -> None:
        self.check_id, self.result_id = check_id, result_id
        self._account_id: str = caller.account_id
        self._backend: Backend = backend

    async def find(self) -> tuple[Asset, ...]:
        """The files that the result names."""
        return await self._backend.database.read(self._query)

    def _query(self, connection: Connection) -> tuple[Asset, ...]:
        checks.find(connection, self._account_id, self.check_id)
        result = _result(connection, self.check_id, self.result_id)
        folder = self._backend.artifacts
        return assets.assets_of(connection, self._account_id, result, folder=folder)


FilesDep = Annotated[_Files, Depends(_Files)]


@router.get(
    _OF_CHECK + _ASSETS, responses=answers(200, list[AssetShown], "Its files, by name.", 404)
)
async def list_result_assets(request: Request, files: FilesDep, backend: BackendDep) -> Response:
    """List the files that a run left: traces, videos, screenshots, reports, logs."""
    base_url, found = backend.base_url(request), await files.find()
    return json(
        [
            assets.shown(one, base_url=base_url, check_id=files.check_id, result_id=files.result_id)
            for one in found
        ]
    )


@router.get(
    _OF_CHECK + _ASSETS + "/{name}",
    response_class=Response,
    responses={
        200: {"description": "Its bytes, or some of them.", "content": {"*/*": {}}},
        **refusals(404),
    },
)
async def read_result_asset(
    name: Annotated[str, Path(pattern=NO_NUL, max_length=200)], request: Request, files: FilesDep
) -> Response:
    """Read a file that a run left."""
    asset = assets.named(await files.find(), name)
    return file_answer(
        request,
        asset.path,
        sha256=asset.artifact.sha256,
        media_type=asset.content_type,
        name=asset.artifact.name,
    )


def _result(connection: Connection, check_id: str, result_id: str) -> StoredResult:
    found = store.find(connection, check_id, result_id)
    if found is None:
        raise NotFoundError(f"There is no result {result_id} of this check.")
    return found
