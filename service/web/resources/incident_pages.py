"""`/incidents`: what happens to services, and each update that visitors read."""

import re
from collections.abc import Mapping
from secrets import token_hex
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.checks import actions as checks
from service.checks.model import CheckName
from service.http.errors import NotFoundError
from service.incidents import actions as incidents
from service.incidents.model import IncidentStatus, Severity
from service.web.form_data import FormData, read_form
from service.web.forms import choices
from service.web.forms.api_problems import divide, summarize
from service.web.forms.deletion import Deletion, ask_to_delete
from service.web.forms.resource_form import Document, Resource
from service.web.forms.resource_pages import CHANGED, resource_routes
from service.web.page_routing import Pages
from service.web.states import State
from service.web.status_page.custom_domains import PREFIX
from service.web.status_page.history import WORD_OF
from service.web.visit import Visit
from service.web.words import format_iso

_API: Final = "/v1/status-pages"
_UNPROCESSABLE: Final = 422
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_RESOLVED_MEANWHILE: Final = (
    "It was resolved after you opened this page. Publish the update again to reopen it."
)
_RESOLUTION: Final = "This incident is resolved."
"""What visitors read if somebody resolves it without a word."""
_FIELD: Final = re.compile(r".*\.|\[\d+\]$")
"""What the path of a field has besides its name."""
STATES_OF_SEVERITIES: Final = {
    "CRITICAL": State.FAILING,
    "MAJOR": State.FAILING,
    "MEDIUM": State.DEGRADED,
    "MINOR": State.DEGRADED,
}


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """An incident, its forms, and those of its updates."""
    update = "/incidents/{id}/updates/{update}"
    return (
        pages.show("/incidents/new", _show_new),
        pages.change("/incidents/new", _create),
        pages.show("/incidents/{id}/edit", _show_edit),
        pages.change("/incidents/{id}/edit", _replace),
        *resource_routes(pages, INCIDENTS),
        pages.show("/incidents/{id}", _show_incident),
        pages.change("/incidents/{id}", _add_update),
        pages.show(update, _show_update),
        pages.change(update, _change_update),
        pages.show(f"{update}/delete", _show_update_deletion),
        pages.change(f"{update}/delete", _delete_update),
    )


async def _show_new(visit: Visit) -> Response:
    return await _new(visit, FormData(()), {})


async def _create(visit: Visit) -> Response:
    form = await read_form(visit.request)
    update = {
        "description": form.text("description"),
        "status": form.text("status"),
        "publicIncidentUpdateDate": _read_utc(form.text("at")),
        "notifySubscribers": "notify" in form,
    }
    body = {
        "name": form.text("name"),
        "severity": form.text("severity"),
        "services": [{"id": one} for one in form.all("service")],
        "incidentUpdates": [update],
    }
    answer = await visit.call(f"POST {_API}/incidents", body, once=form.text("once"))
    if answer.status == _FORBIDDEN:
        raise answer.refusal
    if answer.is_error:
        return await _new(visit, form, divide(answer))
    return visit.go(f"/incidents/{answer.body['id']}")


async def _new(visit: Visit, sent: FormData, problems: Mapping[str, str]) -> Response:
    """The form of an incident and its first update, with what was sent of it."""
    now_ms = await visit.read(visit.now_ms)
    return await _form(
        visit,
        sent,
        problems,
        incident=None,
        back="/status-pages",
        statuses=[one.value for one in IncidentStatus],
        now=format_iso(now_ms)[: len("2026-11-28T03:12")],
        sends_mails=visit.backend.sends_status_mails,
        once=token_hex(16),
    )


async def _form(
    visit: Visit, sent: FormData, problems: Mapping[str, str], **values: Any
) -> Response:
    """The fields that visitors read of an incident, with what is wrong in them."""
    whole = [problems[""]] if "" in problems else []
    return visit.page(
        "incident_form.html",
        status=_UNPROCESSABLE if problems else 200,
        services=await choices.list_services(visit),
        severities=[(one.value, WORD_OF[one]) for one in Severity],
        sent=sent,
        problems={_FIELD.sub("", path): sentence for path, sentence in problems.items()},
        problem=summarize(problems, whole) if problems else "",
        **values,
    )


async def _show_edit(visit: Visit) -> Response:
    incident = await visit.find(f"{_API}/incidents/{_id_of(visit)}")
    pairs = [("name", incident["name"]), ("severity", incident["severity"])]
    services = [("service", one["id"]) for one in incident["services"]]
    return await _edit(visit, incident, FormData([*pairs, *services]), {})


async def _replace(visit: Visit) -> Response:
    form = await read_form(visit.request)
    incident = await visit.find(f"{_API}/incidents/{_id_of(visit)}")
    if form.text("seen") != _version(incident):
        return await _edit(visit, incident, form, {"": CHANGED})
    chosen = form.all("service")
    stored = [one["id"] for one in incident["services"] if one["id"] in chosen]
    body = {
        "name": form.text("name"),
        "severity": form.text("severity"),
        "services": [{"id": one} for one in dict.fromkeys([*stored, *chosen])],
    }
    answer = await visit.call(f"PUT {_API}/incidents/{_id_of(visit)}", body)
    if answer.status in {_FORBIDDEN, _NOT_FOUND}:
        raise answer.refusal
    if answer.is_error:
        return await _edit(visit, incident, form, divide(answer))
    return visit.go(f"/incidents/{_id_of(visit)}")


async def _edit(
    visit: Visit, incident: Document, sent: FormData, problems: Mapping[str, str]
) -> Response:
    back = f"/incidents/{_id_of(visit)}"
    seen = _version(incident)
    return await _form(visit, sent, problems, incident=incident, back=back, seen=seen)


def _version(incident: Document) -> str:
    """Tells two versions of an incident apart, by what the form shows of it."""
    services = " ".join(one["id"] for one in incident["services"])
    return " ".join((incident["severity"], services, incident["name"])).strip()


async def _show_incident(visit: Visit) -> Response:
    return await _incident(visit, sent={}, problem="")


async def _add_update(visit: Visit) -> Response:
    form = await read_form(visit.request)
    body = {
        "description": form.text("description"),
        "status": form.text("status"),
        "notifySubscribers": "notify" in form,
    }
    if await _would_reopen(visit, form.text("seen"), body):
        return await _incident(visit, sent=body, problem=_RESOLVED_MEANWHILE)
    operation = f"POST {_API}/incidents/{_id_of(visit)}/incident-updates"
    answer = await visit.call(operation, body, once=form.text("once"))
    if answer.status in {_FORBIDDEN, _NOT_FOUND}:
        raise answer.refusal
    if answer.is_error:
        return await _incident(visit, sent=body, problem=answer.message)
    return visit.go(f"/incidents/{_id_of(visit)}")


async def _would_reopen(visit: Visit, seen: str, update: dict[str, Any]) -> bool:
    """Whether an incident that was resolved since the page was opened would be open again."""
    if not seen or IncidentStatus.RESOLVED.value in (seen, update["status"]):
        return False
    incident = await visit.find(f"{_API}/incidents/{_id_of(visit)}")
    return bool(incident["lastUpdateStatus"] == IncidentStatus.RESOLVED.value)


async def _show_update(visit: Visit) -> Response:
    return await _update(visit, sent={}, problem="")


async def _change_update(visit: Visit) -> Response:
    form = await read_form(visit.request)
    body = {
        "description": form.text("description"),
        "status": form.text("status"),
        "publicIncidentUpdateDate": _read_utc(form.text("at")),
        "notifySubscribers": "notify" in form,
    }
    answer = await visit.call(f"PUT {_update_path(visit)}", body)
    if answer.status in {_FORBIDDEN, _NOT_FOUND}:
        raise answer.refusal
    if answer.is_error:
        return await _update(visit, sent=body, problem=answer.message)
    return visit.go(f"/incidents/{_id_of(visit)}")


async def _show_update_deletion(visit: Visit) -> Response:
    return await _update_deletion(visit, problem="")


async def _delete_update(visit: Visit) -> Response:
    answer = await visit.call(f"DELETE {_update_path(visit)}")
    if answer.is_error and answer.status != _NOT_FOUND:
        return await _update_deletion(visit, problem=answer.message)
    return visit.go(f"/incidents/{_id_of(visit)}")


async def _update_deletion(visit: Visit, *, problem: str) -> Response:
    incident = await visit.find(f"{_API}/incidents/{_id_of(visit)}")
    stored = await visit.find(_update_path(visit))
    back = f"/incidents/{_id_of(visit)}"
    deletion = Deletion(
        noun="update",
        name=f"the update of {stored['publicIncidentUpdateDate'][:16].replace('T', ' ')} UTC",
        loss=f"\N{LEFT DOUBLE QUOTATION MARK}{stored['description']}\N{RIGHT DOUBLE QUOTATION MARK}"
        " is no longer shown to visitors; a mail that was sent stays sent.",
        place=incident["name"],
        list_path=back,
        back=f"{back}/updates/{visit.request.path_params['update']}",
    )
    return ask_to_delete(visit, deletion, problem=problem)


async def _update(visit: Visit, *, sent: dict[str, Any], problem: str) -> Response:
    incident = await visit.find(f"{_API}/incidents/{_id_of(visit)}")
    stored = await visit.find(_update_path(visit))
    return visit.page(
        "incident_update.html",
        status=_UNPROCESSABLE if problem else 200,
        incident=incident,
        statuses=[one.value for one in IncidentStatus],
        update={**stored, **sent},
        problem=problem,
        sends_mails=visit.backend.sends_status_mails,
    )


def _update_path(visit: Visit) -> str:
    update = quote(visit.request.path_params["update"], safe="")
    return f"{_API}/incidents/{_id_of(visit)}/incident-updates/{update}"


def _read_utc(text: str) -> str | None:
    """A time as a browser sends it. None: the field was emptied, and the time stays."""
    if not text:
        return None
    return text if text.endswith("Z") else f"{text}Z"


async def _incident(visit: Visit, *, sent: dict[str, Any], problem: str) -> Response:
    incident = await visit.find(f"{_API}/incidents/{_id_of(visit)}")

    def read(connection: Connection) -> tuple[str | None, CheckName | None]:
        check_id = incidents.find(connection, visit.account_id, incident["id"]).check_id
        try:
            return check_id, checks.find_name(connection, visit.account_id, check_id or "")
        except NotFoundError:
            return check_id, None

    check_id, check = await visit.read(read)
    return visit.page(
        "incident.html",
        is_of_check=check_id is not None,
        incident_check=check,
        status=_UNPROCESSABLE if problem else 200,
        incident=incident,
        state=STATES_OF_SEVERITIES[incident["severity"]],
        public_word=WORD_OF[Severity(incident["severity"])],
        pages=await _list_pages(visit, incident),
        resolution=_RESOLUTION,
        statuses=[one.value for one in IncidentStatus],
        chosen=sent.get("status") or incident["lastUpdateStatus"],
        description=sent.get("description", ""),
        problem=problem,
        sends_mails=visit.backend.sends_status_mails,
    )


async def _list_pages(visit: Visit, incident: Document) -> list[tuple[str, str]]:
    """The name and the address of each status page on which visitors see it."""
    services = {one["id"] for one in incident["services"]}
    found = await visit.find(f"{_API}?limit=100")
    return [
        (one["name"], f"{PREFIX}/{one['url']}")
        for one in found["entries"]
        if services & {service["id"] for card in one["cards"] for service in card["services"]}
    ]


def _id_of(visit: Visit) -> str:
    return quote(visit.request.path_params["id"], safe="")


INCIDENTS: Final = Resource(
    path="/incidents",
    home="/status-pages",
    noun="incident",
    place="Status pages",
    read=f"GET {_API}/incidents/{{id}}",
    delete=f"DELETE {_API}/incidents/{{id}}",
    forms=(),
    after="/incidents/{id}",
    loss="Its updates are deleted with it.",
)
