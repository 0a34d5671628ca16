"""`/checks/{id}/bundle`: the code of a Playwright suite, sent as a file.

Before there is a check its id is `new`: what stands in its form comes along, and the form opens
again with it and with what was sent.
"""

from collections.abc import Sequence
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
from service.web.form_data import FormData, is_multipart, read_form
from service.web.forms.resource_pages import reopen
from service.web.page_routing import CSRF_FIELD, Pages
from service.web.resources.check_forms import CHECKS
from service.web.settings.recorded_change import require_writer
from service.web.visit import Visit

_NEW: Final = "new"
_UNPROCESSABLE: Final = 422
_SUITE: Final = next(one for one in CHECKS.forms if one.kind == CheckType.PLAYWRIGHT)
_FORM: Final = f"/checks/new?kind={CheckType.PLAYWRIGHT.value}"
_KIND: Final = "application/gzip"
_BACK: Final = "#back"
"""The field that asks for that form again."""
_OWN: Final = frozenset({CSRF_FIELD, _BACK})
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
    form, check_id = await read_form(visit.request), str(visit.request.path_params["id"])
    typed = [pair for pair in form.pairs if pair[0] not in _OWN] if check_id == _NEW else []
    if _BACK in form:
        return await reopen(visit, CHECKS, _SUITE, typed)
    if typed and not is_multipart(visit.request):  # the form of a check leads here
        return await _page(visit, problem=None, typed=typed)
    answer = await _send(visit, form)
    if isinstance(answer, ApiError):
        return await _page(visit, problem=answer, typed=typed)
    return await _use(visit, str(answer.body["codeBundlePath"]), typed)


async def _use(visit: Visit, sha256: str, typed: Sequence[tuple[str, str]]) -> Response:
    """Go on with a bundle that was sent: in the check, or in the form of a new one."""
    check_id = str(visit.request.path_params["id"])
    if typed:
        return await reopen(visit, CHECKS, _SUITE, [*typed, ("codeBundlePath", sha256)])
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


async def _page(
    visit: Visit, *, problem: ApiError | None, typed: Sequence[tuple[str, str]] = ()
) -> Response:
    check = await _find_check(visit)
    answer = visit.page(
        "check_bundle.html",
        status=_UNPROCESSABLE if problem else 200,
        check=check,
        bundle=await _find_bundle(visit, check),
        here=_here(visit),
        back=f"/checks/{quote(check['id'], safe='')}/edit" if check else _FORM,
        most_bytes=MAX_BUNDLE_BYTES,
        typed=typed,
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
