"""`/v1/triggers`: make the links that run checks, read and end them."""

from typing import Annotated, Final

from fastapi import Path
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.groups import actions as groups
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import Changed, ChangeDep, CreateDep, gone
from service.http.routing import answers, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.triggers import triggers
from service.triggers.model import (
    CheckTriggerShown,
    GroupTriggerShown,
    Runs,
    Target,
    render_check_trigger,
    render_group_trigger,
)

router = keyed_operations("Triggers", prefix="/v1/triggers")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
GroupId = Annotated[int, Path(alias="groupId", ge=1, le=(1 << 63) - 1)]
_OF_GROUP: Final = "/check-groups/{groupId}"
_OF_CHECK: Final = "/checks/{checkId}"


@router.post(
    _OF_CHECK, status_code=201, responses=answers(201, CheckTriggerShown, "With its token.", 404)
)
async def create_check_trigger(check_id: CheckId, creating: CreateDep) -> Response:
    """Make the trigger of a check; its token is shown this once.

    A check has one trigger: when it is made anew, the token before it opens nothing any more.
    """
    account_id, pepper = creating.account_id, creating.backend.pepper

    def change(connection: Connection, now_ms: int) -> Changed:
        checks.find(connection, account_id, check_id)
        key, target = triggers.new_token(pepper), Target(Runs.CHECK, check_id)
        row = triggers.create(connection, account_id, target, key=key, now_ms=now_ms)
        answer = json_model(render_check_trigger(row, check_id, token=key.raw), status=201)
        return Changed(answer=answer, resource_id=check_id)

    return await creating.make(change)


@router.get(_OF_CHECK, responses=answers(200, CheckTriggerShown, "Without its token.", 404))
async def read_check_trigger(check_id: CheckId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read the trigger of a check; of its token only what tells it from others."""

    def query(connection: Connection) -> CheckTriggerShown:
        checks.find(connection, caller.account_id, check_id)
        row = triggers.find(connection, Target(Runs.CHECK, check_id))
        return render_check_trigger(row, check_id, token=row.masked)

    return json_model(await backend.database.read(query))


@router.delete(_OF_CHECK, status_code=204, responses=answers(204, None, "It is gone.", 404))
async def delete_check_trigger(check_id: CheckId, changing: ChangeDep) -> Response:
    """End the trigger of a check: its link opens nothing any more."""

    def change(connection: Connection, _now_ms: int) -> Changed:
        checks.find(connection, changing.account_id, check_id)
        triggers.delete(connection, Target(Runs.CHECK, check_id))
        return gone(check_id)

    return await changing.make(change)


@router.post(
    _OF_GROUP, status_code=201, responses=answers(201, GroupTriggerShown, "With its token.", 404)
)
async def create_group_trigger(group_id: GroupId, creating: CreateDep) -> Response:
    """Make the trigger of a check group; its token is shown this once.

    A group has one trigger: when it is made anew, the token before it opens nothing any more.
    """
    account_id, pepper = creating.account_id, creating.backend.pepper

    def change(connection: Connection, now_ms: int) -> Changed:
        groups.find(connection, account_id, group_id)
        key, target = triggers.new_token(pepper), Target(Runs.GROUP, str(group_id))
        row = triggers.create(connection, account_id, target, key=key, now_ms=now_ms)
        answer = json_model(render_group_trigger(row, group_id, token=key.raw), status=201)
        return Changed(answer=answer, resource_id=str(group_id))

    return await creating.make(change)


@router.get(_OF_GROUP, responses=answers(200, GroupTriggerShown, "Without its token.", 404))
async def read_group_trigger(group_id: GroupId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read the trigger of a check group; of its token only what tells it from others."""

    def query(connection: Connection) -> GroupTriggerShown:
        groups.find(connection, caller.account_id, group_id)
        row = triggers.find(connection, Target(Runs.GROUP, str(group_id)))
        return render_group_trigger(row, group_id, token=row.masked)

    return json_model(await backend.database.read(query))


@router.delete(_OF_GROUP, status_code=204, responses=answers(204, None, "It is gone.", 404))
async def delete_group_trigger(group_id: GroupId, changing: ChangeDep) -> Response:
    """End the trigger of a check group: its link opens nothing any more."""

    def change(connection: Connection, _now_ms: int) -> Changed:
        groups.find(connection, changing.account_id, group_id)
        triggers.delete(connection, Target(Runs.GROUP, str(group_id)))
        return gone(str(group_id))

    return await changing.make(change)
