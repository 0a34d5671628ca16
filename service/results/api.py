"""`/v1/check-results/{checkId}/{checkResultId}`: one result, and the files of its run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from contract.targets import format_value
from service.checks import actions as checks
from service.checks.model import CheckKind, CheckRow
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.responses import PageDep, file_answer, page_of
from service.http.routing import answers, json, keyed_operations, refusals
from service.http.schema import NO_NUL, Text
from service.http.times import query_window_ms
from service.object_store.model import ObjectStore
from service.results import assets, store
from service.results.assets import Asset
from service.results.model import ResultFilter, ResultType, StoredResult, asset_path
from service.results.shapes import AssetsShown, AssetType, CheckResultShown, ResultsShown
from service.results.views import render, render_listed

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
    return json(render(found, name=check.name, check_type=check.type))


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
        return assets.assets_of(connection, self._account_id, result)


FilesDep = Annotated[_Files, Depends(_Files)]


@router.get(
    _OF_CHECK + _ASSETS,
    responses=answers(200, AssetsShown, "The files of the result, by name.", 404),
)
async def list_result_assets(
    request: Request,
    files: FilesDep,
    backend: BackendDep,
    kind: Annotated[AssetType | None, Query(alias="type", description="Only of this type.")] = None,
    name: Annotated[Text | None, Query(max_length=200, description="Only of this name.")] = None,
) -> Response:
    """List the files of a run: traces, videos, screenshots, reports, logs."""
    base_url, found = backend.base_url(request), await files.find()
    kept = await assets.list_kept(backend.artifacts, found)
    wanted = [
        one
        for one in found
        if kind in (None, one.artifact.kind) and name in (None, one.artifact.name)
    ]
    listed = [
        assets.render(
            one,
            url=base_url + asset_path(files.check_id, files.result_id, one.artifact.name),
            is_kept=one.file.key in kept,
        )
        for one in wanted
    ]
    counts = {"entriesReturned": len(listed), "entriesTotal": len(found)}
    return json({"assets": listed, "truncated": False, **counts})


@router.get(
    _OF_CHECK + _ASSETS + "/{name}",
    response_class=Response,
    responses={
        200: {"description": "The file, or a part of it.", "content": {"*/*": {}}},
        307: {"description": "A signed link to the file, where the service gives such links."},
        **refusals(404),
    },
)
async def read_result_asset(
    name: Annotated[str, Path(pattern=NO_NUL, max_length=200)],
    request: Request,
    files: FilesDep,
    backend: BackendDep,
) -> Response:
    """Read a file of a run."""
    asset = assets.find_asset(await files.find(), name)
    return await answer_asset(request, backend.artifacts, asset)


async def answer_asset(request: Request, store: ObjectStore, asset: Asset) -> Response:
    """The file of an asset as a response, or where a signed link leads to it.

    Raises:
        NotFoundError: it is not kept.
        ObjectStoreError: the store does not answer.
    """
    found = await assets.open_asset(store, asset)
    link = await store.sign(asset.file.key)
    if link is not None:
        return RedirectResponse(link, headers={"cache-control": "no-store"})
    one = asset.artifact
    return file_answer(
        request, found, sha256=one.sha256, media_type=asset.content_type, name=one.name
    )


def _result(connection: Connection, check_id: str, result_id: str) -> StoredResult:
    found = store.find(connection, check_id, result_id)
    if found is None:
        raise NotFoundError(f"There is no result {result_id} of this check.")
    return found


lists_router = keyed_operations("Check results", prefix="/v1/check-results")
router_v2 = keyed_operations("Check results", prefix="/v2/check-results")

_BY_CHECK: Final = "/{checkId}"
_WHEN = "Seconds since 1970, or ISO 8601"
_FIELDS: Final = frozenset(
    info.alias or name for name, info in CheckResultShown.model_fields.items()
)


def _filter(
    *,
    location: Annotated[Text | None, Query(description="Slug of the run's location.")] = None,
    has_failures: Annotated[bool | None, Query(alias="hasFailures")] = None,
    result_type: Annotated[Literal["FINAL", "ATTEMPT", "ALL"], Query(alias="resultType")] = "FINAL",
    from_: Annotated[str | None, Query(alias="from", description=f"{_WHEN}; inclusive.")] = None,
    to: Annotated[str | None, Query(description=f"{_WHEN}; exclusive.")] = None,
) -> ResultFilter:
    from_ms, to_ms = query_window_ms(("from", from_), ("to", to))
    return ResultFilter(
        from_ms=from_ms,
        to_ms=to_ms,
        location=location,
        has_failures=has_failures,
        result_type=None if result_type == "ALL" else ResultType(result_type),
    )


class _Reading:
    """A request for results of one check of the caller's."""

    def __init__(
        self,
        check_id: CheckId,
        caller: CallerDep,
        backend: BackendDep,
        wanted: Annotated[ResultFilter, Depends(_filter)],
        check_type: Annotated[CheckKind | None, Query(alias="checkType")] = None,
    ) -> None:
        self._check_id, self._check_type = check_id, check_type
        self._account_id: str = caller.account_id
        self._backend: Backend = backend
        self.wanted: ResultFilter = wanted

    async def find(
        self, wanted: ResultFilter, *, limit: int, offset: int = 0
    ) -> tuple[CheckRow, tuple[StoredResult, ...]]:
        """The check, and those of its results that are wanted, newest first."""

        def query(connection: Connection) -> tuple[CheckRow, tuple[StoredResult, ...]]:
            check = checks.find(connection, self._account_id, self._check_id)
            if self._check_type not in (None, check.type):
                return check, ()
            return check, store.of_check(
                connection, self._check_id, wanted, limit=limit, offset=offset
            )

        return await self._backend.database.read(query)


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@lists_router.get(_BY_CHECK, responses=page_of(list[CheckResultShown], "Newest first.", 404))
async def list_check_results(reading: ReadingDep, page: PageDep) -> Response:
    """List a check's results, in pages."""
    check, found = await reading.find(reading.wanted, limit=page.one_more, offset=page.offset)
    return page.answer(
        found, lambda one: render_listed(one, name=check.name, check_type=check.type)
    )


@router_v2.get(_BY_CHECK, responses=answers(200, ResultsShown, "Newest first.", 404))
async def list_check_results_by_cursor(
    reading: ReadingDep,
    limit: Annotated[int, Query(ge=1, le=100, description="Results in an answer.")] = 10,
    next_id: Annotated[
        Text | None,
        Query(alias="nextId", max_length=200, description="From the previous answer."),
    ] = None,
    fields: Annotated[
        list[Text],
        Query(
            max_length=100,
            description="Fields of each result, separated by commas; by default all.",
        ),
    ] = [],  # noqa: B006 - FastAPI copies defaults
) -> Response:
    """List a check's results after those of the previous answer; new results shift nothing."""
    names = _field_names(fields)
    wanted = replace(reading.wanted, after_id=_cursor(next_id))
    check, found = await reading.find(wanted, limit=limit + 1)
    shown = [render_listed(one, name=check.name, check_type=check.type) for one in found[:limit]]
    return json(
        {
            "length": len(shown),
            "entries": [_only(names, one) for one in shown],
            "nextId": found[limit - 1].id if len(found) > limit else None,
        }
    )


def _cursor(next_id: str | None) -> str | None:
    """A result's id, of which the time is a part. None: from the newest one on."""
    if next_id and not store.is_id(next_id):
        raise InvalidError(
            '"nextId" is not from an answer; send the one from the previous answer.',
            keys=("nextId",),
            source="query",
        )
    return next_id or None


def _field_names(fields: list[str]) -> frozenset[str]:
    names = frozenset(name.strip() for part in fields for name in part.split(",") if name.strip())
    if unknown := names - _FIELDS:
        raise InvalidError(
            f'"fields" names {format_value(min(unknown))}, which no result has; use'
            f" {', '.join(sorted(_FIELDS))}.",
            keys=("fields",),
            source="query",
        )
    return names


def _only(names: frozenset[str], shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """The named fields; all of them without names."""
    return {key: value for key, value in shown.items() if key in names} if names else shown
