"""`/groups`: checks that share settings."""

from dataclasses import replace
from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.groups import actions as groups
from service.groups.model import Form as Written
from service.groups.schemas import GroupV2Write, GroupWrite
from service.overview import actions as overview
from service.overview.model import Grouping, Wanted, find_worst
from service.projects import rules as code
from service.web.forms import choices
from service.web.forms.field_schema import Options
from service.web.forms.resource_form import Document, Form, Neighbor, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.resources.check_forms import list_regions, offer_assertions
from service.web.resources.listing import read_page, show_rows
from service.web.visit import Visit

_ASSERTIONS: Final = "apiCheckDefaults.assertions"
_SUBSCRIPTIONS: Final = "alertChannelSubscriptions"
_FIRST: Final = "v1"
"""The kind of groups that the first form of the API wrote: its null says something else."""
_SECTIONS: Final = (
    Section(title="Basics", fields=("name", "tags", "activated")),
    Section(
        title="API checks",
        fields=(
            "apiCheckDefaults.url",
            "apiCheckDefaults.headers",
            "apiCheckDefaults.queryParameters",
            "apiCheckDefaults.basicAuth",
            _ASSERTIONS,
        ),
        hint="What all API checks of the group have.",
    ),
    Section(
        title="Locations and retries",
        fields=("privateLocations", "runParallel", "retryStrategy", "concurrency"),
    ),
    Section(
        title="Alerting",
        fields=("muted", _SUBSCRIPTIONS, "useGlobalAlertSettings", "alertSettings"),
    ),
    Section(title="Variables", fields=("environmentVariables",)),
    Section(
        title="Setup and teardown",
        fields=("localSetupScript", "setupSnippetId", "localTearDownScript", "tearDownSnippetId"),
        is_folded=True,
    ),
)
_SECOND_FORM: Final = Form(
    title="group",
    sentence="Checks of a group share settings, variables, and whom they alert.",
    model=GroupV2Write,
    create="POST /v2/check-groups?autoAssignAlerts=false",
    replace="PUT /v2/check-groups/{id}",
    sections=_SECTIONS,
    notes={
        _SUBSCRIPTIONS: "Alerts of its checks go to these channels. A new group starts with the"
        " channels that new checks subscribe to."
    },
    neighbors=(Neighbor(path="/groups/{id}/link", title="Run by link"),),
)
_FIRST_FORM: Final = replace(
    _SECOND_FORM,
    kind=_FIRST,
    model=GroupWrite,
    create="POST /v1/check-groups?autoAssignAlerts=false",
    replace="PUT /v1/check-groups/{id}",
    is_offered=False,
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list and the forms of groups."""
    return (pages.show("/groups", _show), *resource_routes(pages, GROUPS))


async def _show(visit: Visit) -> Response:
    page = await read_page(visit, "GET /v1/check-groups")
    wanted = Wanted(grouping=Grouping.GROUP)
    counts = await visit.read(
        lambda c: overview.count_headings(c, visit.account_id, wanted, now_ms=visit.now_ms(c))
    )
    return show_rows(
        visit,
        GROUPS,
        page,
        "groups.html",
        counts=counts,
        worst={key: find_worst(states) for key, states in counts.items()},
    )


async def _kind_of(visit: Visit, stored: Document) -> str:
    row = await visit.read(lambda c: groups.find(c, visit.account_id, stored["id"]))
    return _FIRST if row.form is Written.V1 else ""


async def _options(visit: Visit, form: Form) -> Options:
    locations = await choices.list_locations(visit)
    snippets = await choices.list_snippets(visit)
    return {
        "locations": list_regions(locations),
        "privateLocations": locations,
        "setupSnippetId": snippets,
        "tearDownSnippetId": snippets,
        f"{_SUBSCRIPTIONS}[].alertChannelId": await choices.list_channels(visit),
        **offer_assertions(form, _ASSERTIONS, kind=None),
    }


async def _begin(visit: Visit, _form: Form) -> Document:
    return {_SUBSCRIPTIONS: await choices.list_automatic_subscriptions(visit)}


GROUPS: Final = Resource(
    path="/groups",
    noun="group",
    place="Groups",
    code_types=(code.GROUP,),
    read="GET /v1/check-groups/{id}",
    delete="DELETE /v1/check-groups/{id}",
    forms=(_SECOND_FORM, _FIRST_FORM),
    kind_of=_kind_of,
    options=_options,
    begin=_begin,
    after="/groups/{id}",
    loss="A group can only be deleted when no check is in it. Its variables and settings go with"
    " it. This cannot be undone.",
    is_named_to_delete=True,
    placeholders={"name": "Shop", "apiCheckDefaults.url": "https://shop.example/api"},
)
