"""`/v1/checks`: read, list and delete checks."""

from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions, changes
from service.checks.model import CheckFilter, CheckKind, CheckRow, StatusFilter
from service.checks.types.registry import ANY_CHECK, ANY_CHECKS
from service.checks.views import shown
from service.http.auth import CallerDep
from service.http.backend import BackendDep
from service.http.changing import Changed, ChangeDep, gone
from service.http.operations import keyed_operations
from service.http.paging import PageDep, page_of_sealed
from service.http.routes import ONE, CheckId, answers, json
from service.http.strict import Text
from service.http.unreadable import Items
from service.variables.views import Sight
from service.vault.scope import Scope

router = keyed_operations("Checks", prefix="/v1/checks")


def _filter(
    tag: Annotated[
        list[Text], Query(max_length=50, description="A tag; repeat it for checks with all.")
    ] = [],  # noqa: B006 - FastAPI copies defaults
    *,
    check_type: Annotated[CheckKind | None, Query(alias="checkType")] = None,
    search: Annotated[
        Text | None, Query(max_length=1000, description="Part of the name or of a tag.")
    ] = None,
    url_part: Annotated[
        Text | None,
        Query(
            alias="apiCheckUrlFilterPattern",
            max_length=2048,
            description="Part of an API check's URL.",
        ),
    ] = None,
    status: Annotated[StatusFilter | None, Query(description="Of the last result.")] = None,
) -> CheckFilter:
    return CheckFilter(
        tags=tuple(tag), check_type=check_type, search=search, url_part=url_part, status=status
    )


_ApplyGroup = Annotated[
    bool,
    Query(
        alias="applyGroupSettings",
        description="Show each check as it runs, with the settings of its group.",
    ),
]


@router.get("", responses=page_of_sealed(ANY_CHECKS, "A page of checks, oldest first."))
async def list_checks(  # noqa: PLR0913 - what FastAPI hands in
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    page: PageDep,
    wanted: Annotated[CheckFilter, Depends(_filter)],
    *,
    apply_group_settings: _ApplyGroup = False,
) -> Response:
    """List checks."""

    def query(connection: Connection) -> tuple[CheckRow, ...]:
        found = actions.matching(
            connection, caller.account_id, wanted, limit=page.one_more, offset=page.offset
        )
        return actions.with_variables(connection, found)

    rows = await backend.database.read(query)
    sight = Sight(backend.vault, may_write=caller.may_write)
    show = partial(shown, base_url=backend.base_url(request), as_it_runs=apply_group_settings)
    items = Items(
        show=partial(show, sight=sight),
        hide=partial(show, sight=sight.hiding),
        name=attrgetter("id"),
    )
    return page.answer_of(rows, items)


@router.get(ONE, responses=answers(200, ANY_CHECK, "The check.", 404))
async def read_check(
    check_id: CheckId,
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    *,
    apply_group_settings: _ApplyGroup = False,
) -> Response:
    """Read a check."""

    def query(connection: Connection) -> tuple[CheckRow, ...]:
        found = actions.find(connection, caller.account_id, check_id)
        return actions.with_variables(connection, [found])

    (row,) = await backend.database.read(query)
    base_url, sight = backend.base_url(request), Sight(backend.vault, may_write=caller.may_write)
    return json(shown(row, base_url=base_url, sight=sight, as_it_runs=apply_group_settings))


@router.delete(ONE, status_code=204, responses=answers(204, None, "It is gone.", 404))
async def delete_check(check_id: CheckId, changing: ChangeDep) -> Response:
    """Delete a check."""

    def change(connection: Connection, now_ms: int) -> Changed:
        scope = Scope(changing.account_id, now_ms, changing.vault)
        changes.delete(connection, scope, check_id)
        return gone(check_id)

    return await changing.make(change)
