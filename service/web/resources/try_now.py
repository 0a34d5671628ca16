"""`/checks/try`: run what stands in the form of a check once, without saving it."""

from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.assertions import WITHOUT_TARGET
from contract.evidence import HttpEvidence
from contract.result import Evidence, Outcome
from service.http.errors import NotFoundError
from service.results import actions as results
from service.sessions import actions as sessions
from service.web.api_calls import ApiAnswer
from service.web.check.run_progress import find_progress
from service.web.form_data import read_form
from service.web.forms.api_problems import divide
from service.web.forms.resource_pages import read_sent
from service.web.page_routing import Pages
from service.web.resources.check_forms import CHECKS
from service.web.result.message_bodies import format_json
from service.web.result.result_page import COMPARISONS
from service.web.result.timeline import draw_phases
from service.web.visit import Visit

_JOB: Final = "checkRunJobs[0]"
_UNPROCESSABLE: Final = 422
_MOST_SHOWN: Final = 4_000
_NAME: Final = "New check"
"""What a check is called as long as nobody has named it."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """What the button sends, and what came of it."""
    return (
        pages.change("/checks/try", _start),
        pages.show("/checks/try/{session}", _show),
    )


async def _start(visit: Visit) -> Response:
    data, query = await read_form(visit.request), visit.request.query_params
    form = CHECKS.form_of(query.get("kind", ""))
    if form is None:
        raise NotFoundError("There is no such kind of check.")
    check_id = query.get("id")
    path = f"/v1/checks/{quote(check_id, safe='')}" if check_id else ""
    stored = CHECKS.show(await visit.find(path)) if path else None
    sent = await read_sent(visit, CHECKS, form, stored)
    if sent.unreadable:
        return _refuse(visit, {one.path: f"This {one.sentence}" for one in sent.unreadable})
    job = {**sent.body, "checkType": form.kind, "name": sent.body.get("name") or _NAME}
    answer = await visit.call(
        "POST /v1/test-sessions/run",
        {
            "checkRunJobs": [job],
            "runLocation": {"type": "PRIVATE", "slugName": data.text("#place")},
            **({"hiddenValuesOf": check_id} if check_id else {}),
        },
    )
    if answer.is_error:
        return _refuse(visit, divide(_strip_job(answer)))
    session_id = str(answer.body["testSessionId"])
    return await _answer(visit, session_id) if _is_part(visit) else visit.go(_path(session_id))


async def _show(visit: Visit) -> Response:
    return await _answer(visit, str(visit.request.path_params["session"]))


def _path(session_id: str) -> str:
    return f"/checks/try/{session_id}"


def _is_part(visit: Visit) -> bool:
    return visit.request.headers.get("hx-request") == "true"


def _strip_job(answer: ApiAnswer) -> ApiAnswer:
    """The refusal of a run, with its fields named as those of the check."""
    keys = [key.removeprefix(f"{_JOB}.") for key in answer.wrong_fields]
    validation = {**answer.body.get("validation", {}), "keys": keys}
    message = answer.message.replace(f'"{_JOB}.', '"')
    body = {**answer.body, "message": message, "validation": validation}
    return ApiAnswer(status=answer.status, body=body)


def _refuse(visit: Visit, problems: Any) -> Response:
    """Say why nothing runs, beside the form or on a page of its own."""
    return visit.page(
        "try_result.html" if _is_part(visit) else "try.html",
        status=_UNPROCESSABLE,
        name="",
        problems=list(problems.values()),
        progress=None,
    )


async def _answer(visit: Visit, session_id: str) -> Response:
    """How far the run is; asked for again until it has ended."""

    def read(connection: Connection) -> dict[str, Any]:
        session = sessions.find(connection, visit.account_id, session_id)
        progress = find_progress(connection, visit.account_id, session.check_id, session_id)
        if not session.is_test or progress is None:
            raise NotFoundError(f"There is no test session {session_id}.")
        (place,) = progress.places
        stored = results.find(connection, session.check_id, place.run.id) if place.run else None
        outcome = stored.detail.outcome if stored and stored.detail else None
        return {
            "progress": progress,
            "place": place,
            "name": session.name,
            "now_ms": visit.now_ms(connection),
            **_describe(outcome),
        }

    values = await visit.read(read)
    template = "try_result.html" if _is_part(visit) else "try.html"
    return visit.page(template, **values, here=_path(session_id), problems=())


def _describe(outcome: Outcome | None) -> dict[str, Any]:
    """What was seen, as far as it helps to get a check right."""
    if outcome is None:
        return {"assertions": (), "phases": (), "response": None, "log": ()}
    return {
        "assertions": [
            (one, COMPARISONS[one.comparison], one.comparison not in WITHOUT_TARGET)
            for one in outcome.assertions
        ],
        "phases": draw_phases(outcome.timings),
        "response": _read_response(outcome.evidence),
        "log": outcome.log,
    }


def _read_response(evidence: Evidence | None) -> dict[str, Any] | None:
    """What an HTTP server answered. None: the check asks none, or it did not answer."""
    seen = evidence.response if isinstance(evidence, HttpEvidence) else None
    if seen is None:
        return None
    body = seen.body if seen.body_encoding == "utf-8" else ""
    body = (format_json(body) or body)[:_MOST_SHOWN]
    return {"status": seen.status_code, "headers": seen.headers, "body": body}
