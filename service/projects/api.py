"""`/v1/projects` and what older command lines call it: deploying checks from code."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from fastapi import Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response, StreamingResponse

from service.audit.model import Entry
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import ConflictError, InvalidError, StillRunningError
from service.http.mutations import Changed, ChangeDep, CreateDep, Mutation, sent_fields
from service.http.rate_limits.rate_limit import address_of
from service.http.responses import PageDep, page_of
from service.http.routing import answers, json, keyed_operations, operation_id
from service.http.schema import NO_NUL
from service.projects import actions, store
from service.projects.deploying import add_project
from service.projects.making import Maker, Order
from service.projects.model import Deployment, DeploymentStatus, Project, Wish
from service.projects.resources.registry import TYPES
from service.projects.resources.resource_type import Work
from service.projects.schemas import (
    DeployedShown,
    DeploymentShown,
    DeployWrite,
    ListedProject,
    ProjectShown,
    ProjectWrite,
    WholeProject,
    build_wish,
    render_deployment,
    render_mapped,
    render_project,
)
from service.vault.encryption import Scope

router = keyed_operations("Projects")

LARGE_BODIES: Final = frozenset({"/v1/projects/deploy", "/next-v2/projects/deploy"})
"""Paths whose bodies hold the scripts of many checks."""
MAX_WAIT_S: Final = 30
_ALL: Final = "/v1/projects"
_ONE: Final = _ALL + "/{logicalId:path}"
"""A logical id may have slashes, which a client sends as `%2F`."""
_DEPLOYMENT: Final = _ONE + "/deployments/{deploymentId}"
_OLD: Final = "/next/projects"
_ALIVE_S: Final = 15.0
"""Proxies close a connection on which nothing comes for a minute."""
_LOOK_S: Final = 0.25
"""How often the progress of a deployment of this process is told."""
_ALIVE: Final = b": alive\n\n"
_STREAM: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
_MOST_LISTED: Final = 1_000
_DEPLOYMENTS: Final = 50

LogicalId = Annotated[str, Path(alias="logicalId", pattern=NO_NUL, max_length=255)]
DeploymentId = Annotated[str, Path(alias="deploymentId", pattern=NO_NUL, max_length=200)]
DeployBody = Annotated[DeployWrite, Body()]
_DryRun = Annotated[
    bool, Query(alias="dryRun", description="Answer what would change, and change nothing.")
]
_Schedule = Annotated[
    bool,
    Query(
        alias="scheduleOnDeploy",
        description="Run new and changed checks at once. False: when it is their turn.",
    ),
]
_Preserve = Annotated[
    bool,
    Query(
        alias="preserveResources",
        description="Keep in the account what is not in the body, outside of the project.",
    ),
]
_KeepMissing = Annotated[
    bool,
    Query(
        alias="keepMissing",
        description="Keep in the project what is not in the body, but for subscriptions of checks"
        " and groups that are.",
    ),
]


class _Reading:
    """A request that reads projects."""

    def __init__(self, caller: CallerDep, backend: BackendDep) -> None:
        self.backend: Backend = backend
        self.account_id: str = caller.account_id


ReadingDep = Annotated[_Reading, Depends(_Reading)]


def _order(changing: Mutation, wish: Wish, body: DeployWrite | None = None) -> Order:
    """A deployment that a request asks for."""
    entry = Entry(
        account_id=changing.account_id,
        key_id=changing.caller.key_id,
        user_id=changing.caller.user_id,
        operation=operation_id(changing.request.scope["route"]),
        resource="projects",
        resource_id=wish.logical_id,
        fields=(),
        address=address_of(changing.request),
        at_ms=0,
    )
    return Order(wish=wish, files=body.shared_files if body else (), entry=entry)


async def _begin(changing: Mutation, order: Order) -> Response:
    """Note a deployment, and let it be made in the background.

    Raises:
        ConflictError: another one of the project goes on; the body names it.
        TooManyError: the account has too many that are not over.
    """
    begun: list[Deployment] = []

    def change(connection: Connection, scope: Scope) -> Changed:
        logical_id = order.wish.logical_id
        made = actions.begin(
            connection,
            scope.account_id,
            logical_id,
            key_id=order.entry.key_id,
            user_id=order.entry.user_id,
            now_ms=scope.now_ms,
        )
        begun[:] = [made]
        answer = json(render_deployment(made), status=HTTPStatus.ACCEPTED)
        return Changed(answer=answer, resource_id=logical_id)

    with ExitStack() as admission:
        admission.enter_context(changing.backend.deployments.admit(changing.account_id))
        answer = await changing.make(change)
        # None has begun if the request came a second time.
        for made in begun:
            Maker(changing.backend).start(made, order, admission.pop_all())
    return answer


@dataclass(frozen=True, slots=True)
class _Watch:
    """One deployment of an account."""

    backend: Backend
    account_id: str
    logical_id: str
    deployment_id: str

    async def read(self) -> Deployment:
        """The deployment as it is; one whose process is gone is ended first.

        Raises:
            NotFoundError: there is none with this id.
        """
        seen, now_ms = await self.backend.database.read(self._query)
        if seen.is_over or now_ms < seen.lease_ms:
            return seen
        return await self.backend.database.write(self._end_if_gone)

    async def wait(self, *, max_wait_s: float) -> Deployment:
        """The deployment at its end, or as it is once so much time has passed."""
        with self.backend.deployments.waiters.register(self.deployment_id) as ended:
            seen, now_ms = await self.backend.database.read(self._query)
            if not seen.is_over:
                left_s = max(0, seen.lease_ms - now_ms) / 1000
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), min(max_wait_s, left_s))
            return await self.read()

    async def tell(self) -> AsyncIterator[bytes]:
        """The deployment's way to its end, as server-sent events."""
        deployments = self.backend.deployments
        told, quiet_s = -1, 0.0
        with deployments.waiters.register(self.deployment_id) as ended:
            while not (seen := await self.read()).is_over and not deployments.waiters.is_closed:
                while running := deployments.find(self.deployment_id):
                    if ended.is_set():
                        break
                    if running.progress != told:
                        told, quiet_s = running.progress, 0.0
                        yield _event("progress", {"progress": told})
                    elif quiet_s >= _ALIVE_S:
                        quiet_s = 0.0
                        yield _ALIVE
                    with suppress(TimeoutError):
                        await asyncio.wait_for(ended.wait(), _LOOK_S)
                    quiet_s += _LOOK_S
                if not ended.is_set():
                    yield _ALIVE
                    with suppress(TimeoutError):
                        await asyncio.wait_for(ended.wait(), _ALIVE_S)
            if seen.is_over:
                yield _event("complete", render_deployment(seen))

    def _query(self, connection: Connection) -> tuple[Deployment, int]:
        seen = actions.find_deployment(
            connection, self.account_id, self.logical_id, self.deployment_id
        )
        return seen, self.backend.clock.now_ms(connection)

    def _end_if_gone(self, connection: Connection) -> Deployment:
        seen, now_ms = self._query(connection)
        actions.end_if_gone(connection, seen, now_ms=now_ms)
        return self._query(connection)[0]

    def cancel(self, connection: Connection) -> Deployment:
        """Cancel it, unless it is over."""
        seen, now_ms = self._query(connection)
        if not seen.is_over:
            actions.cancel(connection, seen, now_ms=now_ms)
        return self._query(connection)[0]


def _watch(
    logical_id: LogicalId, deployment_id: DeploymentId, caller: CallerDep, backend: BackendDep
) -> _Watch:
    return _Watch(backend, caller.account_id, logical_id, deployment_id)


WatchDep = Annotated[_Watch, Depends(_watch)]


def _event(name: str, data: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


@router.post(
    _ALL + "/deploy",
    status_code=202,
    responses={
        **answers(202, DeploymentShown, "The deployment, which goes on.", 409),
        200: {"model": DeployedShown, "description": "What would change, with `dryRun`."},
    },
)
async def deploy_project(  # noqa: PLR0913 - each is a parameter of the request
    creating: CreateDep,
    body: DeployBody,
    *,
    dry_run: _DryRun = False,
    schedule_on_deploy: _Schedule = True,
    preserve_resources: _Preserve = False,
    keep_missing: _KeepMissing = False,
) -> Response:
    """Deploy a project: all of it or nothing. What it has and is not in the body is deleted.

    409 while another deployment of the project goes on; `deploymentId` names that one.
    """
    wish = build_wish(
        body,
        keeps=preserve_resources,
        runs_at_once=schedule_on_deploy,
        keeps_missing=keep_missing,
    )
    order = _order(creating, wish, body)
    if dry_run:
        return json(await Maker(creating.backend).preview(order))
    return await _begin(creating, order)


@router.post(
    "/next-v2/projects/deploy", responses=answers(200, DeployedShown, "What has changed.", 409)
)
async def deploy_project_and_wait(
    creating: CreateDep,
    body: DeployBody,
    *,
    dry_run: _DryRun = False,
    schedule_on_deploy: _Schedule = True,
    preserve_resources: _Preserve = False,
) -> Response:
    """Deploy a project as above, and answer at its end: older command lines ask so."""
    wish = build_wish(body, keeps=preserve_resources, runs_at_once=schedule_on_deploy)
    order = _order(creating, wish, body)
    if dry_run:
        return json(await Maker(creating.backend).preview(order))
    begun = await _begin(creating, order)
    deployment_id = msgspec.json.decode(begun.body)["id"]
    watch = _Watch(creating.backend, creating.account_id, wish.logical_id, deployment_id)
    seen = await watch.wait(max_wait_s=actions.LEASE_MS / 1000)
    return json(_require_success(seen).result)


def _require_success(seen: Deployment) -> Deployment:
    if seen.status is DeploymentStatus.SUCCEEDED:
        return seen
    if seen.status is DeploymentStatus.CANCELLED:
        raise ConflictError("The deployment was cancelled; deploy again.")
    if seen.error is None:
        raise StillRunningError(
            "The deployment has not ended in time; deploy again to see what it came to.",
            headers={"retry-after": "1"},
        )
    raise InvalidError(str(seen.error["message"]), keys=tuple(seen.error.get("keys", ())))


@router.delete(
    _ONE,
    status_code=202,
    responses={
        **answers(202, DeploymentShown, "The deployment that deletes it.", 409),
        200: {"model": DeployedShown, "description": "There is none, or `dryRun`."},
    },
)
async def delete_project(
    logical_id: LogicalId,
    changing: ChangeDep,
    *,
    dry_run: _DryRun = False,
    preserve_resources: _Preserve = False,
) -> Response:
    """Delete a project with all that it has, or without. One that is not there is deleted already.

    409 while a deployment of the project goes on; `deploymentId` names it.
    """
    held = await changing.backend.database.read(
        lambda c: store.find(c, changing.account_id, logical_id)
    )
    if held is None:
        return json({"project": None, "diff": []})
    wish = Wish(
        logical_id=logical_id,
        name=held.name,
        repo_url=held.repo_url,
        resources=(),
        keeps_resources=preserve_resources,
        runs_at_once=False,
        removes_project=True,
    )
    order = _order(changing, wish)
    if dry_run:
        return json(await Maker(changing.backend).preview(order))
    return await _begin(changing, order)


@router.get(_DEPLOYMENT, responses=answers(200, DeploymentShown, "The deployment.", 404))
async def read_deployment(watch: WatchDep) -> Response:
    """Read a deployment."""
    seen = await watch.read()
    running = watch.backend.deployments.find(seen.id)
    return json(render_deployment(seen, progress=running.progress if running else None))


@router.get(
    _DEPLOYMENT + "/events",
    responses={
        **answers(200, None, "`progress`, and `complete` with the deployment at its end.", 404),
        200: {
            "description": "`progress`, and `complete` with the deployment at its end.",
            "content": {"text/event-stream": {}},
        },
    },
)
async def follow_deployment(watch: WatchDep) -> Response:
    """Follow a deployment as server-sent events; connect again if the stream ends early."""
    await watch.read()  # 404 before the stream begins
    return StreamingResponse(watch.tell(), media_type="text/event-stream", headers=_STREAM)


@router.get(
    _DEPLOYMENT + "/completion",
    responses=answers(200, DeploymentShown, "The deployment at its end.", 404, 408),
)
async def await_deployment(
    watch: WatchDep,
    max_wait_s: Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=MAX_WAIT_S)] = MAX_WAIT_S,
) -> Response:
    """Wait until a deployment has ended; 408 if it has not ended in time: try again."""
    seen = await watch.wait(max_wait_s=max_wait_s)
    if not seen.is_over:
        raise StillRunningError(
            f"The deployment has not ended within {max_wait_s:g} s; try again.",
            headers={"retry-after": "1"},
        )
    return json(render_deployment(seen))


@router.post(_DEPLOYMENT + "/cancel", responses=answers(200, DeploymentShown, "It.", 404))
async def cancel_deployment(watch: WatchDep, creating: CreateDep) -> Response:
    """Cancel a deployment: nothing of it is made. One that is over stays as it is."""
    await watch.read()
    if running := watch.backend.deployments.find(watch.deployment_id):
        running.is_cancelled = True

    def change(connection: Connection, _scope: Scope) -> Changed:
        answer = json(render_deployment(watch.cancel(connection)))
        return Changed(answer=answer, resource_id=watch.logical_id)

    return await creating.make(change)


@router.get(
    _ONE + "/deployments", responses=answers(200, list[DeploymentShown], "Newest first.", 404)
)
async def list_deployments(logical_id: LogicalId, reading: ReadingDep) -> Response:
    """List the 50 newest deployments of a project of the last 30 days."""

    def query(connection: Connection) -> tuple[Deployment, ...]:
        actions.find(connection, reading.account_id, logical_id)
        return store.list_newest(connection, reading.account_id, logical_id, limit=_DEPLOYMENTS)

    rows = await reading.backend.database.read(query)
    return json([render_deployment(one) for one in rows])


@router.get(_ALL, responses=page_of(list[ListedProject], "A page of projects, oldest first."))
async def list_projects(reading: ReadingDep, page: PageDep) -> Response:
    """List projects with how many resources of each type they have."""

    def query(connection: Connection) -> list[dict[str, Any]]:
        rows = store.list_page(
            connection, reading.account_id, limit=page.one_more, offset=page.offset
        )
        return _count(connection, rows)

    return page.answer(await reading.backend.database.read(query), lambda one: one)


def _count(connection: Connection, rows: Sequence[Project]) -> list[dict[str, Any]]:
    counts = store.count_resources(connection, [one.id for one in rows])
    return [{**render_project(one), "counts": counts.get(one.id, {})} for one in rows]


@router.get(_ONE, responses=answers(200, WholeProject, "The project.", 404))
async def read_project(logical_id: LogicalId, reading: ReadingDep) -> Response:
    """Read a project with all that it has."""

    def query(connection: Connection) -> dict[str, Any]:
        row = actions.find(connection, reading.account_id, logical_id)
        resources = store.list_resources(connection, row.id).values()
        shown = [render_mapped(one, TYPES[one.type].read_id(one.physical_id)) for one in resources]
        return {**render_project(row), "resources": shown}

    return json(await reading.backend.database.read(query))


@router.get(_OLD, responses=answers(200, list[ProjectShown], "All projects, oldest first."))
async def list_all_projects(reading: ReadingDep) -> Response:
    """List projects, as the command line asks for them."""
    rows = await reading.backend.database.read(
        lambda c: store.list_page(c, reading.account_id, limit=_MOST_LISTED, offset=0)
    )
    return json([render_project(one) for one in rows])


@router.get(_OLD + "/{logicalId:path}", responses=answers(200, ProjectShown, "The project.", 404))
async def read_project_alone(logical_id: LogicalId, reading: ReadingDep) -> Response:
    """Read a project, as the command line asks for it."""
    row = await reading.backend.database.read(
        lambda c: actions.find(c, reading.account_id, logical_id)
    )
    return json(render_project(row))


@router.post(_OLD, status_code=201, responses=answers(201, ProjectShown, "The project.", 409))
async def create_project(creating: CreateDep, body: Annotated[ProjectWrite, Body()]) -> Response:
    """Create a project that has nothing yet; a deployment creates its own by itself."""
    pepper = creating.backend.pepper

    def change(connection: Connection, scope: Scope) -> Changed:
        if store.find(connection, scope.account_id, body.logical_id) is not None:
            raise ConflictError(f"A project {body.logical_id} already exists; use another.")
        work = Work(connection=connection, scope=scope, pepper=pepper)
        row = add_project(work, body.logical_id, body.name, body.repo_url)
        answer = json(render_project(row), status=201)
        return Changed(answer=answer, resource_id=row.logical_id, fields=sent_fields(body))

    return await creating.make(change)
