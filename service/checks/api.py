"""`/v1/checks`: read, list and delete checks."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions, changes
from service.checks.changes import Scope
from service.checks.model import CheckFilter, CheckKind, StatusFilter
from service.checks.views import AnyCheckShown, shown
from service.http.auth import CallerDep
from service.http.backend import BackendDep
from service.http.paging import PageDep
from service.http.routes import ONE, CheckId, answers, json
from service.http.strict import Text

router = APIRouter(prefix="/v1/checks", tags=["checks"])


def _filter(  # noqa: PLR0913 - one parameter per query parameter of the specification
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
    apply_group_settings: Annotated[
        bool, Query(alias="applyGroupSettings", description="There are no groups yet.")
    ] = False,
) -> CheckFilter:
    del apply_group_settings  # a check without a group looks the same either way
    return CheckFilter(
        tags=tuple(tag), check_type=check_type, search=search, url_part=url_part, status=status
    )


@router.get("", responses=answers(200, list[AnyCheckShown], "A page of checks, oldest first."))
async def list_checks(
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    page: PageDep,
    wanted: Annotated[CheckFilter, Depends(_filter)],
) -> Response:
    """List checks."""
    rows = await backend.database.read(
        lambda connection: actions.matching(
            connection, caller.account_id, wanted, limit=page.limit, offset=page.offset
        )
    )
    base_url = backend.base_url(request)
    return json([shown(row, base_url=base_url) for row in rows])


@router.get(ONE, responses=answers(200, AnyCheckShown, "The check.", 404))
async def read_check(
    check_id: CheckId, request: Request, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a check."""
    row = await backend.database.read(
        lambda connection: actions.find(connection, caller.account_id, check_id)
    )
    return json(shown(row, base_url=backend.base_url(request)))


@router.delete(ONE, status_code=204, responses=answers(204, None, "It is gone.", 404))
async def delete_check(check_id: CheckId, caller: CallerDep, backend: BackendDep) -> Response:
    """Delete a check."""
    await backend.database.write(
        lambda connection: changes.delete(
            connection, Scope(caller.account_id, backend.clock.now_ms(connection)), check_id
        )
    )
    return Response(status_code=204)
