"""What happens to projects and deployments; each is part of the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from service.db.engine import announce
from service.db.ids import new_id
from service.http.errors import ConflictError, NotFoundError
from service.projects import store
from service.projects.model import (
    Deployment,
    DeploymentEnded,
    DeploymentStatus,
    MappedResource,
    Project,
)

LEASE_MS: Final = 60_000
"""How long a deployment may take: it is over within seconds, unless its process is gone.

One that waits for its turn renews it.
"""
_KEPT_MS: Final = 30 * 86_400_000
GONE: Final[Mapping[str, Any]] = {
    "code": "DEPLOYMENT_INTERRUPTED",
    "message": "The service stopped while it deployed, and nothing was changed. Deploy again.",
}


def find(connection: Connection, account_id: str, logical_id: str) -> Project:
    """A project of the account.

    Raises:
        NotFoundError: it has none with this logical id.
    """
    row = store.find(connection, account_id, logical_id)
    if row is None:
        raise NotFoundError(f"There is no project {logical_id}.")
    return row


def find_deployment(
    connection: Connection, account_id: str, logical_id: str, deployment_id: str
) -> Deployment:
    """A deployment of a project of the account.

    Raises:
        NotFoundError: there is none with this id.
    """
    row = store.find_deployment(connection, account_id, logical_id, deployment_id)
    if row is None:
        raise NotFoundError(f"There is no deployment {deployment_id} of the project {logical_id}.")
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A project with what a list tells of it."""

    project: Project
    counts: Mapping[str, int]
    """How many resources of each type it has."""
    last: Deployment | None
    """Its newest deployment, without a result. None: the last ones are forgotten."""


def list_projects(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> tuple[Listed, ...]:
    """A page of projects, oldest first."""
    rows = store.list_page(connection, account_id, limit=limit, offset=offset)
    counts = store.count_resources(connection, [one.id for one in rows])
    last = store.find_last(connection, account_id, [one.logical_id for one in rows])
    return tuple(
        Listed(project=one, counts=counts.get(one.id, {}), last=last.get(one.logical_id))
        for one in rows
    )


def list_last_of_none(
    connection: Connection, account_id: str, *, limit: int
) -> tuple[Deployment, ...]:
    """The last deployment of each project that is not there, newest first, without its result."""
    return store.list_last_of_none(connection, account_id, limit=limit)


def list_deployments(
    connection: Connection, account_id: str, logical_id: str, *, limit: int, offset: int
) -> tuple[Deployment, ...]:
    """A page of deployments of a project, newest first; it need not be there any more."""
    return store.list_newest(connection, account_id, logical_id, limit=limit, offset=offset)


def find_known(connection: Connection, account_id: str, logical_id: str) -> Project | None:
    """A project of the account. None: it has none with this logical id."""
    return store.find(connection, account_id, logical_id)


def list_resources(connection: Connection, project: Project) -> tuple[MappedResource, ...]:
    """What a project has, by type and logical id."""
    return tuple(store.list_resources(connection, project.id).values())


def find_owner(
    connection: Connection, account_id: str, kinds: Sequence[str], physical_id: str
) -> Project | None:
    """The project of the account that keeps a thing as code. None: none does.

    `kinds`: the types that it may have, as bodies of deployments spell them.
    """
    found = (store.find_project_of(connection, account_id, kind, physical_id) for kind in kinds)
    return next((one for one in found if one is not None), None)


def begin(  # noqa: PLR0913 - what is known of a deployment at its start
    connection: Connection,
    account_id: str,
    logical_id: str,
    *,
    key_id: str | None = None,
    user_id: str | None = None,
    now_ms: int,
) -> Deployment:
    """Note that a deployment is asked for, by an API key or by a user.

    Raises:
        ConflictError: another one of the project goes on; the body names it.
    """
    held = store.find_open(connection, account_id, logical_id)
    if held is not None and not end_if_gone(connection, held, now_ms=now_ms):
        raise ConflictError(
            f"The project {logical_id} is being deployed already; wait for that deployment, or"
            " cancel it.",
            facts={"deploymentId": held.id},
        )
    made = Deployment(
        id=new_id(now_ms),
        account_id=account_id,
        logical_id=logical_id,
        status=DeploymentStatus.PENDING,
        progress=0,
        error=None,
        result=None,
        created_ms=now_ms,
        started_ms=None,
        ended_ms=None,
        cancel_ms=None,
        lease_ms=now_ms + LEASE_MS,
        key_id=key_id,
        user_id=user_id,
    )
    store.add_deployment(connection, made)
    return made


def end_if_gone(connection: Connection, deployment: Deployment, *, now_ms: int) -> bool:
    """End a deployment whose process has not ended it in time; whether it is over."""
    if deployment.is_over:
        return True
    if now_ms < deployment.lease_ms:
        return False
    return end(connection, deployment.id, DeploymentStatus.FAILED, error=GONE, now_ms=now_ms)


def start(connection: Connection, deployment_id: str, *, now_ms: int) -> bool:
    """Note that a deployment is being made; False: it is over."""
    values = {
        "status": DeploymentStatus.RUNNING.value,
        "started_ms": now_ms,
        "lease_ms": now_ms + LEASE_MS,
    }
    return store.change_open(connection, deployment_id, values)


def hold(connection: Connection, deployment_id: str, *, now_ms: int) -> bool:
    """Keep everybody else from ending a deployment before this transaction is over; False: it is.

    Its lease begins anew.
    """
    return store.change_open(connection, deployment_id, {"lease_ms": now_ms + LEASE_MS})


def end(  # noqa: PLR0913 - all that an end may hold
    connection: Connection,
    deployment_id: str,
    status: DeploymentStatus,
    *,
    error: Mapping[str, Any] | None = None,
    result: Mapping[str, Any] | None = None,
    now_ms: int,
) -> bool:
    """End a deployment; False: it was over."""
    values = {
        "status": status.value,
        "error": error,
        "result": result,
        "ended_ms": now_ms,
        "progress": 100,
    }
    if status is not DeploymentStatus.SUCCEEDED:
        del values["progress"]
    if not store.change_open(connection, deployment_id, values):
        return False
    announce(connection, DeploymentEnded(deployment_id))
    return True


def cancel(connection: Connection, deployment: Deployment, *, now_ms: int) -> None:
    """Cancel a deployment that has not been made; one that is over stays as it is."""
    if store.change_open(connection, deployment.id, {"cancel_ms": now_ms}):
        end(connection, deployment.id, DeploymentStatus.CANCELLED, now_ms=now_ms)


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Delete deployments that were made long ago; how many."""
    return store.forget_deployments(connection, before_ms=now_ms - _KEPT_MS)
