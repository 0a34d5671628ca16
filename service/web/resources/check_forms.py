"""`/checks/new` and `/checks/{id}/edit`: every field of a check of any type."""

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from starlette.routing import BaseRoute

from contract.assertion_rules import LATENCIES, comparisons_of
from contract.assertions import (
    JSON_SOURCES,
    TEXT_SOURCES,
    WITHOUT_TARGET,
    Comparison,
    Source,
)
from contract.checks import SPEC_TYPES, CheckType
from service.checks.fields import Regions
from service.checks.types.definition import TypeDefinition
from service.checks.types.registry import DEFINITIONS, TYPES
from service.web.forms import choices
from service.web.forms.field_labels import option_label
from service.web.forms.field_schema import Option, Options, walk
from service.web.forms.resource_form import Document, Form, Neighbor, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.visit import Visit

_ASSERTIONS: Final = "request.assertions"
_BUNDLE: Final = "codeBundlePath"
_UPLOAD: Final = Neighbor(path="/checks/{id}/bundle", title="Upload a bundle", is_of_new=True)
_SECTIONS: Final = (
    Section(title="Basics", fields=("name", "description", "tags", "groupId", "activated")),
    Section(
        title="Request",
        fields=(
            "request.method",
            "request.url",
            "request.hostname",
            "request.recordType",
            "request.query",
            "request.port",
            "request.nameServer",
            "request.protocol",
            "request.headers",
            "request.queryParameters",
            "request.bodyType",
            "request.body",
            "request.data",
            "request.basicAuth",
            "request.pingCount",
        ),
    ),
    Section(title="Pings", fields=("heartbeat",)),
    Section(title="Script", fields=("script",)),
    Section(
        title="Suite",
        fields=(_BUNDLE, "testCommand", "browsers"),
        hint="Upload the project as a bundle first, then choose it here.",
    ),
    Section(title="Prompt", fields=("prompt", "agentRuntime")),
    Section(
        title="Assertions",
        fields=(_ASSERTIONS, "request.acceptedStatusCodes", "shouldFail"),
    ),
    Section(
        title="Limits",
        fields=(
            "degradedResponseTime",
            "maxResponseTime",
            "degradedPacketLossThreshold",
            "maxPacketLossThreshold",
        ),
    ),
    Section(
        title="Schedule and locations",
        fields=(
            *("frequency", "frequencyOffset", "privateLocations", "runParallel"),
            *("retryStrategy", "doubleCheck"),
        ),
    ),
    Section(
        title="Alerting",
        fields=(
            "muted",
            "alertChannelSubscriptions",
            "useGlobalAlertSettings",
            "alertSettings",
            "triggerIncident",
        ),
    ),
    Section(title="Variables", fields=("environmentVariables",)),
    Section(
        title="Setup and teardown",
        fields=("localSetupScript", "setupSnippetId", "localTearDownScript", "tearDownSnippetId"),
        is_folded=True,
    ),
    Section(
        title="Files and configuration",
        fields=("scriptPath", "dependencies", "playwrightConfig"),
        is_folded=True,
    ),
)
_PARTS: Final = (
    (JSON_SOURCES, "JSONPath"),
    (TEXT_SOURCES, "Part, as a regular expression"),
    ({Source.HEADERS}, "Header"),
    ({Source.LATENCY}, f"One of {', '.join(LATENCIES)}"),
)
"""What `property` is called, by source."""


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """Forms of checks."""
    return resource_routes(pages, CHECKS)


def _form(definition: TypeDefinition) -> Form:
    kind = definition.kind
    noun, path = SPEC_TYPES[kind].noun, kind.path_segment
    return Form(
        kind=kind.value,
        title=noun[0].upper() + noun[1:],
        sentence=definition.purpose,
        model=definition.write,
        create=f"POST /v1/checks/{path}",
        replace=f"PUT /v1/checks/{path}/{{id}}",
        sections=_SECTIONS,
        left_out=frozenset(definition.write.refused),
        neighbors=(_UPLOAD,) if kind is CheckType.PLAYWRIGHT else (),
        is_offered=kind is not CheckType.AGENTIC,  # no agent runs them yet
    )


async def _kind_of(_visit: Visit, stored: Document) -> str:
    return str(stored["checkType"])


async def _options(visit: Visit, form: Form) -> Options:
    locations = await choices.list_locations(visit)
    groups, snippets = await choices.list_groups(visit), await choices.list_snippets(visit)
    return {
        "locations": list_regions(locations),
        "privateLocations": locations,
        "groupId": groups,
        "setupSnippetId": snippets,
        "tearDownSnippetId": snippets,
        "alertChannelSubscriptions[].alertChannelId": await choices.list_channels(visit),
        "triggerIncident.serviceId": await choices.list_services(visit),
        **offer_assertions(form, _ASSERTIONS, kind=CheckType(form.kind)),
        **await _offer_bundles(visit, form),
    }


async def _offer_bundles(visit: Visit, form: Form) -> Options:
    """Those that were sent; where there is none, its hash can still be typed."""
    is_suite = form.kind == CheckType.PLAYWRIGHT
    found = await choices.list_bundles(visit) if is_suite else ()
    return {_BUNDLE: found} if found else {}


def list_regions(locations: Sequence[Option]) -> tuple[Option, ...]:
    """The regions that are served here: a region is one if a location has its name."""
    return tuple(one for one in locations if one.value in get_args(Regions))


def offer_assertions(form: Form, path: str, *, kind: CheckType | None) -> Options:
    """Sources with the comparisons that fit them, for the page's script. No kind: any type's."""
    fields = dict(walk(form.root))
    sources = fields.get(f"{path}[].source")
    if sources is None:
        return {}
    of_kind = SPEC_TYPES[kind].comparisons if kind else None
    comparisons = fields[f"{path}[].comparison"]
    return {
        f"{path}[].source": [
            Option(
                one.value,
                option_label("source", one.value),
                _describe_source(Source(one.value), of_kind),
            )
            for one in sources.options
        ],
        f"{path}[].comparison": [
            Option(
                one.value,
                option_label("comparison", one.value),
                {"alone": ""} if one.value in WITHOUT_TARGET else {},
            )
            for one in comparisons.options
        ],
    }


def _describe_source(source: Source, of_kind: frozenset[Comparison] | None) -> Mapping[str, str]:
    """What an assertion on a source takes, as the API's rules have it."""
    takes = comparisons_of(source, of_part=False) & (of_kind or frozenset(Comparison))
    return {
        "takes": " ".join(sorted(takes)),
        "part": next((label for sources, label in _PARTS if source in sources), ""),
        "regex": "yes" if source is Source.HEADERS else "",
    }


async def _begin(visit: Visit, form: Form) -> Document:
    """The location is preselected, as without one no run would come; and a bundle just sent."""
    start = dict(TYPES[CheckType(form.kind)].start)
    if "privateLocations" not in form.left_out:
        locations = await choices.list_locations(visit)
        start["privateLocations"] = [one.value for one in locations[:1]]
    if sent := visit.request.query_params.get("bundle"):
        start[_BUNDLE] = sent
    return start


CHECKS: Final = Resource(
    path="/checks",
    home="/",
    noun="check",
    place="Checks",
    read="GET /v1/checks/{id}",
    delete="DELETE /v1/checks/{id}",
    forms=tuple(_form(one) for one in DEFINITIONS),
    kind_of=_kind_of,
    options=_options,
    begin=_begin,
    after="/checks/{id}",
    loss="All of its results, with their screenshots, videos and traces, its alerts and its error"
    " groups are deleted with it. This cannot be undone; a pause keeps all of it.",
    is_named_to_delete=True,
    placeholders={
        "name": "Checkout",
        "request.url": "https://shop.example/",
        "request.hostname": "shop.example",
        "request.query": "shop.example",
        "request.port": "443",
    },
)
