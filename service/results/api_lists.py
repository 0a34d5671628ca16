"""`/v1/check-results/{checkId}` and `/v2/…`: a check's results in pages, or by a cursor."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response

from contract.sent_values import told
from service.checks import actions as checks
from service.checks.model import CheckKind, CheckRow
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.errors import InvalidError
from service.http.operations import keyed_operations
from service.http.paging import PageDep, page_of
from service.http.routes import answers, json
from service.http.strict import NO_NUL, Text
from service.http.window import query_window_ms
from service.results import store
from service.results.model import ResultFilter, ResultType, StoredResult
from service.results.shapes import CheckResultShown, ResultsShown
from service.results.views import listed

router = keyed_operations("Check results", prefix="/v1/check-results")
router_v2 = keyed_operations("Check results", prefix="/v2/check-results")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]

_OF_CHECK: Final = "/{checkId}"
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


@router.get(_OF_CHECK, responses=page_of(list[CheckResultShown], "Newest first.", 404))
async def list_check_results(reading: ReadingDep, page: PageDep) -> Response:
    """List a check's results, in pages."""
    check, found = await reading.find(reading.wanted, limit=page.one_more, offset=page.offset)
    return page.answer(found, lambda one: listed(one, name=check.name, check_type=check.type))


@router_v2.get(_OF_CHECK, responses=answers(200, ResultsShown, "Newest first.", 404))
async def list_check_results_by_cursor(
    reading: ReadingDep,
    limit: Annotated[int, Query(ge=1, le=100, description="Results in an answer.")] = 10,
    next_id: Annotated[
        Text | None,
        Query(alias="nextId", max_length=200, description="As the answer before had it."),
    ] = None,
    fields: Annotated[
        list[Text],
        Query(max_length=100, description="Of each result, by commas; without it, all."),
    ] = [],  # noqa: B006 - FastAPI copies defaults
) -> Response:
    """List a check's results after those of the answer before; new results shift nothing."""
    names = _named(fields)
    wanted = replace(reading.wanted, after_id=_cursor(next_id))
    check, found = await reading.find(wanted, limit=limit + 1)
    shown = [listed(one, name=check.name, check_type=check.type) for one in found[:limit]]
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
            '"nextId" is none of an answer; send it as the answer before had it.',
            keys=("nextId",),
            source="query",
        )
    return next_id or None


def _named(fields: list[str]) -> frozenset[str]:
    names = frozenset(name.strip() for part in fields for name in part.split(",") if name.strip())
    if unknown := names - _FIELDS:
        raise InvalidError(
            f'"fields" names {told(min(unknown))}, which no result has; use'
            f" {', '.join(sorted(_FIELDS))}.",
            keys=("fields",),
            source="query",
        )
    return names


def _only(names: frozenset[str], shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """The named fields; all of them without names."""
    return {key: value for key, value in shown.items() if key in names} if names else shown
