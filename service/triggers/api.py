"""`/v1/triggers`: make the links that run checks, read and end them."""

from typing import Annotated, Final

from fastapi import Depends, Path
from sqlalchemy import Connection
from starlette.requests import Request
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
    TriggerRow,
    render,
)
from service.vault.encryption import Scope

router = keyed_operations("Triggers", prefix="/v1/triggers")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
GroupId = Annotated[int, Path(alias="groupId", ge=1, le=(1 << 63) - 1)]
_OF_GROUP: Final = "/check-groups/{groupId}"
_OF_CHECK: Final = "/checks/{checkId}"


class _Reading:
    """A question for a trigger."""

    def __init__(self, request: Request, caller: CallerDep, backend: BackendDep) -> None:
        self._caller = caller
        self._backend = backend
        self._base_url = backend.base_url(request)

    async def answer(self, target: Target) -> Response:
        """The trigger, with its token for those who may make one."""

        def read(connection: Connection) -> TriggerRow:
            _require(connection, self._caller.account_id, target)
            return triggers.find(connection, target)

        row = await self._backend.database.read(read)
        token = row.masked
        if self._caller.may_write:
            token = triggers.reveal_token(row, target, self._backend.vault)
        return json_model(render(row, target, token=token, base_url=self._base_url))


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.post(
    _OF_CHECK,
    status_code=201,
    responses=answers(201, CheckTriggerShown, "The trigger with its token.", 404),
)
async def create_check_trigger(check_id: CheckId, creating: CreateDep) -> Response:
    """Create the trigger of a check; whoever may write can read its token.

    A check has one trigger: creating it again replaces the token, and the old one is refused.
    """
    return await _create(creating, Target(Runs.CHECK, check_id))


@router.get(_OF_CHECK, responses=answers(200, CheckTriggerShown, "The trigger.", 404))
async def read_check_trigger(check_id: CheckId, reading: ReadingDep) -> Response:
    """Read the trigger of a check; those who only read see the last letters of its token."""
    return await reading.answer(Target(Runs.CHECK, check_id))


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
    """Create the trigger of a check group; whoever may write can read its token.

    A group has one trigger: creating it again replaces the token, and the old one is refused.
    """
    return await _create(creating, Target(Runs.GROUP, str(group_id)))


@router.get(_OF_GROUP, responses=answers(200, GroupTriggerShown, "The trigger.", 404))
async def read_group_trigger(group_id: GroupId, reading: ReadingDep) -> Response:
    """Read the trigger of a group; those who only read see the last letters of its token."""
    return await reading.answer(Target(Runs.GROUP, str(group_id)))


@router.delete(_OF_GROUP, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_group_trigger(group_id: GroupId, changing: ChangeDep) -> Response:
    """Delete the trigger of a check group: its link stops working."""
    target = Target(Runs.GROUP, str(group_id))
    return await changing.delete(str(group_id), lambda c, scope: _delete(c, scope, target))


async def _create(creating: CreateDep, target: Target) -> Response:
    pepper, base_url = creating.backend.pepper, creating.base_url

    def change(connection: Connection, scope: Scope) -> Changed:
        _require(connection, scope.account_id, target)
        key = triggers.new_token(pepper)
        row = triggers.create(connection, scope, target, key=key)
        shown = render(row, target, token=key.raw, base_url=base_url)
        return Changed(answer=json_model(shown, status=201), resource_id=target.owner_id)

    return await creating.make(change)


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
