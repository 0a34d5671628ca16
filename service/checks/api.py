"""`/v1/checks`: read, list and delete checks."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Body, Depends, Query
from pydantic import Field, TypeAdapter
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions, changes, store
from service.checks.model import CheckFilter, CheckKind, CheckRow, StatusFilter
from service.checks.schemas import CheckWrite
from service.checks.types.registry import ANY_CHECK, ANY_CHECKS, ANY_TYPED, DEFINITIONS
from service.checks.types.url import URL
from service.checks.views import compare, render
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
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
from service.http.responses import Items, PageDep, counted, page_of_sealed
from service.http.routing import ONE, CheckId, answers, json, keyed_operations
from service.http.schema import Text
from service.http.validation import HEADER, ignored_header
from service.vault.encryption import Scope, Viewer

router = keyed_operations("Checks", prefix="/v1/checks")


def _read_filter(
    tag: Annotated[
        list[Text], Query(max_length=50, description="A tag; repeat it for checks that have all.")
    ] = [],  # noqa: B006 - FastAPI copies defaults
    *,
    check_type: Annotated[CheckKind | None, Query(alias="checkType")] = None,
    search: Annotated[
        Text | None, Query(max_length=1000, description="Part of the name or of a tag.")
    ] = None,
    url_part: Annotated[
        Text | None,
        Query(
            alias="apiCheckUrlFilterPattern",
            max_length=2048,
            description="Part of an API check's URL.",
        ),
    ] = None,
    status: Annotated[StatusFilter | None, Query(description="Status of the last result.")] = None,
) -> CheckFilter:
    return CheckFilter(
        tags=tuple(tag), check_type=check_type, search=search, url_part=url_part, status=status
    )


_ApplyGroup = Annotated[
    bool,
    Query(
        alias="applyGroupSettings",
        description="Show each check as it runs, with the settings of its group.",
    ),
]


@router.get("", responses=counted(page_of_sealed(ANY_CHECKS, "A page of checks, oldest first.")))
async def list_checks(  # noqa: PLR0913 - what FastAPI hands in
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    page: PageDep,
    wanted: Annotated[CheckFilter, Depends(_read_filter)],
    *,
    apply_group_settings: _ApplyGroup = False,
) -> Response:
    """List checks."""

    def query(connection: Connection) -> tuple[tuple[CheckRow, ...], int]:
        found = store.find_matching(
            connection, caller.account_id, wanted, limit=page.one_more, offset=page.offset
        )
        total = store.count_matching(connection, caller.account_id, wanted)
        return actions.complete(connection, found), total

    rows, total = await backend.database.read(query)
    viewer = Viewer(backend.vault, may_write=caller.may_write)
    show = partial(render, base_url=backend.base_url(request), as_it_runs=apply_group_settings)
    items = Items(
        show=partial(show, viewer=viewer),
        hide=partial(show, viewer=viewer.hiding),
        name=attrgetter("id"),
    )
    return page.answer_of(rows, items, total=total)


@router.get(ONE, responses=answers(200, ANY_CHECK, "The check.", 404))
async def read_check(
    check_id: CheckId,
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    *,
    apply_group_settings: _ApplyGroup = False,
) -> Response:
    """Read a check."""

    def query(connection: Connection) -> tuple[CheckRow, ...]:
        found = actions.find(connection, caller.account_id, check_id)
        return actions.complete(connection, [found])

    (row,) = await backend.database.read(query)
    base_url, viewer = backend.base_url(request), Viewer(backend.vault, may_write=caller.may_write)
    return json(render(row, base_url=base_url, viewer=viewer, as_it_runs=apply_group_settings))


@router.delete(ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_check(check_id: CheckId, changing: ChangeDep) -> Response:
    """Delete a check."""
    return await changing.delete(check_id, lambda c, scope: changes.delete(c, scope, check_id))


write_router = keyed_operations("Checks", prefix="/v1/checks")


_AutoAssign = Annotated[
    bool,
    Query(
        alias="autoAssignAlerts",
        description=(
            "Subscribe the new check to all alert channels that it does not name. False: only to"
            " those that it names, and to those with `autoSubscribe`."
        ),
    ),
]


def _auto_assign(
    *,
    _auto_assign_alerts: Annotated[
        bool,
        Query(
            alias="autoAssignAlerts", description="Only new checks are subscribed by themselves."
        ),
    ] = True,
) -> None:
    """Accepted, without an effect on a check that is there."""


async def _create(
    creating: IdempotentMutation, check: CheckWrite, *, auto_assign: bool
) -> Response:
    ignored = await creating.ignored_fields(check)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = changes.create(connection, scope, check, auto_assign=auto_assign)
        body = render(row, base_url=creating.base_url, viewer=Viewer.writer(scope.vault))
        answer = json(body, status=201, headers=ignored)
        return Changed(answer=answer, resource_id=row.id, fields=sent_fields(check))

    return await creating.make(change)


async def _change(
    changing: Mutation, check_id: str, sent: Mapping[str, Any], reader: TypeAdapter[CheckWrite]
) -> Response:
    base_url = changing.base_url

    def change(connection: Connection, scope: Scope) -> Changed:
        held = actions.find(connection, scope.account_id, check_id)
        (before,) = actions.complete(connection, [held])
        viewer = Viewer.writer(scope.vault)
        stored = render(before, base_url=base_url, viewer=viewer.hiding)
        check = complete_body(reader, sent, stored)
        seen = compare(before, base_url=base_url, vault=scope.vault)
        row = changes.replace(connection, scope, check_id, check)
        fields = changed_fields(seen, compare(row, base_url=base_url, vault=scope.vault))
        body = render(row, base_url=base_url, viewer=viewer)
        answer = json(body, headers=ignored_header(sent, check))
        return Changed(answer=answer, resource_id=row.id, fields=fields)

    return await changing.make(change)


_CREATED = f"The check with all defaults; the header {HEADER} names unknown fields."


def _register(  # noqa: PLR0913 - what two operations differ in from those of other types
    name: str,
    path: str,
    *,
    body: Any,
    names: Sequence[str],
    answer: Any,
    created: str,
    replaced: str,
    example: Mapping[str, Any],
    refusals: tuple[int, ...],
) -> None:
    """Declare the operation that creates a check at a path, and the one that replaces it."""

    async def create(
        body: Any, creating: CreateDep, *, auto_assign: _AutoAssign = True
    ) -> Response:
        return await _create(creating, body, auto_assign=auto_assign)

    reader = cache(lambda: TypeAdapter(body))

    async def replace(check_id: CheckId, body: PartialBody, changing: ChangeDep) -> Response:
        return await _change(changing, check_id, body, reader())

    create.__annotations__["body"] = Annotated[body, Body()]
    write_router.add_api_route(
        path,
        create,
        methods=["POST"],
        name=f"create_{name}",
        description=created,
        status_code=201,
        responses=answers(201, answer, _CREATED, *refusals),
        openapi_extra=_describe_body(example),
    )
    write_router.add_api_route(
        path + ONE,
        replace,
        methods=["PUT"],
        name=f"replace_{name}",
        description=replaced,
        responses=answers(200, answer, _CREATED, 404, *refusals),
        openapi_extra=_describe_body(example, schema={CHANGES: list(names)}),
        dependencies=[Depends(_auto_assign)],
    )


def _describe_body(example: Mapping[str, Any], **described: Any) -> dict[str, Any]:
    content = {"application/json": {"example": dict(example), **described}}
    return {"requestBody": {"content": content}}


_register(
    "check",
    "",
    body=Annotated[ANY_TYPED, Field(discriminator="check_type")],
    names=[one.typed.__name__ for one in DEFINITIONS],
    answer=ANY_CHECK,
    created="Create a check of the type that `checkType` says.",
    replaced="Change a check; what is omitted stays, and `checkType` cannot change.",
    example={**URL.example, "checkType": URL.kind.value},
    refusals=(409,),
)
for _type in DEFINITIONS:
    _register(
        _type.operation_name,
        f"/{_type.kind.path_segment}",
        body=_type.write,
        names=[_type.write.__name__],
        answer=_type.response,
        created=f"Create {_type.noun}. {_type.remark}".rstrip(),
        replaced=f"Change {_type.noun}; what is omitted stays, and null unsets.",
        example=_type.example,
        refusals=_type.refusals,
    )
