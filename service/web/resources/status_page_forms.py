"""`/status-pages`, `/services`, `/incidents`: what visitors are shown, and what is said to them."""

from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.http.errors import ApiError
from service.incidents.model import IncidentStatus
from service.incidents.schemas import IncidentChange, IncidentWrite
from service.status_pages.model import ServiceWrite
from service.status_pages.schemas import StatusPageWrite
from service.web.api_calls import ApiAnswer
from service.web.form_data import read_form
from service.web.forms import choices
from service.web.forms.field_schema import Options
from service.web.forms.resource_form import Document, Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.states import State
from service.web.status_page.custom_domains import PREFIX
from service.web.visit import Visit

_API: Final = "/v1/status-pages"
_UNPROCESSABLE: Final = 422
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_STATES: Final = {
    "CRITICAL": State.FAILING,
    "MAJOR": State.FAILING,
    "MEDIUM": State.DEGRADED,
    "MINOR": State.DEGRADED,
}
_RESOLVED: Final = IncidentStatus.RESOLVED.value


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The overview, and the pages of each thing on it."""
    return (
        pages.show("/status-pages", _show_all),
        *resource_routes(pages, PAGES),
        pages.show("/status-pages/{id}", _show_page),
        pages.change("/status-pages/{id}/keys", _make_key),
        pages.change("/status-pages/{id}/subscriptions/{subscription}", _end_subscription),
        *resource_routes(pages, SERVICES),
        *resource_routes(pages, INCIDENTS),
        pages.show("/incidents/{id}", _show_incident),
        pages.change("/incidents/{id}", _add_update),
        pages.show("/incidents/{id}/updates/{update}", _show_update),
        pages.change("/incidents/{id}/updates/{update}", _change_update),
    )


async def _show_all(visit: Visit) -> Response:
    pages = await visit.look(f"GET {_API}?limit=100")
    services = await visit.look(f"GET {_API}/services?paginated=false")
    incidents = await visit.look(f"GET {_API}/incidents?limit=50")
    shown = incidents.body["entries"]
    return visit.page(
        "status_pages.html",
        pages=pages.body["entries"],
        services=services.body["entries"],
        going_on=[one for one in shown if one["lastUpdateStatus"] != _RESOLVED],
        over=[one for one in shown if one["lastUpdateStatus"] == _RESOLVED],
        states=_STATES,
        public=PREFIX,
    )


async def _show_page(visit: Visit) -> Response:
    page_id = _id_of(visit)
    page = await _find(visit, f"{_API}/{page_id}")
    subscribers = await _find(visit, f"{_API}/{page_id}/subscriptions")
    return visit.page_with_key(
        "status_page_settings.html",
        of=page["id"],
        page=page,
        subscribers=subscribers,
        public=PREFIX,
        sends_mails=visit.backend.sends_status_mails,
    )


async def _make_key(visit: Visit) -> Response:
    """The new key is shown once; the former one opens nothing any more."""
    answer = await visit.call(f"POST {_API}/{_id_of(visit)}/keys")
    if answer.is_error:
        raise _refusal(answer)
    path = f"/status-pages/{_id_of(visit)}"
    return visit.go_with_key(path, _new_key_of(answer.body), of=answer.body["id"])


def _new_key_of(page: Document) -> str:
    """The key that an answer shows this once. Empty: it made none."""
    return next((str(one["rawKey"]) for one in page["keys"] if "rawKey" in one), "")


async def _end_subscription(visit: Visit) -> Response:
    subscription = quote(visit.request.path_params["subscription"], safe="")
    answer = await visit.call(f"DELETE {_API}/{_id_of(visit)}/subscriptions/{subscription}")
    if answer.is_error and answer.status != _NOT_FOUND:
        raise _refusal(answer)
    return visit.go(f"/status-pages/{_id_of(visit)}#subscribers")


async def _show_incident(visit: Visit) -> Response:
    return await _incident(visit, sent={}, problem="")


async def _add_update(visit: Visit) -> Response:
    form = await read_form(visit.request)
    body = {
        "description": form.text("description"),
        "status": form.text("status"),
        "notifySubscribers": "notify" in form,
    }
    operation = f"POST {_API}/incidents/{_id_of(visit)}/incident-updates"
    answer = await visit.call(operation, body, once=form.text("once"))
    if answer.status in {_FORBIDDEN, _NOT_FOUND}:
        raise _refusal(answer)
    if answer.is_error:
        return await _incident(visit, sent=body, problem=answer.message)
    return visit.go(f"/incidents/{_id_of(visit)}")


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
        raise _refusal(answer)
    if answer.is_error:
        return await _update(visit, sent=body, problem=answer.message)
    return visit.go(f"/incidents/{_id_of(visit)}")


async def _update(visit: Visit, *, sent: dict[str, Any], problem: str) -> Response:
    incident = await _find(visit, f"{_API}/incidents/{_id_of(visit)}")
    stored = await _find(visit, _update_path(visit))
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
    incident = await _find(visit, f"{_API}/incidents/{_id_of(visit)}")
    return visit.page(
        "incident.html",
        status=_UNPROCESSABLE if problem else 200,
        incident=incident,
        state=_STATES[incident["severity"]],
        statuses=[one.value for one in IncidentStatus],
        chosen=sent.get("status") or incident["lastUpdateStatus"],
        description=sent.get("description", ""),
        problem=problem,
        sends_mails=visit.backend.sends_status_mails,
    )


def _id_of(visit: Visit) -> str:
    return quote(visit.request.path_params["id"], safe="")


async def _find(visit: Visit, path: str) -> Any:
    answer = await visit.look(f"GET {path}")
    if answer.is_error:
        raise _refusal(answer)
    return answer.body


def _refusal(answer: ApiAnswer) -> ApiError:
    refusal = ApiError(answer.message)
    refusal.status = answer.status
    return refusal


async def _services_of_cards(visit: Visit, _form: Form) -> Options:
    return {"cards[].services[].id": await choices.list_services(visit)}


async def _services(visit: Visit, _form: Form) -> Options:
    return {"services[].id": await choices.list_services(visit)}


async def _kind_of_incident(_visit: Visit, _stored: Document) -> str:
    """A stored one: its updates are changed one by one."""
    return "stored"


PAGES: Final = Resource(
    path="/status-pages",
    noun="status page",
    place="Status pages",
    read=f"GET {_API}/{{id}}",
    delete=f"DELETE {_API}/{{id}}",
    forms=(
        Form(
            title="status page",
            sentence="What visitors see of your services, at an address of its own.",
            model=StatusPageWrite,
            create=f"POST {_API}",
            replace=f"PUT {_API}/{{id}}",
            sections=(
                Section(title="Basics", fields=("name", "url", "description", "isPrivate")),
                Section(title="Cards", fields=("cards",), hint="Groups of services, in order."),
                Section(
                    title="Look",
                    fields=("logo", "favicon", "redirectTo", "defaultTheme"),
                ),
                Section(title="Domain", fields=("customDomain",)),
                Section(title="Colors", fields=("themeColors",), is_folded=True),
            ),
        ),
    ),
    options=_services_of_cards,
    after="/status-pages/{id}",
    new_key_of=_new_key_of,
    loss="Its subscriptions are deleted with it, and its address shows nothing.",
    is_named_to_delete=True,
    placeholders={"name": "Shop status", "url": "shop", "customDomain": "status.example.com"},
)
SERVICES: Final = Resource(
    path="/services",
    home="/status-pages",
    noun="service",
    place="Status pages",
    read=f"GET {_API}/services/{{id}}",
    delete=f"DELETE {_API}/services/{{id}}",
    forms=(
        Form(
            title="service",
            sentence="Something that visitors know by name; cards of pages show it.",
            model=ServiceWrite,
            create=f"POST {_API}/services",
            replace=f"PUT {_API}/services/{{id}}",
            sections=(Section(title="Basics", fields=("name",)),),
        ),
    ),
    loss="Cards and past incidents lose it.",
    placeholders={"name": "Checkout"},
)
_INCIDENT: Final = Section(title="Incident", fields=("name", "severity", "services"))
INCIDENTS: Final = Resource(
    path="/incidents",
    home="/status-pages",
    noun="incident",
    place="Status pages",
    read=f"GET {_API}/incidents/{{id}}",
    delete=f"DELETE {_API}/incidents/{{id}}",
    forms=(
        Form(
            title="incident",
            sentence="What happens to services, and the first thing that visitors are told.",
            model=IncidentWrite,
            create=f"POST {_API}/incidents",
            replace=f"PUT {_API}/incidents/{{id}}",
            sections=(_INCIDENT, Section(title="Updates", fields=("incidentUpdates",))),
        ),
        Form(
            kind="stored",
            title="incident",
            model=IncidentChange,
            create=f"POST {_API}/incidents",
            replace=f"PUT {_API}/incidents/{{id}}",
            sections=(_INCIDENT,),
        ),
    ),
    kind_of=_kind_of_incident,
    options=_services,
    after="/incidents/{id}",
    loss="All that was said of it is deleted with it.",
    placeholders={"name": "Orders fail"},
)
