"""`/checks/try`: run what stands in the form of a check once, without saving it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.evidence import HttpEvidence
from contract.result import Evidence, Outcome
from service.http.errors import NotFoundError
from service.results import actions as results
from service.results import assets
from service.results.assets import Asset
from service.results.model import StoredResult
from service.sessions import actions as sessions
from service.web.api_calls import ApiAnswer
from service.web.check.run_progress import PlaceProgress, RunProgress, find_progress
from service.web.form_data import read_form
from service.web.forms.api_problems import divide
from service.web.forms.resource_pages import read_sent
from service.web.page_routing import Pages
from service.web.resources.check_forms import CHECKS
from service.web.result.message_bodies import format_json
from service.web.result.result_page import describe, say_actual
from service.web.result.run_files import File, describe_files, send_file
from service.web.result.timeline import draw_phases
from service.web.result.trace_page import Around, explain_absence, frame_trace
from service.web.visit import Visit

_JOB: Final = "checkRunJobs[0]"
_UNPROCESSABLE: Final = 422
_CALLED: Final = "check"
"""What the form calls its check."""
_MOST_SHOWN: Final = 4_000
_UPLOAD_MS: Final = 60_000
"""A file that has not arrived is taken to be on its way for this long after its result."""
_NAME: Final = "New check"
"""What a check is called as long as nobody has named it."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """What the button sends, and what came of it."""
    one = _path("{session}")
    return (
        pages.change("/checks/try", _start),
        *(pages.change(f"{path}/stop", _stop) for path in (one, f"{one}/at/{{place}}")),
        *(
            pages.show(f"{path}{rest}", page)
            for path in (one, f"{one}/at/{{place}}")
            for rest, page in (
                ("", _show),
                ("/files/{name}", _serve_file),
                ("/traces/{name}", _show_trace),
            )
        ),
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
    named = {"name": sent.body.get("name") or _NAME, "logicalId": _CALLED}
    job = {**sent.body, "checkType": form.kind, **named}
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
    session_id = str(answer.body["sequenceIds"][_CALLED])
    return await _answer(visit, session_id) if _is_part(visit) else visit.go(_path(session_id))


async def _show(visit: Visit) -> Response:
    return await _answer(visit, str(visit.request.path_params["session"]))


async def _stop(visit: Visit) -> Response:
    """Drop the run if it waits, and have it stopped if it goes on."""
    session_id = str(visit.request.path_params["session"])
    session = await visit.read(lambda c: sessions.find(c, visit.account_id, session_id))
    if session.test is None:
        raise NotFoundError(f"There is no test session {session_id}.")
    path = f"/v1/test-sessions/{session.test.test_session_id}/cancel"
    answer = await visit.call(f"POST {path}", {"sequenceId": session_id})
    # One that has ended meanwhile is refused, and shows how it ended.
    if answer.is_error and not (await _find(visit)).progress.is_over:
        raise answer.refusal
    if _is_part(visit):
        return await _answer(visit, session_id)
    return visit.go(_path(session_id, visit.request.path_params.get("place")))


def _path(session_id: str, place: str | None = None) -> str:
    """`place`: the location of the run. None: its only one."""
    at = "" if place is None else f"/at/{quote(place, safe='')}"
    return f"/checks/try/{session_id}{at}"


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


@dataclass(frozen=True, slots=True)
class _Tried:
    """A run of a form, as far as it is."""

    name: str
    progress: RunProgress
    place: PlaceProgress
    stored: StoredResult | None
    """None: it has not ended."""
    files: tuple[Asset, ...]
    now_ms: int


async def _find(visit: Visit) -> _Tried:
    """The run that an address names.

    Raises:
        NotFoundError: there is none of the account's own.
    """
    session_id = str(visit.request.path_params["session"])
    return await visit.read(lambda c: _read_tried(c, visit, session_id))


def _read_tried(connection: Connection, visit: Visit, session_id: str) -> _Tried:
    session = sessions.find(connection, visit.account_id, session_id)
    progress = find_progress(connection, visit.account_id, session.check_id, session_id)
    if not session.is_test or progress is None:
        raise NotFoundError(f"There is no test session {session_id}.")
    place = _choose(progress, visit.request.path_params.get("place"))
    stored = results.find(connection, session.check_id, place.run.id) if place.run else None
    files = assets.assets_of(connection, visit.account_id, stored) if stored else ()
    return _Tried(session.name, progress, place, stored, files, visit.now_ms(connection))


def _choose(progress: RunProgress, slug: str | None) -> PlaceProgress:
    """The run at a location. A copy of a check may run at several; a form is tried at one.

    Raises:
        NotFoundError: it does not run there.
    """
    for one in progress.places:
        if slug in (None, one.location):
            return one
    raise NotFoundError(f"It does not run at {slug}.")


async def _answer(visit: Visit, session_id: str) -> Response:
    """How far the run is; asked for again until it has ended."""
    tried = await visit.read(lambda c: _read_tried(c, visit, session_id))
    stored, here = tried.stored, _path(session_id, visit.request.path_params.get("place"))
    outcome = stored.detail.outcome if stored and stored.detail else None
    files = await describe_files(visit.backend.artifacts, tried.files, at=here)
    return visit.page(
        "try_result.html" if _is_part(visit) else "try.html",
        progress=tried.progress,
        place=tried.place,
        name=tried.name,
        now_ms=tried.now_ms,
        here=here,
        is_part=_is_part(visit),
        problems=(),
        **_describe(outcome),
        files=[one for one in files if one.kind != "trace"],
        traces=[one for one in files if one.kind == "trace"],
        no_viewer=explain_absence(visit),
        is_uploading=_is_uploading(tried, files),
    )


def _is_uploading(tried: _Tried, files: Sequence[File]) -> bool:
    """Whether files may still be on their way: agents send them after the result."""
    if tried.stored is None or all(one.path for one in files):
        return False
    return tried.now_ms - tried.stored.created_ms < _UPLOAD_MS


async def _serve_file(visit: Visit) -> Response:
    """One file of the run."""
    tried = await _find(visit)
    return await send_file(visit, assets.find_asset(tried.files, visit.request.path_params["name"]))


async def _show_trace(visit: Visit) -> Response:
    """A trace of the run, in the viewer."""
    tried = await _find(visit)
    asset = assets.find_asset(tried.files, visit.request.path_params["name"])
    here = _path(visit.request.path_params["session"], visit.request.path_params.get("place"))
    started_ms = tried.stored.started_ms if tried.stored else tried.now_ms
    return await frame_trace(visit, asset, Around(tried.name, here, here, started_ms))


def _describe(outcome: Outcome | None) -> dict[str, Any]:
    """What was seen, as far as it helps to get a check right."""
    if outcome is None:
        return {"assertions": (), "phases": (), "response": None, "log": ()}
    return {
        "assertions": [(one, describe(one), say_actual(one)) for one in outcome.assertions],
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
