"""`/v1/status-pages` and `/v1/status-pages/services`: what an account shows, and what of."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Body, Path, Query
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.cursors import CursorDep
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
from service.http.routing import answers, json, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.http.validation import ignored_header
from service.incidents import actions as incidents
from service.incidents.api import show_all
from service.status_pages import page_changes, service_changes, store
from service.status_pages.actions import find, find_service
from service.status_pages.model import (
    ServiceList,
    ServiceShown,
    ServiceWrite,
    StatusPage,
    render_service,
)
from service.status_pages.page_changes import NO_KEYS
from service.status_pages.schemas import (
    StatusPageList,
    StatusPageShown,
    StatusPageWrite,
    render_page,
)
from service.vault.encryption import Scope

services_router = keyed_operations("Status page services", prefix="/v1/status-pages/services")
router = keyed_operations("Status pages", prefix="/v1/status-pages")

ServiceId = Annotated[str, Path(alias="serviceId", pattern=NO_NUL, max_length=200)]
PageId = Annotated[str, Path(alias="statusPageId", pattern=NO_NUL, max_length=200)]
_SERVICE: Final = "/{serviceId}"
_PAGE: Final = "/{statusPageId}"
_MOST_INCIDENTS: Final = 20
_SERVICE_READER: Final = TypeAdapter(ServiceWrite)
_PAGE_READER: Final = TypeAdapter(StatusPageWrite)


@services_router.get("", responses=answers(200, ServiceList, "A part of them, oldest first."))
async def list_status_page_services(
    caller: CallerDep,
    backend: BackendDep,
    cursor: CursorDep,
    *,
    paginated: Annotated[bool, Query(description="False: all of them in one answer.")] = True,
) -> Response:
    """List services of status pages."""
    limit = cursor.one_more if paginated else None
    after = cursor.after if paginated else None
    rows = await backend.database.read(
        lambda c: store.list_services(c, caller.account_id, limit=limit, after=after)
    )
    if not paginated:
        entries = [render_service(row).model_dump(mode="json") for row in rows]
        return json({"length": len(entries), "entries": entries, "nextId": None})
    return cursor.answer(
        rows, lambda row: render_service(row).model_dump(mode="json"), lambda row: row.id
    )


@services_router.post("", responses=answers(200, ServiceShown, "The service."))
async def create_status_page_service(
    creating: CreateDep, body: Annotated[ServiceWrite, Body()]
) -> Response:
    """Create a service, which cards show and incidents touch."""
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        made = service_changes.create(connection, scope, body)
        answer = json_model(render_service(made), headers=ignored)
        return Changed(answer=answer, resource_id=made.id, fields=sent_fields(body))

    return await creating.make(change)


@services_router.get(_SERVICE, responses=answers(200, ServiceShown, "The service.", 404))
async def read_status_page_service(
    service_id: ServiceId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a service of status pages."""
    row = await backend.database.read(lambda c: find_service(c, caller.account_id, service_id))
    return json_model(render_service(row))


@services_router.put(
    _SERVICE,
    responses=answers(200, ServiceShown, "The service.", 404),
    openapi_extra=describe_change(ServiceWrite),
)
async def replace_status_page_service(
    service_id: ServiceId, changing: ChangeDep, sent: PartialBody
) -> Response:
    """Rename a service of status pages."""

    def change(connection: Connection, scope: Scope) -> Changed:
        before = find_service(connection, scope.account_id, service_id)
        body = complete_body(_SERVICE_READER, sent, {"name": before.name})
        after = service_changes.rename(connection, scope, service_id, body)
        answer = json_model(render_service(after), headers=ignored_header(sent, body))
        fields = changed_fields({"name": before.name}, {"name": after.name})
        return Changed(answer=answer, resource_id=service_id, fields=fields)

    return await changing.make(change)


@services_router.delete(
    _SERVICE, status_code=204, responses=answers(204, None, "Deleted.", 404, 409)
)
async def delete_status_page_service(service_id: ServiceId, changing: ChangeDep) -> Response:
    """Delete a service; cards and past incidents lose it. Refused while an incident touches it."""
    return await changing.delete(
        service_id, lambda c, scope: service_changes.delete(c, scope, service_id)
    )


@router.get("", responses=answers(200, StatusPageList, "A part of them, oldest first."))
async def list_status_pages(caller: CallerDep, backend: BackendDep, cursor: CursorDep) -> Response:
    """List status pages."""

    def query(connection: Connection) -> list[dict[str, Any]]:
        found = store.list_page(
            connection, caller.account_id, limit=cursor.one_more, after=cursor.after
        )
        now_ms = backend.clock.now_ms(connection)
        return [_show(connection, page, now_ms=now_ms) for page in found]

    shown = await backend.database.read(query)
    return cursor.answer(shown, lambda one: one, lambda one: str(one["id"]))


@router.post("", status_code=201, responses=answers(201, StatusPageShown, "The page.", 409))
async def create_status_page(
    creating: CreateDep, body: Annotated[StatusPageWrite, Body()]
) -> Response:
    """Create a status page. A private one gets a key, which only this answer holds."""
    ignored = await creating.ignored_fields(body)
    key = page_changes.new_key(creating.backend.pepper)

    def change(connection: Connection, scope: Scope) -> Changed:
        page, new_keys = page_changes.create(connection, scope, body, key=key)
        shown = _show(connection, page, now_ms=scope.now_ms, raw_keys=new_keys)
        answer = json(shown, status=201, headers=ignored)
        return Changed(answer=answer, resource_id=page.id, fields=sent_fields(body))

    return await creating.make(change)


@router.get(_PAGE, responses=answers(200, StatusPageShown, "The page.", 404))
async def read_status_page(page_id: PageId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read a status page."""

    def query(connection: Connection) -> dict[str, Any]:
        page = find(connection, caller.account_id, page_id)
        return _show(connection, page, now_ms=backend.clock.now_ms(connection))

    return json(await backend.database.read(query))


@router.put(
    _PAGE,
    responses=answers(200, StatusPageShown, "The page.", 404, 409),
    openapi_extra=describe_change(StatusPageWrite),
)
async def replace_status_page(page_id: PageId, changing: ChangeDep, sent: PartialBody) -> Response:
    """Change a status page; what is omitted stays."""
    key = page_changes.new_key(changing.backend.pepper)

    def change(connection: Connection, scope: Scope) -> Changed:
        before = _show(connection, find(connection, scope.account_id, page_id), now_ms=scope.now_ms)
        body = complete_body(_PAGE_READER, sent, before)
        page, new_keys = page_changes.replace(connection, scope, page_id, body, key=key)
        fields = changed_fields(before, _show(connection, page, now_ms=scope.now_ms))
        shown = _show(connection, page, now_ms=scope.now_ms, raw_keys=new_keys)
        answer = json(shown, headers=ignored_header(sent, body))
        return Changed(answer=answer, resource_id=page_id, fields=fields)

    return await changing.make(change)


@router.delete(_PAGE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_status_page(page_id: PageId, changing: ChangeDep) -> Response:
    """Delete a status page and its subscriptions; services and incidents stay."""
    return await changing.delete(page_id, lambda c, scope: page_changes.delete(c, scope, page_id))


@router.post(
    _PAGE + "/keys", status_code=201, responses=answers(201, StatusPageShown, "The page.", 404, 409)
)
async def create_status_page_key(page_id: PageId, creating: CreateDep) -> Response:
    """Give a private status page another key; its last one opens it no more."""
    key = page_changes.new_key(creating.backend.pepper)

    def change(connection: Connection, scope: Scope) -> Changed:
        page, new_keys = page_changes.replace_key(connection, scope, page_id, key=key)
        shown = _show(connection, page, now_ms=scope.now_ms, raw_keys=new_keys)
        return Changed(answer=json(shown, status=201), resource_id=page_id, fields=("keys",))

    return await creating.make(change)


def _show(
    connection: Connection,
    page: StatusPage,
    *,
    now_ms: int,
    raw_keys: Mapping[str, str] = NO_KEYS,
) -> dict[str, Any]:
    ids = [one.id for one in page.list_services()]
    found = incidents.list_of_services(connection, page.account_id, ids, limit=_MOST_INCIDENTS)
    shown = show_all(connection, page.account_id, found, now_ms=now_ms)
    return render_page(page, shown, raw_keys=raw_keys)
