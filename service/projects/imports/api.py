"""`/next/projects/…/imports`: taking over into a project what an account has."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import Changed, ChangeDep, CreateDep
from service.http.routing import answers, json, keyed_operations
from service.http.schema import NO_NUL
from service.projects import actions as projects
from service.projects.imports import actions
from service.projects.imports.model import Found, ImportPlan
from service.projects.imports.schemas import (
    ImportPlanShown,
    ImportPlanWrite,
    render_plan,
    render_preview,
)
from service.projects.resources.resource_type import Work
from service.vault.encryption import Scope

router = keyed_operations("Projects")

_ALL: Final = "/next/projects/imports"
_ONE: Final = _ALL + "/{importPlanId}"
_OF_PROJECT: Final = "/next/projects/{logicalId:path}/imports"

LogicalId = Annotated[str, Path(alias="logicalId", pattern=NO_NUL, max_length=255)]
PlanId = Annotated[str, Path(alias="importPlanId", pattern=NO_NUL, max_length=200)]
_Act = Callable[..., ImportPlan]


class _Wanted:
    """Which plans a list is asked for."""

    def __init__(
        self,
        *,
        only_unapplied: Annotated[bool, Query(alias="onlyUnapplied")] = False,
        only_uncommitted: Annotated[bool, Query(alias="onlyUncommitted")] = False,
    ) -> None:
        self.list_plans = partial(
            actions.list_plans, only_unapplied=only_unapplied, only_uncommitted=only_uncommitted
        )


_WantedDep = Annotated[_Wanted, Depends(_Wanted)]


@router.get(_ALL, responses=answers(200, list[ImportPlanShown], "Plans, the oldest first."))
async def list_import_plans(caller: CallerDep, backend: BackendDep, wanted: _WantedDep) -> Response:
    """List the import plans of all projects."""
    plans = await backend.database.read(lambda c: wanted.list_plans(c, caller.account_id))
    return json([render_plan(one) for one in plans])


@router.get(
    _OF_PROJECT, responses=answers(200, list[ImportPlanShown], "Plans, the oldest first.", 404)
)
async def list_import_plans_of_project(
    logical_id: LogicalId, caller: CallerDep, backend: BackendDep, wanted: _WantedDep
) -> Response:
    """List the import plans of a project."""

    def query(connection: Connection) -> list[dict[str, Any]]:
        project = projects.find(connection, caller.account_id, logical_id)
        plans = wanted.list_plans(connection, caller.account_id, project_id=project.id)
        return [render_plan(one) for one in plans]

    return json(await backend.database.read(query))


@router.post(
    _OF_PROJECT, status_code=201, responses=answers(201, ImportPlanShown, "The plan.", 404, 409)
)
async def create_import_plan(
    logical_id: LogicalId,
    creating: CreateDep,
    body: Annotated[ImportPlanWrite, Body()],
    *,
    preview: Annotated[bool, Query(description="Answer the plan, and store none.")] = False,
) -> Response:
    """Plan to take over what no project has; `changes` is what its code says, with secrets."""
    backend = creating.backend

    def query(connection: Connection) -> Found:
        scope = Scope(
            creating.account_id, backend.clock.now_ms(connection), backend.vault, backend.regions
        )
        work = Work(connection=connection, scope=scope, pepper=backend.pepper)
        project = projects.find(connection, scope.account_id, logical_id)
        return actions.find_importable(work, project, body.build_filters(), body.list_friends())

    found = await backend.database.read(query)
    if preview:
        return json(render_preview(found), status=201)

    def change(connection: Connection, scope: Scope) -> Changed:
        project = projects.find(connection, scope.account_id, logical_id)
        plan = actions.add(connection, project, found, now_ms=scope.now_ms)
        answer = json(render_plan(plan, found), status=201)
        return Changed(answer=answer, resource_id=plan.id)

    return await creating.make(change)


@router.post(_ONE + "/apply", responses=answers(200, ImportPlanShown, "The plan.", 403, 404, 409))
async def apply_import_plan(plan_id: PlanId, creating: CreateDep) -> Response:
    """Make the things of a plan the project's; deployments change them from then on."""
    return await _act(creating, plan_id, actions.apply)


@router.post(_ONE + "/commit", responses=answers(200, ImportPlanShown, "The plan.", 403, 404))
async def commit_import_plan(plan_id: PlanId, creating: CreateDep) -> Response:
    """Let deployments delete the things of a plan once code does not have them any more."""
    return await _act(creating, plan_id, actions.commit)


async def _act(creating: CreateDep, plan_id: str, act: _Act) -> Response:
    def change(connection: Connection, scope: Scope) -> Changed:
        plan = actions.find(connection, scope.account_id, plan_id)
        changed = act(connection, plan, now_ms=scope.now_ms)
        return Changed(answer=json(render_plan(changed)), resource_id=plan_id)

    return await creating.make(change)


@router.delete(_ONE, status_code=204, responses=answers(204, None, "It is cancelled.", 403, 404))
async def cancel_import_plan(plan_id: PlanId, changing: ChangeDep) -> Response:
    """Cancel a plan that is not committed; its things stay as they are, outside of the project."""

    def cancel(connection: Connection, scope: Scope) -> None:
        actions.cancel(connection, actions.find(connection, scope.account_id, plan_id))

    return await changing.delete(plan_id, cancel)
