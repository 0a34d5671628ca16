"""`/checks/{id}`: how one check stands, and how it did over a range."""

import gzip
from typing import Any, Final

import msgspec
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.checks import CheckType
from service.checks import actions as checks
from service.checks.model import CheckRow
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.http.errors import NotFoundError
from service.locations import actions as locations
from service.maintenance import actions as maintenance
from service.maintenance.model import Occurrence
from service.projects import actions as projects
from service.projects.rules import CHECK
from service.web.check import alert_preview, check_changes
from service.web.check.charts import MOST_PLACES, Drawn, as_json, charts_of, draw, main_line_of
from service.web.check.events import list_events
from service.web.check.figures import find_figures
from service.web.check.heading import (
    AT_LOCATIONS,
    Heading,
    describe_schedule,
    describe_target,
    describe_type,
    explain_runs,
    find_heading,
)
from service.web.check.ranges import RANGES, Address, Range, read_range
from service.web.check.run_progress import find_progress
from service.web.check.sections import (
    STATUSES,
    list_alerts,
    list_error_groups,
    list_latest_runs,
    list_receivers,
    list_runs,
    read_settings,
    read_wanted_runs,
)
from service.web.page_routing import Pages
from service.web.visit import Visit

_TABS: Final = {"runs": "Runs", "errors": "Errors", "alerts": "Alerts", "settings": "Settings"}
_PACKED_FROM_BYTES: Final = 1_024
_NEWEST_FIRST: Final = -1


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page, and what it loads."""
    return (
        pages.show("/checks/{id}", _show),
        pages.show("/checks/{id}/series.json", _send_series),
        pages.show("/checks/{id}/numbers", _show_numbers),
        pages.show("/checks/{id}/sessions/{session}", _show_progress),
        *alert_preview.routes(pages),
        *check_changes.routes(pages),
    )


def address_of(request: Request, check_id: str, prefix: str, shown: Range) -> Address:
    """The address of a check's page, with the query of this request, and the range by its name."""
    named = {"range": shown.name} if shown.name else {}
    return Address(f"{prefix}/checks/{check_id}", {**request.query_params, **named})


async def _show(visit: Visit) -> Response:
    check_id = str(visit.request.path_params["id"])
    query = visit.request.query_params
    tab = query["tab"] if query.get("tab") in _TABS else "runs"

    def read(connection: Connection) -> dict[str, Any]:
        now_ms = visit.now_ms(connection)
        check = checks.find(connection, visit.account_id, check_id)
        shown = read_range(query, now_ms=now_ms, created_ms=check.created_ms)
        places = _places_of(check)
        group = groups.list_by_id(connection, visit.account_id).get(check.group_id or 0)
        charts = charts_of(CheckType(check.type))
        heading = find_heading(connection, check, now_ms=now_ms)
        run_id = query.get("run", "")
        progress = find_progress(connection, visit.account_id, check_id, run_id) if run_id else None
        return {
            "now_ms": now_ms,
            "check": check,
            "settings": check.effective,
            "heading": heading,
            "reason_location": _find_location(connection, visit, heading),
            "progress": progress,
            **_describe(check),
            "places": places,
            "maintained": _find_maintenance(connection, check, now_ms=now_ms),
            "group": group,
            "project": projects.find_owner(connection, visit.account_id, (CHECK,), check_id),
            "shown": shown,
            "figures": find_figures(connection, check, shown),
            "charts": charts,
            "latest": list_latest_runs(connection, check) if charts else (),
            "main_line": main_line_of(charts).label if charts else "",
            "place_charts": places[:MOST_PLACES] if len(places) > 1 and charts else (),
            "events": list_events(connection, check, shown),
            "tab": tab,
            **_read_section(connection, visit, check, (shown, tab), group=group),
        }

    values = await visit.read(read)
    if values["shown"].name:  # it ends now
        values["live"] = f"/live?check={check_id}"
    return visit.page(
        "check.html",
        **values,
        ranges=RANGES,
        tabs=_TABS,
        statuses=STATUSES,
        address=address_of(visit.request, check_id, visit.renderer.url(""), values["shown"]),
        ping_url=_ping_url(visit, values["check"]),
        is_run_on_demand=values["check"].type != CheckType.HEARTBEAT,
    )


def _describe(check: CheckRow) -> dict[str, str]:
    """What a check is, in words."""
    kind = CheckType(check.type)
    return {
        "type_name": describe_type(kind),
        "schedule": describe_schedule(kind, check.effective),
        "what_counts": explain_runs(kind, check.effective),
        "target": describe_target(kind, check.effective),
    }


def _read_section(
    connection: Connection,
    visit: Visit,
    check: CheckRow,
    wanted_part: tuple[Range, str],
    *,
    group: GroupRow | None,
) -> dict[str, Any]:
    shown, tab = wanted_part
    match tab:
        case "errors":
            return {
                "error_groups": list_error_groups(connection, check, is_hidden=False),
                "hidden_groups": list_error_groups(connection, check, is_hidden=True),
            }
        case "alerts":
            reader = read_settings(connection, check, group)
            return {
                "alerts": list_alerts(connection, check, shown),
                "receivers": list_receivers(connection, check),
                "preview": alert_preview.form_of(reader.alert_settings()[0]),
            }
        case "settings":
            return {
                "applied": read_settings(connection, check, group).read(),
                "receivers": list_receivers(connection, check),
            }
        case _:
            wanted = read_wanted_runs(visit.request.query_params)
            runs, has_more = list_runs(connection, check, shown, wanted)
            return {"runs": runs, "has_more": has_more, "wanted": wanted}


def _find_maintenance(connection: Connection, check: CheckRow, *, now_ms: int) -> Occurrence | None:
    """The maintenance window that applies to the check now. None: none does."""
    opened = maintenance.list_open(connection, check.account_id, now_ms=now_ms)
    return maintenance.find_applying(opened, check.effective["tags"])


def _find_location(connection: Connection, visit: Visit, heading: Heading) -> str:
    """The page that shows why a run had no agent. Empty: the reason is another one."""
    reason = heading.reason
    if reason is None or reason.cause not in AT_LOCATIONS:
        return ""
    known = locations.list_ids_by_slug(connection, visit.account_id).get(reason.location)
    return f"/locations/{known}" if known else "/locations"


def _places_of(check: CheckRow) -> tuple[str, ...]:
    settings = check.effective
    return tuple(dict.fromkeys((*settings["privateLocations"], *settings["locations"])))


def _ping_url(visit: Visit, check: CheckRow) -> str:
    """Where a heartbeat is pinged. Empty: it is none, or whoever looks may only read."""
    token = (check.doc.get("heartbeat") or {}).get("pingToken")
    if not token or not visit.visitor.caller.may_write:
        return ""
    return f"{visit.base_url}/ping/{token}"


async def _send_series(visit: Visit) -> Response:
    _, shown, drawn = await _draw(visit)
    content = msgspec.json.encode(as_json(drawn, shown))
    headers = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
    accepts = visit.request.headers.get("accept-encoding", "")
    if len(content) >= _PACKED_FROM_BYTES and "gzip" in accepts:
        content = gzip.compress(content, 5, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(content, headers=headers, media_type="application/json")


async def _show_numbers(visit: Visit) -> Response:
    check, shown, drawn = await _draw(visit)
    tables = [
        {
            "title": chart.title,
            "unit": chart.unit,
            "labels": [line.label for line in chart.lines],
            "rows": list(zip(drawn.begins, *columns[1:], strict=True))[::_NEWEST_FIRST],
        }
        for chart, columns in zip(drawn.charts, drawn.columns, strict=True)
    ]
    address = address_of(visit.request, check.id, visit.renderer.url(""), shown)
    is_part = visit.request.headers.get("hx-request") == "true"
    return visit.page(
        "check_numbers_part.html" if is_part else "check_numbers.html",
        check=check,
        shown=shown,
        tables=tables,
        address=address,
    )


async def _draw(visit: Visit) -> tuple[CheckRow, Range, Drawn]:
    check_id = str(visit.request.path_params["id"])

    def read(connection: Connection) -> tuple[CheckRow, Range, Drawn]:
        check = checks.find(connection, visit.account_id, check_id)
        query, now_ms = visit.request.query_params, visit.now_ms(connection)
        shown = read_range(query, now_ms=now_ms, created_ms=check.created_ms)
        with_places = len(_places_of(check)) > 1
        return check, shown, draw(connection, check, shown, with_places=with_places)

    return await visit.read(read)


async def _show_progress(visit: Visit) -> Response:
    """The part of the page that tells how far a run is; asked for again until it has ended."""
    check_id = str(visit.request.path_params["id"])
    session_id = str(visit.request.path_params["session"])

    def read(connection: Connection) -> dict[str, Any]:
        found = find_progress(connection, visit.account_id, check_id, session_id)
        if found is None:
            raise NotFoundError(f"The check {check_id} has no run {session_id}.")
        return {"progress": found, "now_ms": visit.now_ms(connection)}

    return visit.page(
        "check_progress.html",
        **await visit.read(read),
        check_id=check_id,
    )
