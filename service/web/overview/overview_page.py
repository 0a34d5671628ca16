"""`/`: all checks as a list: what is in trouble first, then by name."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from markupsafe import escape
from sqlalchemy import Connection
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from service.locations import actions as locations
from service.maintenance import actions as maintenance
from service.overview import actions as overview
from service.overview.model import Grouping
from service.web.check.ranges import USUAL
from service.web.form_data import read_form
from service.web.overview.check_list import (
    PAGE_ROWS,
    Listed,
    complete,
    list_values,
    read_asked,
    read_list,
)
from service.web.overview.list_address import RANGE_WORDS, TYPES, Asked, read_address, type_word
from service.web.overview.selection import describe_started
from service.web.page_routing import Pages
from service.web.rendering import html_response
from service.web.visit import Visit
from service.web.words import format_duration

_MOST_TAGS: Final = 200


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The overview."""
    return (
        pages.show("/", _show),
        pages.show("/overview/list", _show_list),
        pages.change("/overview/run", _run),
        pages.change("/overview/run-listed", _run_listed),
        pages.show("/overview/run/{session}", _wait),
    )


async def _show(visit: Visit) -> Response:
    def read(
        connection: Connection,
    ) -> tuple[Asked, Listed, Sequence[str], Sequence[tuple[str, str]]]:
        account_id, asked = visit.account_id, read_asked(connection, visit)
        tags = overview.list_tags(connection, account_id, most=_MOST_TAGS)
        places = [(one.slug_name, one.name) for one in locations.list_all(connection, account_id)]
        return asked, read_list(connection, visit, asked), tags, places

    asked, listed, tags, places = await visit.read(read)
    return visit.page(
        "overview.html",
        **list_values(asked, listed, is_part=False),
        live="/live",
        tags=tags,
        places=places,
        types=[(kind.value, type_word(kind)) for kind in TYPES],
        ranges=RANGE_WORDS,
        groupings=list(Grouping),
        base_url=visit.base_url,
    )


async def _show_list(visit: Visit) -> Response:
    """The list alone: another page of it, or as it is now."""

    def read(connection: Connection) -> tuple[Asked, Listed]:
        asked = read_asked(connection, visit)
        return asked, read_list(connection, visit, asked)

    asked, listed = await visit.read(read)
    answer = visit.page("overview_list.html", **list_values(asked, listed, is_part=True))
    if asked.page == 1:
        answer.headers["hx-push-url"] = visit.renderer.url("/") + asked.address()
    return answer


async def _run(visit: Visit) -> Response:
    """Run a check now; says so in one line, and where to wait for its end."""
    form = await read_form(visit.request)
    check_id = form.text("check")
    body = {"target": {"checkId": [check_id]}}
    answer = await visit.call("POST /v1/check-sessions/trigger", body)
    if answer.is_error:
        return JSONResponse({"line": answer.message})
    session = answer.body["sessions"][0]
    name, session_id = session["name"], session["checkSessionId"]
    return JSONResponse({"line": f"{name} runs now.", "next": f"/overview/run/{session_id}"})


async def _run_listed(visit: Visit) -> Response:
    """Run the checks of a filtered list now, as far as its first page goes."""
    query = QueryParams((await read_form(visit.request)).text("list"))

    def read(connection: Connection) -> tuple[str, list[str]]:
        account_id, now_ms = visit.account_id, visit.now_ms(connection)
        asked = read_address(query, usual=USUAL)
        opened = maintenance.list_open(connection, account_id, now_ms=now_ms)
        wanted, page = complete(asked.wanted, opened), (PAGE_ROWS, 0)
        rows = overview.list_rows(connection, account_id, wanted, now_ms=now_ms, page=page)
        return asked.address(), [row.id for row in rows]

    address, check_ids = await visit.read(read)
    wanted = {"target": {"checkId": check_ids}}
    answer = await visit.call("POST /v1/check-sessions/trigger", wanted)
    if visit.request.headers.get("hx-request") == "true":
        return html_response(visit.request, str(escape(describe_started(answer))))
    if answer.is_error:
        return visit.page(
            "check_refusal.html", status=answer.status, message=answer.message, back=f"/{address}"
        )
    return visit.go(f"/{address}")


async def _wait(visit: Visit) -> Response:
    """How a run that was asked for ended."""
    session_id = quote(visit.request.path_params["session"], safe="")
    answer = await visit.call(f"GET /v1/check-sessions/{session_id}/completion")
    if answer.status == HTTPStatus.REQUEST_TIMEOUT:
        return JSONResponse({"line": "It still runs.", "next": f"/overview/run/{session_id}"})
    if answer.is_error:
        return JSONResponse({"line": answer.message})
    name, status = answer.body["name"], answer.body["status"]
    took = format_duration(answer.body["timeElapsed"])
    return JSONResponse({"line": f"{name}: {status.lower().replace('_', ' ')} after {took}."})
