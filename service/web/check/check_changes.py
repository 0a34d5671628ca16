"""What the buttons of a check's page do: run it, pause it, mute it."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.web.api_calls import ApiAnswer
from service.web.form_data import read_form
from service.web.page_routing import Pages
from service.web.visit import Visit


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """What the buttons send."""
    return (
        pages.change("/checks/{id}/run", _run),
        pages.change("/checks/{id}/pause", _pause),
        pages.change("/checks/{id}/mute", _mute),
        pages.change("/checks/{id}/errors/{group}/hide", _hide_error_group),
        pages.change("/checks/{id}/errors/{group}/show", _show_error_group),
    )


async def change_field(visit: Visit, check_id: str, field: str, value: object) -> ApiAnswer:
    """Change one field of a check, and leave all others as they are."""
    return await visit.call(f"PUT /v1/checks/{check_id}", {field: value})


async def _run(visit: Visit) -> Response:
    check_id = _check_id(visit)
    wanted = {"target": {"checkId": [check_id]}}
    answer = await visit.call("POST /v1/check-sessions/trigger", wanted)
    if answer.is_error:
        return _refuse(visit, check_id, answer)
    session_id = answer.body["sessions"][0]["checkSessionId"]
    return visit.go(f"/checks/{check_id}?run={session_id}")


async def _pause(visit: Visit) -> Response:
    return await _set(visit, "activated", is_on=False)


async def _mute(visit: Visit) -> Response:
    return await _set(visit, "muted", is_on=True)


async def _set(visit: Visit, field: str, *, is_on: bool) -> Response:
    """Change one field; `undo` in the form turns it round."""
    check_id = _check_id(visit)
    value = is_on != bool((await read_form(visit.request)).text("undo"))
    answer = await change_field(visit, check_id, field, value)
    if answer.is_error:
        return _refuse(visit, check_id, answer)
    return visit.go(f"/checks/{check_id}")


async def _hide_error_group(visit: Visit) -> Response:
    return await _change_error_group(visit, {"archivedUntilNextEvent": True})


async def _show_error_group(visit: Visit) -> Response:
    wanted = {"archivedUntilNextEvent": False, "archiveForEver": False}
    return await _change_error_group(visit, wanted)


async def _change_error_group(visit: Visit, wanted: dict[str, bool]) -> Response:
    check_id, group_id = _check_id(visit), visit.request.path_params["group"]
    answer = await visit.call(f"PATCH /v1/error-groups/{group_id}", wanted)
    if answer.is_error:
        return _refuse(visit, check_id, answer)
    return visit.go(f"/checks/{check_id}?tab=errors")


def _refuse(visit: Visit, check_id: str, answer: ApiAnswer) -> Response:
    return visit.page(
        "check_refusal.html",
        status=answer.status,
        message=answer.message,
        back=f"/checks/{check_id}",
    )


def _check_id(visit: Visit) -> str:
    return str(visit.request.path_params["id"])
