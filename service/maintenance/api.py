"""`/v1/maintenance-windows`: when checks run and nobody is alerted."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import (
    Changed,
    ChangeDep,
    CreateDep,
    PartialBody,
    changed_fields,
    complete_body,
    describe_change,
    sent_fields,
)
from service.http.responses import PageDep, page_of
from service.http.routing import ONE, answers, json_model, keyed_operations
from service.http.times import query_window_ms
from service.http.validation import ignored_header
from service.maintenance import store, window_changes
from service.maintenance.model import WindowFilter, WindowShown, WindowWrite, render
from service.maintenance.rules import Plan, plan
from service.maintenance.window_changes import find
from service.vault.encryption import Scope

router = keyed_operations("Maintenance windows", prefix="/v1/maintenance-windows")

_READER: Final = TypeAdapter(WindowWrite)
WindowId = Annotated[int, Path(alias="id", ge=1, le=(1 << 63) - 1)]


@router.get("", responses=page_of(list[WindowShown], "A page of windows, oldest first."))
async def list_maintenance_windows(
    caller: CallerDep,
    backend: BackendDep,
    page: PageDep,
    starts_at: Annotated[
        str | None,
        Query(
            alias="startsAt",
            description="Windows that start at this time or later; ISO 8601 or seconds since 1970.",
        ),
    ] = None,
    ends_at: Annotated[
        str | None,
        Query(
            alias="endsAt",
            description="Windows whose first occurrence ends at this time or before.",
        ),
    ] = None,
) -> Response:
    """List maintenance windows."""
    wanted = WindowFilter(*query_window_ms(("startsAt", starts_at), ("endsAt", ends_at)))
    rows = await backend.database.read(
        lambda c: store.list_page(
            c, caller.account_id, wanted, limit=page.one_more, offset=page.offset
        )
    )
    return page.answer(rows, lambda row: render(row).model_dump(mode="json"))


@router.post("", status_code=201, responses=answers(201, WindowShown, "The window.", 409))
async def create_maintenance_window(
    creating: CreateDep, body: Annotated[WindowWrite, Body()]
) -> Response:
    """Create a maintenance window: its checks go on running, and nobody is alerted."""
    ignored = await creating.ignored_fields(body)
    planned = await _plan(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = window_changes.create(connection, scope, body, planned)
        answer = json_model(render(row), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=str(row.id), fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, WindowShown, "The window.", 404))
async def read_maintenance_window(
    window_id: WindowId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a maintenance window."""
    row = await backend.database.read(lambda c: find(c, caller.account_id, window_id))
    return json_model(render(row))


@router.put(
    ONE,
    responses=answers(200, WindowShown, "The window.", 404, 409),
    openapi_extra=describe_change(WindowWrite),
)
async def replace_maintenance_window(
    window_id: WindowId, changing: ChangeDep, sent: PartialBody
) -> Response:
    """Change a maintenance window; what is omitted stays."""
    stored = await changing.backend.database.read(
        lambda c: render(find(c, changing.account_id, window_id))
    )
    kept = _drop_replaced(sent, stored.model_dump(mode="json", by_alias=True))
    body = complete_body(_READER, sent, kept)
    ignored, planned = ignored_header(sent, body), await _plan(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        before = render(find(connection, scope.account_id, window_id))
        row = window_changes.replace(connection, scope, window_id, body, planned)
        fields = changed_fields(before.model_dump(), render(row).model_dump())
        answer = json_model(render(row), headers=ignored)
        return Changed(answer=answer, resource_id=str(row.id), fields=fields)

    return await changing.make(change)


@router.delete(ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_maintenance_window(window_id: WindowId, changing: ChangeDep) -> Response:
    """Delete a maintenance window; one that is open ends now."""
    return await changing.delete(
        str(window_id), lambda c, scope: window_changes.delete(c, scope, window_id)
    )


def _drop_replaced(sent: Mapping[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """What is stored, without the repetition in whose place another kind of one was sent."""
    replaced: tuple[str, ...] = ()
    if sent.get("rrule"):
        replaced = ("repeatInterval", "repeatUnit", "repeatEndsAt")
    elif sent.get("repeatInterval"):
        replaced = ("rrule",)
    return {name: value for name, value in stored.items() if name not in replaced}


async def _plan(body: WindowWrite) -> Plan:
    """The times of a window; in a thread, because COUNT is followed for a hundred years."""
    return await asyncio.to_thread(plan, body)
