"""`/v1/error-groups`: failures of checks, those that are alike once."""

from typing import Annotated

from fastapi import Body, Path
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.error_groups import store
from service.error_groups.actions import find
from service.error_groups.model import ErrorGroup, ErrorGroupChange, ErrorGroupShown, render
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import Changed, ChangeDep, changed_fields
from service.http.responses import PageDep, page_of
from service.http.routing import ONE, answers, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.vault.encryption import Scope

router = keyed_operations("Error groups", prefix="/v1/error-groups")

GroupId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]
CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]


@router.get("", responses=page_of(list[ErrorGroupShown], "A page of groups, seen last first."))
async def list_error_groups(caller: CallerDep, backend: BackendDep, page: PageDep) -> Response:
    """List the error groups of all checks that are not archived."""
    rows = await backend.database.read(
        lambda c: store.list_page(
            c, caller.account_id, check_id=None, limit=page.one_more, offset=page.offset
        )
    )
    return page.answer(rows, _show)


@router.get(
    "/checks/{checkId}",
    responses=page_of(list[ErrorGroupShown], "A page of groups, seen last first.", 404),
)
async def list_error_groups_of_check(
    check_id: CheckId, caller: CallerDep, backend: BackendDep, page: PageDep
) -> Response:
    """List the error groups of a check that are not archived."""

    def query(connection: Connection) -> tuple[ErrorGroup, ...]:
        checks.find(connection, caller.account_id, check_id)
        return store.list_page(
            connection,
            caller.account_id,
            check_id=check_id,
            limit=page.one_more,
            offset=page.offset,
        )

    return page.answer(await backend.database.read(query), _show)


@router.get(ONE, responses=answers(200, ErrorGroupShown, "The group.", 404))
async def read_error_group(group_id: GroupId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read an error group, archived or not."""
    row = await backend.database.read(lambda c: find(c, caller.account_id, group_id))
    return json_model(render(row))


@router.patch(ONE, responses=answers(200, ErrorGroupShown, "The group.", 404))
async def change_error_group(
    group_id: GroupId, changing: ChangeDep, body: Annotated[ErrorGroupChange, Body()]
) -> Response:
    """Archive an error group until it occurs again or for ever, or list it again."""
    ignored = await changing.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        before = find(connection, scope.account_id, group_id)
        store.change(connection, group_id, _columns(before, body))
        after = render(find(connection, scope.account_id, group_id))
        fields = changed_fields(render(before).model_dump(), after.model_dump())
        return Changed(
            answer=json_model(after, headers=ignored), resource_id=group_id, fields=fields
        )

    return await changing.make(change)


def _columns(before: ErrorGroup, body: ErrorGroupChange) -> dict[str, bool]:
    """Both, as they are to be."""
    until_next, forever = body.archived_until_next_event, body.archive_for_ever
    return {
        "archived_until_next": before.archived_until_next if until_next is None else until_next,
        "archived_forever": before.archived_forever if forever is None else forever,
    }


def _show(group: ErrorGroup) -> dict[str, object]:
    return render(group).model_dump(mode="json")
