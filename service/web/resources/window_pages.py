"""`/maintenance`: when checks run and nobody is alerted, and when that is next."""

from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.maintenance import actions as maintenance
from service.maintenance.actions import Upcoming
from service.maintenance.model import WindowRow, WindowWrite
from service.overview import actions as overview
from service.projects import rules as code
from service.web.forms.field_schema import Option, Options
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
    page = ListPage(
        number, [{"upcoming": one, "repeats": describe_repetition(one.window)} for one in found]
    )
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


_REPEATS: Final = (
    Option(None, "No"),
    Option("DAY", "Daily"),
    Option("WEEK", "Weekly"),
    Option("MONTH", "Monthly"),
)
_MOST_TAGS: Final = 40
"""More are typed, and not ticked."""


async def _options(visit: Visit, _form: Form) -> Options:
    zones = sorted(available_timezones() - {"UTC"})
    tags = await visit.read(lambda c: overview.list_tags(c, visit.account_id, most=_MOST_TAGS + 1))
    return {
        "repeatUnit": _REPEATS,
        "timeZone": tuple(Option(one, one) for one in ("UTC", *zones)),
        **(
            {"tags": tuple(Option(one, one) for one in tags)} if 0 < len(tags) <= _MOST_TAGS else {}
        ),
    }


async def _begin(_visit: Visit, _form: Form) -> Document:
    """A new window is announced unless whoever makes it does not want that."""
    return {"showOnStatusPages": True}


def _complete(body: Document) -> Document:
    """An interval counts with a unit alone, and a unit alone means each."""
    interval = body.get("repeatInterval") or 1
    return {**body, "repeatInterval": interval if body.get("repeatUnit") else None}


def describe_repetition(window: WindowRow) -> str:
    """How a window repeats, in words: `every 2 weeks`."""
    if window.rrule is not None:
        return f"by the rule {window.rrule}"
    if window.repeat_interval is None or window.repeat_unit is None:
        return "once"
    unit = window.repeat_unit.lower()
    each = unit if window.repeat_interval == 1 else f"{window.repeat_interval} {unit}s"
    return f"every {each}"


WINDOWS: Final = Resource(
    path="/maintenance",
    noun="maintenance window",
    place="Maintenance",
    code_types=(code.WINDOW,),
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
                Section(title="Basics", fields=("name", "tags", "showOnStatusPages")),
                Section(title="Time", fields=("startsAt", "endsAt", "timeZone")),
                Section(
                    title="Repetition", fields=("repeatUnit", "repeatInterval", "repeatEndsAt")
                ),
                Section(
                    title="Repetition by a rule",
                    fields=("rrule",),
                    hint="For what is neither daily, weekly nor monthly, such as the first Sunday"
                    " of each month.",
                    is_folded=True,
                ),
            ),
            has_local_times=True,
            send=_complete,
        ),
    ),
    options=_options,
    begin=_begin,
    show=show_local,
    loss="A window that is open ends now, and people are alerted again.",
    placeholders={"name": "Database upgrade", "rrule": "FREQ=MONTHLY;BYDAY=1SU"},
)
