"""`/maintenance`: when checks run and nobody is alerted, and when that is next."""

from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.maintenance import actions as maintenance
from service.maintenance.actions import Upcoming
from service.maintenance.model import WindowWrite
from service.web.forms.resource_form import Document, Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.resources.listing import PAGE, ListPage, number_of, show_rows
from service.web.visit import Visit

_TIMES: Final = ("startsAt", "endsAt", "repeatEndsAt")


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list and the forms of maintenance windows."""
    return (pages.show("/maintenance", _show), *resource_routes(pages, WINDOWS))


async def _show(visit: Visit) -> Response:
    number = number_of(visit)

    def read(connection: Connection) -> tuple[tuple[Upcoming, ...], int]:
        now_ms = visit.now_ms(connection)
        found = maintenance.list_upcoming(
            connection,
            visit.account_id,
            now_ms=now_ms,
            limit=PAGE,
            offset=(number - 1) * PAGE,
        )
        return found, now_ms

    found, now_ms = await visit.read(read)
    page = ListPage(number, [{"upcoming": one} for one in found])
    return show_rows(visit, WINDOWS, page, "maintenance.html", now_ms=now_ms)


def show_local(stored: Document) -> Document:
    """A window with its times on the clock that it repeats by, as people think of them."""
    zone = ZoneInfo(stored["timeZone"])
    local = {name: _to_local(stored[name], zone) for name in _TIMES}
    return {**stored, **local}


def _to_local(text: str | None, zone: ZoneInfo) -> Any:
    """The time by a zone's clock; one that this clock shows twice keeps its zone."""
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    wall = at.astimezone(zone).replace(tzinfo=None, fold=0)
    is_clear = wall.replace(tzinfo=zone).astimezone(UTC) == at
    return wall.isoformat(timespec="milliseconds") if is_clear else text


WINDOWS: Final = Resource(
    path="/maintenance",
    noun="maintenance window",
    place="Maintenance",
    read="GET /v1/maintenance-windows/{id}",
    delete="DELETE /v1/maintenance-windows/{id}",
    forms=(
        Form(
            title="maintenance window",
            sentence="While it is open, checks go on running and nobody is alerted.",
            model=WindowWrite,
            create="POST /v1/maintenance-windows",
            replace="PUT /v1/maintenance-windows/{id}",
            sections=(
                Section(title="Basics", fields=("name", "tags")),
                Section(title="Time", fields=("startsAt", "endsAt", "timeZone")),
                Section(
                    title="Repetition",
                    fields=("repeatInterval", "repeatUnit", "repeatEndsAt", "rrule"),
                    hint="Empty: it is open once.",
                ),
            ),
            has_local_times=True,
        ),
    ),
    show=show_local,
    loss="A window that is open ends now, and people are alerted again.",
    placeholders={"name": "Database upgrade", "timeZone": "Europe/Berlin"},
)
