"""`/checks/{id}/bundle`: the code of a Playwright suite, sent as a file.

Before there is a check its id is `new`, and its form opens with what was sent.
"""

from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.checks import CheckType
from service.bundles.model import MAX_BUNDLE_BYTES
from service.http.errors import (
    ApiError,
    InvalidError,
    NoRoomError,
    NotFoundError,
    SlowBodyError,
    TooLargeError,
)
from service.web.api_calls import ApiAnswer, Content
from service.web.check.check_changes import change_field
from service.web.form_data import FormData, read_form
from service.web.page_routing import Pages
from service.web.settings.recorded_change import require_writer
from service.web.visit import Visit

_NEW: Final = "new"
_UNPROCESSABLE: Final = 422
_FORM: Final = f"/checks/new?kind={CheckType.PLAYWRIGHT.value}"
_KIND: Final = "application/gzip"
_NO_FILE: Final = "Choose the file of a bundle, a tar.gz."


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """What a check runs now, and what a new bundle is sent to."""
    return (
        pages.show("/checks/{id}/bundle", _show),
        pages.change("/checks/{id}/bundle", _upload),
    )


async def _show(visit: Visit) -> Response:
    return await _page(visit, problem=None)


async def _upload(visit: Visit) -> Response:
    require_writer(visit)
    await _find_check(visit)
    answer = await _send(visit, await read_form(visit.request))
    if isinstance(answer, ApiError):
        return await _page(visit, problem=answer)
    sha256 = answer.body["codeBundlePath"]
    check_id = str(visit.request.path_params["id"])
    if check_id == _NEW:
        return visit.go(f"{_FORM}&bundle={sha256}")
    changed = await change_field(visit, check_id, "codeBundlePath", sha256)
    if changed.is_error:
        return await _page(visit, problem=changed.refusal)
    return visit.go(_here(visit))


async def _send(visit: Visit, form: FormData) -> ApiAnswer | ApiError:
    """Send a file to the API under its hash, which is known once all of it was read."""
    if form.file is None:
        return InvalidError(_NO_FILE, keys=())
    try:
        async with visit.backend.bundles.spool(form.file) as spooled:
            content = Content(spooled.stream(), spooled.size_bytes, _KIND)
            answer = await visit.call(f"PUT /v1/code-bundles/{spooled.sha256}", content)
    except (InvalidError, TooLargeError, SlowBodyError, NoRoomError) as refusal:
        return refusal
    return answer.refusal if answer.is_error else answer


async def _page(visit: Visit, *, problem: ApiError | None) -> Response:
    check = await _find_check(visit)
    answer = visit.page(
        "check_bundle.html",
        status=_UNPROCESSABLE if problem else 200,
        check=check,
        bundle=await _find_bundle(visit, check),
        here=_here(visit),
        back=f"/checks/{quote(check['id'], safe='')}/edit" if check else _FORM,
        most_bytes=MAX_BUNDLE_BYTES,
        problem=problem.message if problem else "",
    )
    # What was not read of a file is not waited for.
    answer.headers.update(problem.headers if problem else {})
    return answer


async def _find_check(visit: Visit) -> Any:
    """The suite. None: it is not there yet."""
    check_id = str(visit.request.path_params["id"])
    if check_id == _NEW:
        return None
    check = await visit.find(f"/v1/checks/{quote(check_id, safe='')}")
    if check["checkType"] != CheckType.PLAYWRIGHT:
        raise NotFoundError("Only Playwright suites have a code bundle.")
    return check


async def _find_bundle(visit: Visit, check: Any) -> Any:
    """What the check runs now. None: there is no check, or its bundle is not known."""
    if check is None:
        return None
    answer = await visit.look(f"GET /v1/code-bundles/{check['codeBundlePath']}")
    return None if answer.is_error else answer.body


def _here(visit: Visit) -> str:
    return f"/checks/{quote(visit.request.path_params['id'], safe='')}/bundle"
