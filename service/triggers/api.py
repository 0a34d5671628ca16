"""`/v1/triggers`: make the links that run checks, read and end them."""

from typing import Annotated, Final

from fastapi import Path
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.groups import actions as groups
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import Changed, ChangeDep, CreateDep
from service.http.routing import answers, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.triggers import triggers
from service.triggers.model import (
    CheckTriggerShown,
    GroupTriggerShown,
    Runs,
    Target,
    TriggerShown,
    render,
)
from service.vault.encryption import Scope

router = keyed_operations("Triggers", prefix="/v1/triggers")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
GroupId = Annotated[int, Path(alias="groupId", ge=1, le=(1 << 63) - 1)]
_OF_GROUP: Final = "/check-groups/{groupId}"
_OF_CHECK: Final = "/checks/{checkId}"


@router.post(
    _OF_CHECK,
    status_code=201,
    responses=answers(201, CheckTriggerShown, "The trigger with its token.", 404),
)
async def create_check_trigger(check_id: CheckId, creating: CreateDep) -> Response:
    """Create the trigger of a check; its token is shown only once.

    A check has one trigger: creating it again replaces the token, and the old one is refused.
    """
    return await _create(creating, Target(Runs.CHECK, check_id))


@router.get(
    _OF_CHECK, responses=answers(200, CheckTriggerShown, "The trigger without its token.", 404)
)
async def read_check_trigger(check_id: CheckId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read the trigger of a check; of its token only the last letters."""
    target = Target(Runs.CHECK, check_id)
    return json_model(await backend.database.read(lambda c: _read(c, caller.account_id, target)))


@router.delete(_OF_CHECK, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_check_trigger(check_id: CheckId, changing: ChangeDep) -> Response:
    """Delete the trigger of a check: its link stops working."""
    target = Target(Runs.CHECK, check_id)
    return await changing.delete(check_id, lambda c, scope: _delete(c, scope, target))


@router.post(
    _OF_GROUP,
    status_code=201,
    responses=answers(201, GroupTriggerShown, "The trigger with its token.", 404),
)
async def create_group_trigger(group_id: GroupId, creating: CreateDep) -> Response:
    """Create the trigger of a check group; its token is shown only once.

    A group has one trigger: creating it again replaces the token, and the old one is refused.
    """
    return await _create(creating, Target(Runs.GROUP, str(group_id)))


@router.get(
    _OF_GROUP, responses=answers(200, GroupTriggerShown, "The trigger without its token.", 404)
)
async def read_group_trigger(group_id: GroupId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read the trigger of a check group; of its token only the last letters."""
    target = Target(Runs.GROUP, str(group_id))
    return json_model(await backend.database.read(lambda c: _read(c, caller.account_id, target)))


@router.delete(_OF_GROUP, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_group_trigger(group_id: GroupId, changing: ChangeDep) -> Response:
    """Delete the trigger of a check group: its link stops working."""
    target = Target(Runs.GROUP, str(group_id))
    return await changing.delete(str(group_id), lambda c, scope: _delete(c, scope, target))


async def _create(creating: CreateDep, target: Target) -> Response:
    pepper = creating.backend.pepper

    def change(connection: Connection, scope: Scope) -> Changed:
        _require(connection, scope.account_id, target)
        key = triggers.new_token(pepper)
        row = triggers.create(connection, scope, target, key=key)
        answer = json_model(render(row, target, token=key.raw), status=201)
        return Changed(answer=answer, resource_id=target.owner_id)

    return await creating.make(change)


def _read(connection: Connection, account_id: str, target: Target) -> TriggerShown:
    _require(connection, account_id, target)
    row = triggers.find(connection, target)
    return render(row, target, token=row.masked)


def _delete(connection: Connection, scope: Scope, target: Target) -> None:
    _require(connection, scope.account_id, target)
    triggers.delete(connection, target)


def _require(connection: Connection, account_id: str, target: Target) -> None:
    """Refuse a check or a group that the account does not have.

    Raises:
        NotFoundError: it has none with this id.
    """
    if target.runs is Runs.CHECK:
        checks.find(connection, account_id, target.owner_id)
    else:
        groups.find(connection, account_id, int(target.owner_id))
