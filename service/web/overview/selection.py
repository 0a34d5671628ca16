"""What is done with the checks that somebody selected in a list: run, pause, mute them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from service.http.errors import InvalidError
from service.web.api_calls import ApiAnswer
from service.web.check.check_changes import change_field
from service.web.check.ranges import USUAL
from service.web.form_data import read_form
from service.web.overview.list_address import HOME, read_address
from service.web.page_routing import Pages
from service.web.visit import Visit
from service.web.words import format_plural

_MOST: Final = 500
"""The most checks that are changed at once; a list that was scrolled far can show more."""
_RUN: Final = "run"
_CHANGES: Final[Mapping[str, tuple[str, bool, str]]] = {
    "pause": ("activated", False, "paused"),
    "resume": ("activated", True, "resumed"),
    "mute": ("muted", True, "muted"),
    "unmute": ("muted", False, "unmuted"),
}
"""What a button changes: a field, its value, and what checks are then."""
_OF_GROUP: Final = re.compile(r"/groups/\d{1,15}", re.ASCII)
_REFUSED: Final = 422


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """What the buttons of a selection send."""
    return (pages.change("/overview/selected", _act),)


async def _act(visit: Visit) -> Response:
    """Do it; says so in one line to a script, and shows the list again to whoever has none."""
    form = await read_form(visit.request)
    done, check_ids = form.text("do"), list(dict.fromkeys(filter(None, form.all("check"))))
    if done != _RUN and done not in _CHANGES:
        raise InvalidError("Choose what to do: run, pause, resume, mute or unmute.", keys=("do",))
    if not check_ids:
        line, is_refused = "Select checks first.", True
    elif len(check_ids) > _MOST:
        line, is_refused = f"Select at most {_MOST} checks.", True
    elif done == _RUN:
        target = {"target": {"checkId": check_ids}}
        answer = await visit.call("POST /v1/check-sessions/trigger", target)
        line, is_refused = describe_started(answer), answer.is_error
    else:
        line, is_refused = await _change(visit, check_ids, done)
    if visit.request.headers.get("accept") == "application/json":
        return JSONResponse({"line": line, "isRefused": is_refused})
    home = form.text("home") if _OF_GROUP.fullmatch(form.text("home")) else HOME
    asked = read_address(QueryParams(form.text("list")), usual=USUAL)
    back = home + asked.address(page=asked.page)
    if is_refused:
        return visit.page("check_refusal.html", status=_REFUSED, message=line, back=back)
    return visit.go(back)


async def _change(visit: Visit, check_ids: Sequence[str], done: str) -> tuple[str, bool]:
    """Change each check as its own form does; what came of it, and whether any was refused."""
    field, value, word = _CHANGES[done]
    refusals: list[str] = []
    for check_id in check_ids:
        answer = await change_field(visit, check_id, field, value)
        if answer.is_error:
            refusals.append(answer.message)
    changed = len(check_ids) - len(refusals)
    line = f"{format_plural(changed, 'check')} {word}." if changed else ""
    if refusals:
        line += f" {format_plural(len(refusals), 'check')} not {word}: {refusals[0]}"
    return line.strip(), bool(refusals)


def describe_started(answer: ApiAnswer) -> str:
    """What came of a wish to run several checks."""
    if answer.is_error:
        return answer.message
    line = f"{format_plural(len(answer.body['sessions']), 'check')} started; results follow here."
    left = len(answer.body.get("notRun", ()))
    return f"{line} {left} not started: paused, or a heartbeat." if left else line
