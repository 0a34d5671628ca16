"""`/v1/check-groups` and `/v2/check-groups`: checks that share settings."""

from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckRow
from service.checks.types.registry import ANY_CHECK, ANY_CHECKS
from service.checks.views import shown as shown_check
from service.groups import actions, changes
from service.groups.bodies import AnyGroupWrite, GroupV2Write, GroupWrite
from service.groups.model import GroupFilter, GroupRow
from service.groups.views import GroupShown, compared, shown
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.changing import (
    Changed,
    ChangeDep,
    Changing,
    CreateDep,
    Creating,
    changed_fields,
    gone,
    sent_fields,
)
from service.http.ignored import HEADER, ignored_header
from service.http.operations import keyed_operations
from service.http.paging import PageDep, page_of_sealed
from service.http.routes import answers, json
from service.http.strict import NO_NUL, Text
from service.http.unreadable import Items
from service.variables.views import Sight
from service.vault.scope import Scope

router = keyed_operations("Check groups")

_ALL = "/v1/check-groups"
_ONE = _ALL + "/{id}"
_ALL_V2 = "/v2/check-groups"
_CREATED = f"The group, every default filled in; the header {HEADER} names unknown fields."
_MOST = (1 << 63) - 1
GroupId = Annotated[int, Path(alias="id", ge=1, le=_MOST)]
_AutoAssign = Annotated[
    bool,
    Query(
        alias="autoAssignAlerts",
        description="Subscribe the group to all alert channels. There are none yet.",
    ),
]


def _filter(
    tag: Annotated[Text | None, Query(max_length=1000, description="One of its tags.")] = None,
    name: Annotated[Text | None, Query(max_length=1000, description="Part of its name.")] = None,
) -> GroupFilter:
    return GroupFilter(tag=tag, name=name)


class _Creating:
    """A request that sets up a group."""

    def __init__(self, creating: CreateDep, *, auto_assign_alerts: _AutoAssign = True) -> None:
        self._creating: Creating = creating
        self.auto_assign_alerts = auto_assign_alerts

    async def create(self, body: AnyGroupWrite) -> Response:
        ignored = ignored_header(await self._creating.request.json(), body)

        def change(connection: Connection, now_ms: int) -> Changed:
            scope = Scope(self._creating.account_id, now_ms, self._creating.vault)
            group = changes.create(connection, scope, body)
            seen = shown(group, Sight(scope.vault, may_write=True))
            answer = json(seen, status=201, headers=ignored)
            return Changed(answer=answer, resource_id=str(group.id), fields=sent_fields(body))

        return await self._creating.make(change)


class _Replacing:
    """A request that sets a group up anew."""

    def __init__(
        self, group_id: GroupId, changing: ChangeDep, *, auto_assign_alerts: _AutoAssign = True
    ) -> None:
        self._group_id = group_id
        self._changing: Changing = changing
        self.auto_assign_alerts = auto_assign_alerts

    async def replace(self, body: AnyGroupWrite) -> Response:
        ignored = ignored_header(await self._changing.request.json(), body)

        def change(connection: Connection, now_ms: int) -> Changed:
            scope = Scope(self._changing.account_id, now_ms, self._changing.vault)
            held = actions.find(connection, scope.account_id, self._group_id)
            (before,) = actions.with_variables(connection, [held])
            seen = compared(before, scope.vault)
            group = changes.replace(connection, scope, self._group_id, body)
            fields = changed_fields(seen, compared(group, scope.vault))
            answer = json(shown(group, Sight(scope.vault, may_write=True)), headers=ignored)
            return Changed(answer=answer, resource_id=str(group.id), fields=fields)

        return await self._changing.make(change)


class _Reading:
    """A request that reads groups, or checks of one."""

    def __init__(self, request: Request, caller: CallerDep, backend: BackendDep) -> None:
        self.backend: Backend = backend
        self.account_id: str = caller.account_id
        self.sight = Sight(backend.vault, may_write=caller.may_write)
        self._base_url = backend.base_url(request)

    def groups(self) -> Items[GroupRow]:
        """Groups in a list."""
        return Items(
            show=lambda row: shown(row, self.sight),
            hide=lambda row: shown(row, self.sight.hiding),
            name=lambda row: str(row.id),
        )

    def checks(self) -> Items[CheckRow]:
        """Checks of a group in a list, as they run."""
        show = partial(shown_check, base_url=self._base_url, as_it_runs=True)
        return Items(
            show=partial(show, sight=self.sight),
            hide=partial(show, sight=self.sight.hiding),
            name=attrgetter("id"),
        )

    def check(self, row: CheckRow) -> dict[str, object]:
        """A check of a group, as it runs."""
        return shown_check(row, base_url=self._base_url, sight=self.sight, as_it_runs=True)


CreatingDep = Annotated[_Creating, Depends(_Creating)]
ReplacingDep = Annotated[_Replacing, Depends(_Replacing)]
ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.get(_ALL, responses=page_of_sealed(list[GroupShown], "A page of groups, oldest first."))
async def list_check_groups(
    reading: ReadingDep, page: PageDep, wanted: Annotated[GroupFilter, Depends(_filter)]
) -> Response:
    """List check groups."""

    def query(connection: Connection) -> tuple[GroupRow, ...]:
        found = actions.page(
            connection, reading.account_id, wanted, limit=page.one_more, offset=page.offset
        )
        return actions.with_variables(connection, found)

    rows = await reading.backend.database.read(query)
    return page.answer_of(rows, reading.groups())


@router.post(_ALL, status_code=201, responses=answers(201, GroupShown, _CREATED))
async def create_check_group(
    body: Annotated[GroupWrite, Body()], creating: CreatingDep
) -> Response:
    """Create a check group."""
    return await creating.create(body)


@router.post(_ALL_V2, status_code=201, responses=answers(201, GroupShown, _CREATED))
async def create_check_group_v2(
    body: Annotated[GroupV2Write, Body()], creating: CreatingDep
) -> Response:
    """Create a check group, in the second form: null leaves a setting to its checks."""
    return await creating.create(body)


@router.get(_ONE, responses=answers(200, GroupShown, "The group.", 404))
async def read_check_group(group_id: GroupId, reading: ReadingDep) -> Response:
    """Read a check group."""

    def query(connection: Connection) -> tuple[GroupRow, ...]:
        found = actions.find(connection, reading.account_id, group_id)
        return actions.with_variables(connection, [found])

    (row,) = await reading.backend.database.read(query)
    return json(shown(row, reading.sight))


@router.put(_ONE, responses=answers(200, GroupShown, _CREATED, 404))
async def replace_check_group(
    body: Annotated[GroupWrite, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a check group; fields that are left out take their defaults."""
    return await replacing.replace(body)


@router.put(_ALL_V2 + "/{id}", responses=answers(200, GroupShown, _CREATED, 404))
async def replace_check_group_v2(
    body: Annotated[GroupV2Write, Body()], replacing: ReplacingDep
) -> Response:
    """Replace a check group, in the second form; fields that are left out take their defaults."""
    return await replacing.replace(body)


@router.delete(_ONE, status_code=204, responses=answers(204, None, "It is gone.", 404, 409))
async def delete_check_group(group_id: GroupId, changing: ChangeDep) -> Response:
    """Delete a check group; refused while checks are in it."""

    def change(connection: Connection, now_ms: int) -> Changed:
        scope = Scope(changing.account_id, now_ms, changing.vault)
        changes.delete(connection, scope, group_id)
        return gone(str(group_id))

    return await changing.make(change)


@router.get(
    _ONE + "/checks",
    responses=page_of_sealed(ANY_CHECKS, "A page of its checks, in its order.", 404),
)
async def list_checks_of_group(group_id: GroupId, reading: ReadingDep, page: PageDep) -> Response:
    """List the checks of a group as they run, with its settings."""

    def query(connection: Connection) -> tuple[CheckRow, ...]:
        actions.find(connection, reading.account_id, group_id)
        found = checks.of_group(
            connection, reading.account_id, group_id, limit=page.one_more, offset=page.offset
        )
        return checks.with_variables(connection, found)

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
        found = checks.in_group(connection, reading.account_id, group_id, check_id)
        return checks.with_variables(connection, [found])

    (row,) = await reading.backend.database.read(query)
    return json(reading.check(row))
