"""SQL of projects and deployments."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, func, insert, null, select, update

from service.db.tables.projects import deployment, project, project_resource
from service.projects.model import Deployment, DeploymentStatus, Key, MappedResource, Project

_RESOURCE: Final = (
    project_resource.c.type,
    project_resource.c.logical_id,
    project_resource.c.physical_id,
    project_resource.c.source_file,
    project_resource.c.digest,
)


def find(connection: Connection, account_id: str, logical_id: str) -> Project | None:
    """The project of the account with this name in code. None: it has none."""
    query = select(project).where(
        project.c.account_id == account_id, project.c.logical_id == logical_id
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Project(**row)


def list_page(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> tuple[Project, ...]:
    """A page of projects, oldest first."""
    query = (
        select(project)
        .where(project.c.account_id == account_id)
        .order_by(project.c.created_ms, project.c.id)
        .limit(limit)
        .offset(offset)
    )
    return tuple(Project(**row) for row in connection.execute(query).mappings())


def count(connection: Connection, account_id: str) -> int:
    """How many projects an account has."""
    query = select(func.count()).select_from(project).where(project.c.account_id == account_id)
    return int(connection.execute(query).scalar_one())


def add(connection: Connection, row: Project) -> None:
    """Store a new project."""
    values = {column.name: getattr(row, column.name) for column in project.c}
    connection.execute(insert(project).values(**values))


def change(connection: Connection, row: Project) -> None:
    """Store what can change in a project."""
    values = {"name": row.name, "repo_url": row.repo_url, "updated_ms": row.updated_ms}
    connection.execute(update(project).where(project.c.id == row.id).values(**values))


def remove(connection: Connection, project_id: str) -> None:
    """Forget a project and what it has; the things themselves stay."""
    connection.execute(delete(project).where(project.c.id == project_id))


def list_resources(connection: Connection, project_id: str) -> dict[Key, MappedResource]:
    """What a project has."""
    query = (
        select(*_RESOURCE)
        .where(project_resource.c.project_id == project_id)
        .order_by(project_resource.c.type, project_resource.c.logical_id)
    )
    found = (MappedResource(**row) for row in connection.execute(query).mappings())
    return {one.key: one for one in found}


def count_resources(
    connection: Connection, project_ids: Iterable[str]
) -> Mapping[str, Mapping[str, int]]:
    """How many resources of each type projects have, by project."""
    of_project = project_resource.c.project_id
    query = (
        select(of_project, project_resource.c.type, func.count())
        .where(of_project.in_(list(project_ids)))
        .group_by(of_project, project_resource.c.type)
        .order_by(project_resource.c.type)
    )
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for project_id, kind, number in connection.execute(query):
        counts[project_id][kind] = number
    return counts


def find_project_of(
    connection: Connection, account_id: str, kind: str, physical_id: str
) -> Project | None:
    """The project of the account that a thing belongs to. None: to none."""
    query = (
        select(project)
        .join(project_resource, project_resource.c.project_id == project.c.id)
        .where(
            project.c.account_id == account_id,
            project_resource.c.type == kind,
            project_resource.c.physical_id == physical_id,
        )
        .limit(1)
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Project(**row)


def list_taken(connection: Connection, account_id: str) -> frozenset[tuple[str, str]]:
    """What projects of the account have: types and ids of things."""
    query = (
        select(project_resource.c.type, project_resource.c.physical_id)
        .join(project, project_resource.c.project_id == project.c.id)
        .where(project.c.account_id == account_id)
    )
    return frozenset((kind, physical_id) for kind, physical_id in connection.execute(query))


def put_resources(
    connection: Connection, project_id: str, rows: Collection[MappedResource]
) -> None:
    """Store what a project has, in the place of what it had under the same names."""
    remove_resources(connection, project_id, [one.key for one in rows])
    values = [
        {
            "project_id": project_id,
            "type": one.type,
            "logical_id": one.logical_id,
            "physical_id": one.physical_id,
            "source_file": one.source_file,
            "digest": one.digest,
        }
        for one in rows
    ]
    if values:
        connection.execute(insert(project_resource), values)


def remove_resources(connection: Connection, project_id: str, keys: Iterable[Key]) -> None:
    """Forget that a project has these; the things themselves stay."""
    by_type: dict[str, list[str]] = defaultdict(list)
    for kind, logical_id in keys:
        by_type[kind].append(logical_id)
    for kind, logical_ids in by_type.items():
        connection.execute(
            delete(project_resource).where(
                project_resource.c.project_id == project_id,
                project_resource.c.type == kind,
                project_resource.c.logical_id.in_(logical_ids),
            )
        )


def add_deployment(connection: Connection, row: Deployment) -> None:
    """Store a new deployment."""
    values = {column.name: getattr(row, column.name) for column in deployment.c}
    connection.execute(insert(deployment).values(**values))


def find_deployment(
    connection: Connection, account_id: str, logical_id: str, deployment_id: str
) -> Deployment | None:
    """A deployment of a project of the account. None: there is none with this id."""
    query = select(deployment).where(
        deployment.c.id == deployment_id,
        deployment.c.account_id == account_id,
        deployment.c.logical_id == logical_id,
    )
    return _one(connection.execute(query).mappings().one_or_none())


def find_open(connection: Connection, account_id: str, logical_id: str) -> Deployment | None:
    """The deployment of a project that goes on. None: none does."""
    query = (
        select(deployment)
        .where(
            deployment.c.account_id == account_id,
            deployment.c.logical_id == logical_id,
            deployment.c.ended_ms.is_(None),
        )
        .limit(1)
    )
    return _one(connection.execute(query).mappings().one_or_none())


def list_newest(
    connection: Connection, account_id: str, logical_id: str, *, limit: int, offset: int = 0
) -> tuple[Deployment, ...]:
    """The newest deployments of a project, newest first; `offset`: how many are left out."""
    query = (
        select(deployment)
        .where(deployment.c.account_id == account_id, deployment.c.logical_id == logical_id)
        .order_by(deployment.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return tuple(_read(row) for row in connection.execute(query).mappings())


def find_last(
    connection: Connection, account_id: str, logical_ids: Collection[str]
) -> Mapping[str, Deployment]:
    """The newest deployment of each of these projects that has one, without its result."""
    return {
        one.logical_id: one
        for one in _list_last(connection, account_id, deployment.c.logical_id.in_(logical_ids))
    }


def list_last_of_none(
    connection: Connection, account_id: str, *, limit: int
) -> tuple[Deployment, ...]:
    """The newest deployment of each name that no project has, without its result, newest first."""
    names = select(project.c.logical_id).where(project.c.account_id == account_id)
    return _list_last(connection, account_id, deployment.c.logical_id.not_in(names), limit=limit)


def _list_last(
    connection: Connection,
    account_id: str,
    wanted: ColumnElement[bool],
    *,
    limit: int | None = None,
) -> tuple[Deployment, ...]:
    newest = (
        select(func.max(deployment.c.id))
        .where(deployment.c.account_id == account_id, wanted)
        .group_by(deployment.c.logical_id)
    )
    columns = [column for column in deployment.c if column is not deployment.c.result]
    query = (
        select(*columns, null().label("result"))
        .where(deployment.c.id.in_(newest))
        .order_by(deployment.c.id.desc())
        .limit(limit)
    )
    return tuple(_read(row) for row in connection.execute(query).mappings())


def list_open_of(connection: Connection, deployment_ids: Collection[str]) -> tuple[str, ...]:
    """Those of these deployments that go on."""
    query = select(deployment.c.id).where(
        deployment.c.id.in_(deployment_ids), deployment.c.ended_ms.is_(None)
    )
    return tuple(connection.execute(query).scalars())


def change_open(connection: Connection, deployment_id: str, values: Mapping[str, Any]) -> bool:
    """Change a deployment that goes on, and lock it; False: it is over."""
    still_open = (deployment.c.id == deployment_id) & deployment.c.ended_ms.is_(None)
    changed = connection.execute(update(deployment).where(still_open).values(**values))
    return bool(changed.rowcount)


def forget_deployments(connection: Connection, *, before_ms: int) -> int:
    """Delete deployments that began before; how many."""
    return connection.execute(
        delete(deployment).where(deployment.c.created_ms < before_ms)
    ).rowcount


def _one(row: Mapping[Any, Any] | None) -> Deployment | None:
    return None if row is None else _read(row)


def _read(row: Mapping[Any, Any]) -> Deployment:
    return Deployment(**{**row, "status": DeploymentStatus(row["status"])})
