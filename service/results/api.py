"""`/v1/check-results`: what became of a check's runs."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckKind, CheckRow
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.files import file_answer
from service.http.paging import PageDep
from service.http.routes import answers, json, refusals
from service.http.strict import NO_NUL, Text
from service.http.window import query_time_ms
from service.results import assets, store
from service.results.assets import Asset
from service.results.model import ResultFilter, ResultType, StoredResult
from service.results.script_shapes import AssetShown
from service.results.shapes import CheckResultShown
from service.results.views import listed, shown

router = APIRouter(prefix="/v1/check-results", tags=["check results"])

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
ResultId = Annotated[str, Path(alias="checkResultId", pattern=NO_NUL, max_length=200)]

_OF_CHECK = "/{checkId}"
_WHEN = "Seconds since 1970, or ISO 8601"


def _filter(
    *,
    location: Annotated[Text | None, Query(description="Slug of the run's location.")] = None,
    has_failures: Annotated[bool | None, Query(alias="hasFailures")] = None,
    result_type: Annotated[Literal["FINAL", "ATTEMPT", "ALL"], Query(alias="resultType")] = "FINAL",
    from_: Annotated[str | None, Query(alias="from", description=f"{_WHEN}; inclusive.")] = None,
    to: Annotated[str | None, Query(description=f"{_WHEN}; exclusive.")] = None,
) -> ResultFilter:
    return ResultFilter(
        from_ms=query_time_ms("from", from_),
        to_ms=query_time_ms("to", to),
        location=location,
        has_failures=has_failures,
        result_type=None if result_type == "ALL" else ResultType(result_type),
    )


@router.get(_OF_CHECK, responses=answers(200, list[CheckResultShown], "Newest first.", 404))
async def list_check_results(  # noqa: PLR0913, PLR0917 - what FastAPI hands in
    check_id: CheckId,
    caller: CallerDep,
    backend: BackendDep,
    page: PageDep,
    wanted: Annotated[ResultFilter, Depends(_filter)],
    check_type: Annotated[CheckKind | None, Query(alias="checkType")] = None,
) -> Response:
    """List a check's results."""

    def query(connection: Connection) -> tuple[CheckRow, tuple[StoredResult, ...]]:
        check = checks.find(connection, caller.account_id, check_id)
        if check_type not in (None, check.type):
            return check, ()
        found = store.of_check(connection, check_id, wanted, limit=page.limit, offset=page.offset)
        return check, found

    check, found = await backend.database.read(query)
    return json([listed(one, name=check.name, check_type=check.type) for one in found])


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
