"""`/v1/check-groups` and `/v2/check-groups`: checks that share settings."""

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Final

from fastapi import Body, Depends, Path, Query
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckRow
from service.checks.types.registry import ANY_CHECK, ANY_CHECKS
from service.checks.views import render as shown_check
from service.groups import store
from service.groups.actions import complete, find
from service.groups.group_changes import create, delete, replace
from service.groups.model import GroupFilter, GroupRow
from service.groups.schemas import (
    AnyGroupWrite,
    GroupShown,
    GroupV2Write,
    GroupWrite,
    compare,
    render,
)
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.mutations import (
    CHANGES,
    Changed,
    ChangeDep,
    CreateDep,
    IdempotentMutation,
    Mutation,
    PartialBody,
    changed_fields,
    complete_body,
    sent_fields,
)
from service.http.responses import Items, PageDep, page_of_sealed
from service.http.routing import answers, json, keyed_operations
from service.http.schema import NO_NUL, Text
from service.http.validation import HEADER, ignored_header
from service.vault.encryption import Scope, Viewer

router = keyed_operations("Check groups")

_ALL = "/v1/check-groups"
_ONE = _ALL + "/{id}"
_ALL_V2 = "/v2/check-groups"
_CREATED = f"The group with all defaults; the header {HEADER} names unknown fields."
_MOST = (1 << 63) - 1
GroupId = Annotated[int, Path(alias="id", ge=1, le=_MOST)]


_AutoAssign = Annotated[
    bool,
    Query(
        alias="autoAssignAlerts",
        description=(
            "Subscribe the new group to all alert channels that it does not name. False: only to"
            " those that it names."
        ),
    ),
]


def _auto_assign(
    *,
    _auto_assign_alerts: Annotated[
        bool,
        Query(
            alias="autoAssignAlerts", description="Only new groups are subscribed by themselves."
        ),
    ] = True,
) -> None:
    """Accepted, without an effect on a group that is there."""


def _read_filter(
    tag: Annotated[Text | None, Query(max_length=1000, description="One of its tags.")] = None,
    name: Annotated[Text | None, Query(max_length=1000, description="Part of its name.")] = None,
) -> GroupFilter:
    return GroupFilter(tag=tag, name=name)


async def _create(
    creating: IdempotentMutation, body: AnyGroupWrite, *, auto_assign: bool
) -> Response:
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        group = create(connection, scope, body, auto_assign=auto_assign)
        answer = json(render(group, Viewer.writer(scope.vault)), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=str(group.id), fields=sent_fields(body))

    return await creating.make(change)


async def _change(
    changing: Mutation, group_id: int, sent: Mapping[str, Any], reader: TypeAdapter[AnyGroupWrite]
) -> Response:
    def change(connection: Connection, scope: Scope) -> Changed:
        held = find(connection, scope.account_id, group_id)
        (before,) = complete(connection, [held])
        viewer = Viewer.writer(scope.vault)
        body = complete_body(reader, sent, render(before, viewer.hiding))
        seen = compare(before, scope.vault)
        group = replace(connection, scope, group_id, body)
        fields = changed_fields(seen, compare(group, scope.vault))
        answer = json(render(group, viewer), headers=ignored_header(sent, body))
        return Changed(answer=answer, resource_id=str(group.id), fields=fields)

    return await changing.make(change)


class _Reading:
    """A request that reads groups, or checks of one."""

    def __init__(self, request: Request, caller: CallerDep, backend: BackendDep) -> None:
        self.backend: Backend = backend
        self.account_id: str = caller.account_id
        self.viewer = Viewer(backend.vault, may_write=caller.may_write)
        self._base_url = backend.base_url(request)

    def groups(self) -> Items[GroupRow]:
        """Groups in a list."""
        return Items(
            show=lambda row: render(row, self.viewer),
            hide=lambda row: render(row, self.viewer.hiding),
            name=lambda row: str(row.id),
        )

    def checks(self) -> Items[CheckRow]:
        """Checks of a group in a list, as they run."""
        show = partial(shown_check, base_url=self._base_url, as_it_runs=True)
        return Items(
            show=partial(show, viewer=self.viewer),
            hide=partial(show, viewer=self.viewer.hiding),
            name=attrgetter("id"),
        )

    def check(self, row: CheckRow) -> dict[str, object]:
        """A check of a group, as it runs."""
        return shown_check(row, base_url=self._base_url, viewer=self.viewer, as_it_runs=True)


ReadingDep = Annotated[_Reading, Depends(_Reading)]
_ALSO = [Depends(_auto_assign)]


@router.get(_ALL, responses=page_of_sealed(list[GroupShown], "A page of groups, oldest first."))
async def list_check_groups(
    reading: ReadingDep, page: PageDep, wanted: Annotated[GroupFilter, Depends(_read_filter)]
) -> Response:
    """List check groups."""

    def query(connection: Connection) -> tuple[GroupRow, ...]:
        found = store.list_page(
            connection, reading.account_id, wanted, limit=page.one_more, offset=page.offset
        )
        return complete(connection, found)

    rows = await reading.backend.database.read(query)
    return page.answer_of(rows, reading.groups())


@router.post(_ALL, status_code=201, responses=answers(201, GroupShown, _CREATED))
async def create_check_group(
    body: Annotated[GroupWrite, Body()], creating: CreateDep, *, auto_assign: _AutoAssign = True
) -> Response:
    """Create a check group."""
    return await _create(creating, body, auto_assign=auto_assign)


@router.post(_ALL_V2, status_code=201, responses=answers(201, GroupShown, _CREATED))
async def create_check_group_v2(
    body: Annotated[GroupV2Write, Body()], creating: CreateDep, *, auto_assign: _AutoAssign = True
) -> Response:
    """Create a check group in the second form: null leaves a setting to its checks."""
    return await _create(creating, body, auto_assign=auto_assign)


@router.get(_ONE, responses=answers(200, GroupShown, "The group.", 404))
async def read_check_group(group_id: GroupId, reading: ReadingDep) -> Response:
    """Read a check group."""

    def query(connection: Connection) -> tuple[GroupRow, ...]:
        found = find(connection, reading.account_id, group_id)
        return complete(connection, [found])

    (row,) = await reading.backend.database.read(query)
    return json(render(row, reading.viewer))


_V1: Final[TypeAdapter[AnyGroupWrite]] = TypeAdapter(GroupWrite)
_V2: Final[TypeAdapter[AnyGroupWrite]] = TypeAdapter(GroupV2Write)


def _describe_change(name: str) -> dict[str, Any]:
    return {"requestBody": {"content": {"application/json": {"schema": {CHANGES: [name]}}}}}


@router.put(
    _ONE,
    responses=answers(200, GroupShown, _CREATED, 404),
    dependencies=_ALSO,
    openapi_extra=_describe_change(GroupWrite.__name__),
)
async def replace_check_group(
    group_id: GroupId, body: PartialBody, changing: ChangeDep
) -> Response:
    """Change a check group; what is omitted stays, and null unsets."""
    return await _change(changing, group_id, body, _V1)


@router.put(
    _ALL_V2 + "/{id}",
    responses=answers(200, GroupShown, _CREATED, 404),
    dependencies=_ALSO,
    openapi_extra=_describe_change(GroupV2Write.__name__),
)
async def replace_check_group_v2(
    group_id: GroupId, body: PartialBody, changing: ChangeDep
) -> Response:
    """Change a check group in the second form; what is omitted stays, and null unsets."""
    return await _change(changing, group_id, body, _V2)


@router.delete(_ONE, status_code=204, responses=answers(204, None, "Deleted.", 404, 409))
async def delete_check_group(group_id: GroupId, changing: ChangeDep) -> Response:
    """Delete a check group; refused while checks are in it."""
    return await changing.delete(str(group_id), lambda c, scope: delete(c, scope, group_id))


@router.get(
    _ONE + "/checks",
    responses=page_of_sealed(ANY_CHECKS, "A page of its checks, in its order.", 404),
)
async def list_checks_of_group(group_id: GroupId, reading: ReadingDep, page: PageDep) -> Response:
    """List the checks of a group as they run, with its settings."""

    def query(connection: Connection) -> tuple[CheckRow, ...]:
        find(connection, reading.account_id, group_id)
        found = checks.list_members(
            connection, reading.account_id, group_id, limit=page.one_more, offset=page.offset
        )
        return checks.complete(connection, found)

    rows = await reading.backend.database.read(query)
    return page.answer_of(rows, reading.checks())


@router.get(
    _ALL + "/{groupId}/checks/{checkId}", responses=answers(200, ANY_CHECK, "The check.", 404)
)
async def read_check_of_group(
    group_id: Annotated[int, Path(alias="groupId", ge=1, le=_MOST)],
    check_id: Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)],
    reading: ReadingDep,
) -> Response:
    """Read a check of a group as it runs, with its settings."""

    def query(connection: Connection) -> tuple[CheckRow, ...]:
        found = checks.find_member(connection, reading.account_id, group_id, check_id)
        return checks.complete(connection, [found])

    (row,) = await reading.backend.database.read(query)
    return json(reading.check(row))
