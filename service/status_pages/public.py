"""`/status-pages/{url}.json`: what everybody sees of a status page."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.http.dependencies import BackendDep
from service.http.routing import answers, open_operations
from service.http.schema import NO_NUL, ResponseModel
from service.http.times import Moment, format_time
from service.incidents import actions as incidents
from service.incidents.model import Incident, IncidentStatus, Severity
from service.incidents.rules import Course, find_course, find_status, list_public
from service.status_pages.actions import find_visible, list_maintenance
from service.status_pages.model import Card, Maintenance, StatusPage
from service.status_pages.rules import ServiceState, find_state
from service.status_pages.schemas import PageColors, PageTheme

router = open_operations("Status pages")

_PAST_MS: Final = 90 * 86_400_000
MOST_INCIDENTS: Final = 200
_FRESH_S: Final = 15
PageUrl = Annotated[str, Path(pattern=NO_NUL, max_length=100)]


class PublicService(ResponseModel):
    """A service as visitors see it."""

    id: str
    name: str
    state: ServiceState
    """The worst severity of the open incidents that touch it; OPERATIONAL without one."""


class PublicCard(ResponseModel):
    """A card as visitors see it."""

    name: str
    services: list[PublicService]


class PublicUpdate(ResponseModel):
    """An update as visitors see it."""

    status: IncidentStatus
    description: str
    date: Moment


class PublicIncident(ResponseModel):
    """An incident as visitors see it."""

    id: str
    name: str
    severity: Severity
    status: IncidentStatus
    """The status of its newest update."""
    service_ids: list[str]
    """Those services of the page that it touches."""
    started_at: Moment
    resolved_at: Moment | None
    """Null: it is open."""
    updates: list[PublicUpdate]
    """The newest first."""


class PublicMaintenance(ResponseModel):
    """Scheduled maintenance as visitors see it."""

    name: str
    service_ids: list[str]
    """The services of the page that it concerns."""
    starts_at: Moment
    ends_at: Moment


class PublicPage(ResponseModel):
    """A status page as visitors see it."""

    name: str
    url: str
    description: str | None
    custom_domain: str | None
    logo: str | None
    redirect_to: str | None
    favicon: str | None
    default_theme: PageTheme
    theme_colors: PageColors | None
    state: ServiceState
    """The worst state of its services."""
    cards: list[PublicCard]
    current_incidents: list[PublicIncident]
    """Those that are open, the newest first."""
    past_incidents: list[PublicIncident]
    """Those that were closed within 90 days, the newest first."""
    scheduled_maintenance: list[PublicMaintenance]
    """What goes on or begins within a week, the first to begin first."""


@router.get("/status-pages/{url}.json", responses=answers(200, PublicPage, "The page.", 400, 404))
async def read_public_status_page(url: PageUrl, request: Request, backend: BackendDep) -> Response:
    """Read what visitors see of a status page.

    A public page needs no key; a private one needs its own, as `Authorization: Bearer sp_…`. The
    answer has an ETag, which `If-None-Match` can name.
    """
    key = read_page_key(request)

    def query(connection: Connection) -> tuple[StatusPage, dict[str, Any]]:
        page = find_visible(connection, url, key=key, pepper=backend.pepper)
        ids = [one.id for one in page.list_services()]
        found = incidents.list_of_services(connection, page.account_id, ids, limit=MOST_INCIDENTS)
        now_ms = backend.clock.now_ms(connection)
        scheduled = list_maintenance(connection, page, now_ms=now_ms)
        return page, render_public(page, found, scheduled, now_ms=now_ms)

    page, shown = await backend.database.read(query)
    return _answer(request, msgspec.json.encode(shown), is_private=page.is_private)


def read_page_key(request: Request) -> str | None:
    """The key of a private page that a request carries. None: it carries none."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _answer(request: Request, body: bytes, *, is_private: bool) -> Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": etag, "vary": "authorization", "x-content-type-options": "nosniff"}
    if is_private:
        headers["cache-control"] = "private, no-cache"
    else:
        headers["cache-control"] = f"public, max-age={_FRESH_S}"
        headers["access-control-allow-origin"] = "*"
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def render_public(
    page: StatusPage,
    found: Sequence[Incident],
    scheduled: Sequence[Maintenance],
    *,
    now_ms: int,
) -> dict[str, Any]:
    """What visitors see of a page, of whose services `found` are the newest incidents.

    It changes only when something happens, so that its ETag stays.
    """
    courses = {one.id: find_course(one.updates, now_ms=now_ms) for one in found}
    ids = [one.id for one in page.list_services()]
    current: list[dict[str, Any]] = []
    past: list[dict[str, Any]] = []
    for one in found:
        course = courses[one.id]
        if course is None:
            continue
        if course.ended_ms is None:
            current.append(_render_incident(one, course, ids, now_ms=now_ms))
        elif course.ended_ms >= now_ms - _PAST_MS:
            past.append(_render_incident(one, course, ids, now_ms=now_ms))
    return {
        "name": page.name,
        "url": page.url,
        "customDomain": page.custom_domain,
        **page.look,
        "state": find_state(ids, found, now_ms=now_ms).value,
        "cards": [_render_card(card, found, now_ms=now_ms) for card in page.cards],
        "currentIncidents": current,
        "pastIncidents": past,
        "scheduledMaintenance": [_render_maintenance(one) for one in scheduled],
    }


def _render_maintenance(one: Maintenance) -> dict[str, Any]:
    return {
        "name": one.name,
        "serviceIds": list(one.service_ids),
        "startsAt": format_time(one.begins_ms),
        "endsAt": format_time(one.ends_ms),
    }


def _render_card(card: Card, found: Iterable[Incident], *, now_ms: int) -> dict[str, Any]:
    services = [
        {"id": one.id, "name": one.name, "state": find_state([one.id], found, now_ms=now_ms).value}
        for one in card.services
    ]
    return {"name": card.name, "services": services}


def _render_incident(
    incident: Incident, course: Course, ids: Sequence[str], *, now_ms: int
) -> dict[str, Any]:
    newest_first = reversed(list_public(incident.updates, now_ms=now_ms))
    return {
        "id": incident.id,
        "name": incident.name,
        "severity": incident.severity.value,
        "status": find_status(incident.updates, now_ms=now_ms).value,
        "serviceIds": [one for one in ids if one in incident.service_ids],
        "startedAt": format_time(course.began_ms),
        "resolvedAt": format_time(course.ended_ms),
        "updates": [
            {
                "status": one.status.value,
                "description": one.description,
                "date": format_time(one.public_ms),
            }
            for one in newest_first
        ],
    }
