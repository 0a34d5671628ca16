"""`/v1/checks/{type}`: set checks up."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Body, Depends, Query
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions, changes
from service.checks.bodies import CheckWrite
from service.checks.types.registry import ANY_CHECK, ANY_TYPED, DEFINITIONS
from service.checks.types.url import URL
from service.checks.views import compared, shown
from service.http.changing import (
    Changed,
    ChangeDep,
    Changing,
    CreateDep,
    Creating,
    changed_fields,
    sent_fields,
)
from service.http.ignored import HEADER, ignored_header
from service.http.operations import keyed_operations
from service.http.routes import ONE, CheckId, answers, json
from service.variables.views import Sight
from service.vault.scope import Scope

router = keyed_operations("Checks", prefix="/v1/checks")


_AutoAssign = Annotated[
    bool,
    Query(
        alias="autoAssignAlerts",
        description="Subscribe the check to all alert channels. There are none yet.",
    ),
]


class _Creating:
    """A request that sets up a check."""

    def __init__(self, creating: CreateDep, *, auto_assign_alerts: _AutoAssign = True) -> None:
        self._creating: Creating = creating
        self.auto_assign_alerts = auto_assign_alerts

    async def create(self, check: CheckWrite) -> Response:
        ignored = ignored_header(await self._creating.request.json(), check)

        def change(connection: Connection, now_ms: int) -> Changed:
            scope = Scope(self._creating.account_id, now_ms, self._creating.vault)
            row = changes.create(connection, scope, check)
            sight = Sight(scope.vault, may_write=True)
            body = shown(row, base_url=self._creating.base_url, sight=sight)
            answer = json(body, status=201, headers=ignored)
            return Changed(answer=answer, resource_id=row.id, fields=sent_fields(check))

        return await self._creating.make(change)


class _Replacing:
    """A request that sets a check up anew."""

    def __init__(self, changing: ChangeDep, *, auto_assign_alerts: _AutoAssign = True) -> None:
        self._changing: Changing = changing
        self.auto_assign_alerts = auto_assign_alerts

    async def replace(self, check_id: str, check: CheckWrite) -> Response:
        ignored = ignored_header(await self._changing.request.json(), check)
        base_url = self._changing.base_url

        def change(connection: Connection, now_ms: int) -> Changed:
            scope = Scope(self._changing.account_id, now_ms, self._changing.vault)
            held = actions.find(connection, scope.account_id, check_id)
            (before,) = actions.with_variables(connection, [held])
            seen = compared(before, base_url=base_url, vault=scope.vault)
            row = changes.replace(connection, scope, check_id, check)
            fields = changed_fields(seen, compared(row, base_url=base_url, vault=scope.vault))
            body = shown(row, base_url=base_url, sight=Sight(scope.vault, may_write=True))
            return Changed(answer=json(body, headers=ignored), resource_id=row.id, fields=fields)

        return await self._changing.make(change)


CreatingDep = Annotated[_Creating, Depends(_Creating)]
ReplacingDep = Annotated[_Replacing, Depends(_Replacing)]
_CREATED = f"The check, every default filled in; the header {HEADER} names unknown fields."


def _register(  # noqa: PLR0913 - what two operations differ in from those of other types
    name: str,
    path: str,
    *,
    body: Any,
    answer: Any,
    created: str,
    replaced: str,
    example: Mapping[str, Any],
    refusals: tuple[int, ...],
) -> None:
    """Declare the operation that creates a check at a path, and the one that replaces it."""

    async def create(body: Any, creating: CreatingDep) -> Response:
        return await creating.create(body)

    async def replace(check_id: CheckId, body: Any, replacing: ReplacingDep) -> Response:
        return await replacing.replace(check_id, body)

    create.__annotations__["body"] = replace.__annotations__["body"] = body
    content = {"application/json": {"example": dict(example)}}
    extra = {"requestBody": {"content": content}}
    router.add_api_route(
        path,
        create,
        methods=["POST"],
        name=f"create_{name}",
        description=created,
        status_code=201,
        responses=answers(201, answer, _CREATED, *refusals),
        openapi_extra=extra,
    )
    router.add_api_route(
        path + ONE,
        replace,
        methods=["PUT"],
        name=f"replace_{name}",
        description=replaced,
        responses=answers(200, answer, _CREATED, 404, *refusals),
        openapi_extra=extra,
    )


_register(
    "check",
    "",
    body=Annotated[ANY_TYPED, Body(discriminator="check_type")],
    answer=ANY_CHECK,
    created="Create a check of the type that `checkType` says.",
    replaced="Replace a check; `checkType` says of which type it is, and cannot change.",
    example={**URL.example, "checkType": URL.kind.value},
    refusals=(409,),
)
for _type in DEFINITIONS:
    _register(
        _type.operation_name,
        f"/{_type.kind.path_segment}",
        body=Annotated[_type.write, Body()],
        answer=_type.response,
        created=f"Create {_type.noun}. {_type.remark}".rstrip(),
        replaced=f"Replace {_type.noun}; fields that are left out take their defaults.",
        example=_type.example,
        refusals=_type.refusals,
    )
