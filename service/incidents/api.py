"""`/v1/status-pages/incidents`: what happens to services, and what is said of it."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Body, Depends, Path
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.cursors import CursorDep
from service.http.dependencies import Backend, BackendDep
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
from service.http.routing import answers, json, keyed_operations
from service.http.schema import NO_NUL
from service.http.validation import ignored_header
from service.incidents import actions
from service.incidents.model import Incident
from service.incidents.schemas import (
    IncidentChange,
    IncidentList,
    IncidentShown,
    IncidentUpdateShown,
    IncidentUpdateWrite,
    IncidentWrite,
    dump,
    render_incident,
    render_update,
)
from service.status_pages import actions as status_pages
from service.vault.encryption import Scope

router = keyed_operations("Incidents", prefix="/v1/status-pages/incidents")

IncidentId = Annotated[str, Path(alias="incidentId", pattern=NO_NUL, max_length=200)]
UpdateId = Annotated[str, Path(alias="incidentUpdateId", pattern=NO_NUL, max_length=200)]
_ONE: Final = "/{incidentId}"
_UPDATES: Final = _ONE + "/incident-updates"
_UPDATE: Final = _UPDATES + "/{incidentUpdateId}"
_PUBLIC_DATE: Final = "publicIncidentUpdateDate"
_READER: Final = TypeAdapter(IncidentChange)
_UPDATE_READER: Final = TypeAdapter(IncidentUpdateWrite)


class _Reading:
    """A request that reads incidents of an account."""

    def __init__(self, caller: CallerDep, backend: BackendDep) -> None:
        self.account_id: str = caller.account_id
        self.backend: Backend = backend

    def show(self, connection: Connection, found: Sequence[Incident]) -> list[dict[str, Any]]:
        """Incidents as plain values."""
        now_ms = self.backend.clock.now_ms(connection)
        return show_all(connection, self.account_id, found, now_ms=now_ms)


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.get("", responses=answers(200, IncidentList, "A part of them, the newest first."))
async def list_incidents(reading: ReadingDep, cursor: CursorDep) -> Response:
    """List incidents, the newest first."""

    def query(connection: Connection) -> list[dict[str, Any]]:
        found = actions.list_page(
            connection, reading.account_id, limit=cursor.one_more, after=cursor.after
        )
        return reading.show(connection, found)

    shown = await reading.backend.database.read(query)
    return cursor.answer(shown, lambda one: one, lambda one: str(one["id"]))


@router.post("", status_code=201, responses=answers(201, IncidentShown, "The incident."))
async def create_incident(creating: CreateDep, body: Annotated[IncidentWrite, Body()]) -> Response:
    """Open an incident; subscribers of the pages that show its services can be notified."""
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        wanted = body.build()
        _require_services(connection, scope, wanted.service_ids)
        made = actions.open_incident(connection, scope.account_id, wanted, now_ms=scope.now_ms)
        for update in body.incident_updates:
            new = update.build(scope.now_ms)
            status_pages.publish(connection, made, new, scope.account_id, now_ms=scope.now_ms)
        answer = json(_show(connection, scope, made), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=made, fields=sent_fields(body))

    return await creating.make(change)


@router.get(_ONE, responses=answers(200, IncidentShown, "The incident.", 404))
async def read_incident(incident_id: IncidentId, reading: ReadingDep) -> Response:
    """Read an incident."""

    def query(connection: Connection) -> dict[str, Any]:
        found = actions.find(connection, reading.account_id, incident_id)
        return reading.show(connection, [found])[0]

    return json(await reading.backend.database.read(query))


@router.put(
    _ONE,
    responses=answers(200, IncidentShown, "The incident.", 404),
    openapi_extra=describe_change(IncidentWrite, but=("incidentUpdates",)),
)
async def replace_incident(
    incident_id: IncidentId, changing: ChangeDep, sent: PartialBody
) -> Response:
    """Change an incident's name, severity and services; what is omitted and its updates stay."""

    def change(connection: Connection, scope: Scope) -> Changed:
        before = actions.find(connection, scope.account_id, incident_id)
        seen = _show(connection, scope, incident_id)
        body = complete_body(_READER, sent, seen)
        wanted = body.build()
        _require_services(connection, scope, wanted.service_ids)
        actions.replace(connection, before, wanted, now_ms=scope.now_ms)
        shown = _show(connection, scope, incident_id)
        answer = json(shown, headers=ignored_header(sent, body))
        return Changed(answer=answer, resource_id=incident_id, fields=changed_fields(seen, shown))

    return await changing.make(change)


@router.delete(_ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_incident(incident_id: IncidentId, changing: ChangeDep) -> Response:
    """Delete an incident and its updates."""
    return await changing.delete(
        incident_id, lambda c, scope: actions.delete(c, scope.account_id, incident_id)
    )


@router.get(
    _UPDATES,
    responses=answers(200, list[IncidentUpdateShown], "The 100 newest, the newest first.", 404),
)
async def list_incident_updates(incident_id: IncidentId, reading: ReadingDep) -> Response:
    """List the 100 newest updates of an incident."""

    def query(connection: Connection) -> list[dict[str, Any]]:
        found = actions.find(connection, reading.account_id, incident_id)
        return [dump(render_update(one)) for one in actions.list_updates(connection, found)]

    return json(await reading.backend.database.read(query))


@router.post(_UPDATES, responses=answers(200, IncidentUpdateShown, "The update.", 404))
async def create_incident_update(
    incident_id: IncidentId, creating: CreateDep, body: Annotated[IncidentUpdateWrite, Body()]
) -> Response:
    """Add an update to an incident."""
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        found = actions.find(connection, scope.account_id, incident_id)
        new = body.build(scope.now_ms)
        made = status_pages.publish(
            connection, found.id, new, scope.account_id, now_ms=scope.now_ms
        )
        answer = json(dump(render_update(made)), headers=ignored)
        return Changed(answer=answer, resource_id=made.id, fields=sent_fields(body))

    return await creating.make(change)


@router.get(_UPDATE, responses=answers(200, IncidentUpdateShown, "The update.", 404))
async def read_incident_update(
    incident_id: IncidentId, update_id: UpdateId, reading: ReadingDep
) -> Response:
    """Read an update of an incident."""

    def query(connection: Connection) -> dict[str, Any]:
        found = actions.find(connection, reading.account_id, incident_id)
        return dump(render_update(actions.find_update(found, update_id)))

    return json(await reading.backend.database.read(query))


@router.put(
    _UPDATE,
    responses=answers(200, IncidentUpdateShown, "The update.", 404),
    openapi_extra=describe_change(IncidentUpdateWrite),
)
async def replace_incident_update(
    incident_id: IncidentId, update_id: UpdateId, changing: ChangeDep, sent: PartialBody
) -> Response:
    """Change an update; what is omitted stays.

    Subscribers are notified of it when `notifySubscribers` becomes true. Mails that wait
    follow a change of its public date, and are dropped when it becomes false.
    """

    def change(connection: Connection, scope: Scope) -> Changed:
        incident = actions.find(connection, scope.account_id, incident_id)
        before = actions.find_update(incident, update_id)
        seen = dump(render_update(before))
        # Its date stays by `kept_ms`, to the millisecond.
        kept = {name: value for name, value in seen.items() if name != _PUBLIC_DATE}
        body = complete_body(_UPDATE_READER, sent, kept)
        wanted = body.build(scope.now_ms, kept_ms=before.public_ms)
        actions.replace_update(connection, before, wanted, now_ms=scope.now_ms)
        incident = actions.find(connection, scope.account_id, incident_id)
        after = actions.find_update(incident, update_id)
        status_pages.change_mails(connection, incident, before, after, now_ms=scope.now_ms)
        shown = dump(render_update(after))
        answer = json(shown, headers=ignored_header(sent, body))
        return Changed(answer=answer, resource_id=update_id, fields=changed_fields(seen, shown))

    return await changing.make(change)


@router.delete(_UPDATE, status_code=204, responses=answers(204, None, "Deleted.", 404, 409))
async def delete_incident_update(
    incident_id: IncidentId, update_id: UpdateId, changing: ChangeDep
) -> Response:
    """Delete an update; refused where it is the only one of its incident."""

    def act(connection: Connection, scope: Scope) -> None:
        found = actions.find(connection, scope.account_id, incident_id)
        actions.delete_update(connection, found, update_id, scope.now_ms)

    return await changing.delete(update_id, act)


def show_all(
    connection: Connection, account_id: str, found: Sequence[Incident], *, now_ms: int
) -> list[dict[str, Any]]:
    """Incidents of an account as plain values."""
    ids = list({one for incident in found for one in incident.service_ids})
    services = status_pages.find_services(connection, account_id, ids)
    return [dump(render_incident(one, services, now_ms=now_ms)) for one in found]


def _show(connection: Connection, scope: Scope, incident_id: str) -> dict[str, Any]:
    found = actions.find(connection, scope.account_id, incident_id)
    return show_all(connection, scope.account_id, [found], now_ms=scope.now_ms)[0]


def _require_services(connection: Connection, scope: Scope, ids: Sequence[str]) -> None:
    status_pages.require_services(connection, scope.account_id, ids, field="services")
