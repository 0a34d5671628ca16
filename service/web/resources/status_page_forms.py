"""`/status-pages`, `/services`: what visitors are shown, and who is told by mail."""

import re
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.checks import actions as checks
from service.checks.model import ServiceCheck
from service.incidents.model import IncidentStatus, Severity
from service.projects import rules as code
from service.status_pages.model import ServiceWrite
from service.status_pages.schemas import StatusPageWrite
from service.subscriptions.model import MOST_AT_ONCE
from service.web.api_calls import ApiAnswer
from service.web.form_data import read_form
from service.web.forms import choices
from service.web.forms.field_schema import Option, Options
from service.web.forms.resource_form import Document, Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.resources.incident_pages import STATES_OF_SEVERITIES
from service.web.status_page.custom_domains import PREFIX
from service.web.status_page.history import WORD_OF
from service.web.visit import Visit
from service.web.words import format_plural

_API: Final = "/v1/status-pages"
_NOT_FOUND: Final = 404
_UNPROCESSABLE: Final = 422
_FORBIDDEN: Final = 403
_BETWEEN_ADDRESSES: Final = re.compile(r"[\s,;]+")
_NUMBERED: Final = re.compile(r'"subscriptions\[(\d+)\]\.config"')
_RESOLVED: Final = IncidentStatus.RESOLVED.value
_WHO_SEES_IT: Final = (Option(False, "Everybody"), Option(True, "Who has its key"))  # noqa: FBT003 - values of a field


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The overview, and the pages of each thing on it."""
    return (
        pages.show("/status-pages", _show_all),
        *resource_routes(pages, PAGES),
        pages.show("/status-pages/{id}", _show_page),
        pages.change("/status-pages/{id}/keys", _make_key),
        pages.change("/status-pages/{id}/subscribers", _subscribe),
        pages.change("/status-pages/{id}/subscriptions/{subscription}", _end_subscription),
        *resource_routes(pages, SERVICES),
    )


async def _show_all(visit: Visit) -> Response:
    pages = await visit.look(f"GET {_API}?limit=100")
    services = await visit.look(f"GET {_API}/services?paginated=false")
    incidents = await visit.look(f"GET {_API}/incidents?limit=50")
    shown = incidents.body["entries"]
    ids = [one["id"] for one in services.body["entries"]]
    return visit.page(
        "status_pages.html",
        pages=pages.body["entries"],
        services=services.body["entries"],
        checks=await _list_checks(visit, ids),
        going_on=[one for one in shown if one["lastUpdateStatus"] != _RESOLVED],
        over=[one for one in shown if one["lastUpdateStatus"] == _RESOLVED],
        states=STATES_OF_SEVERITIES,
        public=PREFIX,
    )


async def _show_page(visit: Visit) -> Response:
    return await _page(visit)


async def _page(visit: Visit, *, addresses: str = "", problem: str = "") -> Response:
    page_id = _id_of(visit)
    page = await visit.find(f"{_API}/{page_id}")
    subscribers = await visit.find(f"{_API}/{page_id}/subscriptions")
    query = visit.request.query_params
    services = {one["id"]: one for card in page["cards"] for one in card["services"]}
    return visit.page_with_key(
        "status_page_settings.html",
        status=_UNPROCESSABLE if problem else 200,
        of=page["id"],
        page=page,
        services=list(services.values()),
        checks=await _list_checks(visit, list(services)),
        subscribers=subscribers,
        public=PREFIX,
        sends_mails=visit.backend.sends_status_mails,
        takes_domains=visit.backend.public_url is not None,
        most=MOST_AT_ONCE,
        outcome=_describe_outcome(query.get("added", ""), query.get("skipped", "")),
        addresses=addresses,
        problem=problem,
        once=token_hex(16),
    )


async def _list_checks(
    visit: Visit, service_ids: Sequence[str]
) -> Mapping[str, Sequence[tuple[ServiceCheck, str]]]:
    """The checks that turn services red, by service, and what each makes visitors read."""
    found = await visit.read(lambda c: checks.list_of_services(c, visit.account_id, service_ids))
    by_service: dict[str, list[tuple[ServiceCheck, str]]] = {one: [] for one in service_ids}
    for one in found:
        by_service[one.service_id].append((one, WORD_OF[Severity(one.severity)].lower()))
    return by_service


def _describe_outcome(added: str, skipped: str) -> str:
    """What became of addresses that were sent. Empty: none were sent right before."""
    if not (added.isdecimal() and skipped.isdecimal()):
        return ""
    new, known = int(added[:3]), int(skipped[:3])
    sentences = []
    if new:
        waits = "waits" if new == 1 else "wait"
        sentences.append(
            f"Added {format_plural(new, 'address', 'addresses')}, which {waits} for confirmation."
        )
    if known:
        was = "was" if known == 1 else "were"
        sentences.append(
            f"{format_plural(known, 'address', 'addresses')} {was} subscribed already."
        )
    return " ".join(sentences)


async def _subscribe(visit: Visit) -> Response:
    """Addresses in lines, or as mail programs copy them: with commas or semicolons between."""
    form = await read_form(visit.request)
    addresses = [one for one in _BETWEEN_ADDRESSES.split(form.text("addresses")) if one]
    if not addresses:
        return await _page(visit, problem="Write at least one mail address.")
    wanted = [{"type": "EMAIL", "config": one} for one in addresses]
    answer = await visit.call(
        f"POST {_API}/{_id_of(visit)}/subscriptions/bulk",
        {"subscriptions": wanted},
        once=form.text("once"),
    )
    if answer.status in {_FORBIDDEN, _NOT_FOUND}:
        raise answer.refusal
    if answer.is_error:
        problem = _name_addresses(answer, addresses)
        return await _page(visit, addresses=form.text("addresses"), problem=problem)
    outcome = f"added={answer.body['created']}&skipped={answer.body['skipped']}"
    return visit.go(f"/status-pages/{_id_of(visit)}?{outcome}#subscribers")


def _name_addresses(answer: ApiAnswer, addresses: Sequence[str]) -> str:
    """The API's sentences, with each address where it says its number."""
    return _NUMBERED.sub(
        lambda found: (
            f"\N{LEFT DOUBLE QUOTATION MARK}{addresses[int(found[1])]}"
            "\N{RIGHT DOUBLE QUOTATION MARK}"
        ),
        answer.message,
    )


async def _make_key(visit: Visit) -> Response:
    """The new key is shown once; the former one opens nothing any more."""
    answer = await visit.call(f"POST {_API}/{_id_of(visit)}/keys")
    if answer.is_error:
        raise answer.refusal
    path = f"/status-pages/{_id_of(visit)}"
    return visit.go_with_key(path, _new_key_of(answer.body), of=answer.body["id"])


def _new_key_of(page: Document) -> str:
    """The key that an answer shows this once. Empty: it made none."""
    return next((str(one["rawKey"]) for one in page["keys"] if "rawKey" in one), "")


async def _end_subscription(visit: Visit) -> Response:
    subscription = quote(visit.request.path_params["subscription"], safe="")
    answer = await visit.call(f"DELETE {_API}/{_id_of(visit)}/subscriptions/{subscription}")
    if answer.is_error and answer.status != _NOT_FOUND:
        raise answer.refusal
    return visit.go(f"/status-pages/{_id_of(visit)}#subscribers")


def _id_of(visit: Visit) -> str:
    return quote(visit.request.path_params["id"], safe="")


async def _options(visit: Visit, _form: Form) -> Options:
    return {
        "cards[].services[].id": await choices.list_services(visit),
        "isPrivate": _WHO_SEES_IT,
    }


async def _begin(visit: Visit, _form: Form) -> Document:
    """A new page has a card to fill in, and is public."""
    services = [{}] if await choices.list_services(visit) else list[Document]()
    return {"isPrivate": False, "cards": [{"services": services}]}


PAGES: Final = Resource(
    path="/status-pages",
    noun="status page",
    place="Status pages",
    code_types=(code.PAGE,),
    read=f"GET {_API}/{{id}}",
    delete=f"DELETE {_API}/{{id}}",
    forms=(
        Form(
            title="status page",
            sentence="What visitors see of your services, at an address of its own. Add the"
            " services first, under Status pages.",
            model=StatusPageWrite,
            create=f"POST {_API}",
            replace=f"PUT {_API}/{{id}}",
            sections=(
                Section(title="Basics", fields=("name", "url", "description", "isPrivate")),
                Section(
                    title="Cards",
                    fields=("cards",),
                    hint="Groups of services, each with a heading.",
                ),
                Section(
                    title="Look",
                    fields=("logo", "favicon", "redirectTo", "defaultTheme"),
                ),
                Section(title="Domain", fields=("customDomain",)),
                Section(title="Colors", fields=("themeColors",), is_folded=True),
            ),
            never_null=frozenset({"isPrivate"}),
        ),
    ),
    options=_options,
    begin=_begin,
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
    code_types=(code.SERVICE, code.COMPONENT),
    read=f"GET {_API}/services/{{id}}",
    delete=f"DELETE {_API}/services/{{id}}",
    forms=(
        Form(
            title="service",
            sentence="Something that visitors know by name, and that cards of pages show. It turns"
            " red while one of its incidents is open: one that you report, or one of a check whose"
            " form says so under \N{LEFT DOUBLE QUOTATION MARK}Open an incident"
            "\N{RIGHT DOUBLE QUOTATION MARK}.",
            model=ServiceWrite,
            create=f"POST {_API}/services",
            replace=f"PUT {_API}/services/{{id}}",
            sections=(Section(title="Basics", fields=("name",)),),
        ),
    ),
    loss="Cards and past incidents lose it.",
    placeholders={"name": "Checkout"},
)
