"""`/projects/{logicalId}`: what a project has, and its deployments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.accounts import actions as accounts
from service.audit.model import Kind
from service.http.errors import NotFoundError
from service.projects import actions as projects
from service.projects.model import Deployment, MappedResource, Project
from service.projects.rules import COMPONENT
from service.users import actions as users
from service.web.page_routing import Pages
from service.web.projects.deployment_words import (
    KINDS,
    DeploymentShown,
    ResourceKind,
    path_of,
    show_deployment,
)
from service.web.resources.listing import number_of
from service.web.settings.audit_people import name_people
from service.web.settings.audit_things import NamedThing, name_things
from service.web.visit import Visit

_DEPLOYMENTS: Final = 20
"""How many stand on a page; each may hold thousands of changes."""
_RESOURCES: Final = 100
"""How many of each type stand on it; the whole type has pages of its own."""
_GONE: Final = "deleted by hand; the next deployment makes it again"
_GONE_COMPONENT: Final = "a group of its page, or deleted by hand"
_ORDER: Final = tuple(KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A resource of a project."""

    name: str
    path: str
    """Its own page. Empty: it has none."""
    logical_id: str
    source_file: str
    """Empty: not known."""
    said: str
    """Why it has no page. Empty: it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The resources of one type."""

    type: str
    kind: ResourceKind
    count: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    project: Project | None
    parts: Sequence[Part]
    later: int
    """The next page of the type that is asked for. 0: there is none."""
    deployments: Sequence[DeploymentShown]
    earlier_deployments: bool
    now_ms: int


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page; the id in code may have slashes."""
    return (pages.show("/projects/{logicalId:path}", _show),)


async def _show(visit: Visit) -> Response:
    logical_id = str(visit.request.path_params["logicalId"])
    query = visit.request.query_params
    wanted = query.get("type", "")
    is_narrow = wanted in KINDS
    number = number_of(visit)

    def read(connection: Connection) -> _Found:
        project = projects.find_known(connection, visit.account_id, logical_id)
        deployments = projects.list_deployments(
            connection,
            visit.account_id,
            logical_id,
            limit=_DEPLOYMENTS + 1,
            offset=0 if is_narrow else (number - 1) * _DEPLOYMENTS,
        )
        if project is None and not deployments:
            raise NotFoundError(f"There is no project {logical_id}.")
        has = projects.list_resources(connection, project) if project else ()
        if is_narrow:
            has = tuple(one for one in has if one.type == wanted)
        first = (number - 1) * _RESOURCES if is_narrow else 0
        return _Found(
            project=project,
            parts=_divide(connection, visit.account_id, has, first=first),
            later=number + 1 if is_narrow and len(has) > first + _RESOURCES else 0,
            deployments=_show_all(connection, visit, deployments[:_DEPLOYMENTS]),
            earlier_deployments=len(deployments) > _DEPLOYMENTS,
            now_ms=visit.now_ms(connection),
        )

    return visit.page(
        "project.html",
        found=await visit.read(read),
        logical_id=logical_id,
        here=path_of(logical_id),
        wanted=wanted if is_narrow else "",
        number=number,
    )


def _show_all(
    connection: Connection, visit: Visit, deployments: Sequence[Deployment]
) -> list[DeploymentShown]:
    names = name_people(
        accounts.list_keys(connection, account_id=visit.account_id),
        users.list_users(connection, account_id=visit.account_id),
    )
    now_ms = visit.now_ms(connection)
    return [show_deployment(one, names, now_ms=now_ms) for one in deployments]


def _divide(
    connection: Connection, account_id: str, has: Iterable[MappedResource], *, first: int
) -> list[Part]:
    """The resources of each type; of a type so many, from the one with this index."""
    ordered = sorted(has, key=lambda one: (_place(one.type), one.logical_id))
    parts = [(kind, list(rows)) for kind, rows in groupby(ordered, lambda one: one.type)]
    shown = {kind: rows[first : first + _RESOURCES] for kind, rows in parts}
    wanted: dict[Kind, set[str]] = {}
    for kind, rows in shown.items():
        if (page_kind := _kind_of(kind).kind) is not None:
            wanted.setdefault(page_kind, set()).update(one.physical_id for one in rows)
    named = name_things(connection, account_id, wanted)
    return [
        Part(
            type=kind,
            kind=_kind_of(kind),
            count=len(rows),
            rows=[_row(one, named) for one in shown[kind]],
        )
        for kind, rows in parts
    ]


def _row(one: MappedResource, named: Mapping[tuple[Kind, str], NamedThing]) -> Row:
    page_kind = _kind_of(one.type).kind
    thing = named.get((page_kind, one.physical_id)) if page_kind else None
    return Row(
        name=thing.name if thing else one.logical_id,
        path=thing.path if thing else "",
        logical_id=one.logical_id,
        source_file=one.source_file or "",
        said="" if thing else _GONE_COMPONENT if one.type == COMPONENT else _GONE,
    )


def _place(kind: str) -> int:
    return _ORDER.index(kind) if kind in KINDS else len(_ORDER)


def _kind_of(kind: str) -> ResourceKind:
    return KINDS.get(kind) or ResourceKind(one=kind, many=kind)
