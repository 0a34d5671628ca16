"""`/checks/new` and `/checks/{id}/edit`: every field of a check of any type."""

import re
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
from contract.checks import AGENT_TYPES, SCRIPT_TYPES, SPEC_TYPES, CheckType
from service.checks.fields import Regions
from service.checks.rules import SUB_MINUTE_OFFSETS
from service.checks.types.definition import TypeDefinition
from service.checks.types.registry import DEFINITIONS, TYPES
from service.projects import rules as code
from service.web.check.applied_settings import describe_alerting
from service.web.forms import choices
from service.web.forms.field_labels import option_label
from service.web.forms.field_schema import Option, Options, Shape, walk
from service.web.forms.resource_form import Document, Form, Neighbor, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.visit import Visit

_ASSERTIONS: Final = "request.assertions"
_BUNDLE: Final = "codeBundlePath"
_RETRIES: Final = "retryStrategy"
_SUBSCRIPTIONS: Final = "alertChannelSubscriptions"
_UPLOAD: Final = Neighbor(path="/checks/{id}/bundle", title="Upload a bundle", is_of_new=True)
_HEARTBEAT: Final = CheckType.HEARTBEAT
_PLAN: Final = Section(
    title="How often and where",
    fields=("frequency", "privateLocations", "runParallel", _RETRIES),
)
"""A heartbeat is called by others: the little that can be set of it is for the curious."""
_SECTIONS: Final = (
    Section(
        title="What to check",
        fields=(
            *("name", "request.method", "request.url", "request.hostname", "request.recordType"),
            *("request.query", "request.port", "request.nameServer", "request.protocol"),
            *("request.headers", "request.queryParameters", "request.bodyType", "request.body"),
            *("request.data", "request.basicAuth", "request.pingCount", "script", "prompt"),
        ),
    ),
    Section(
        title="Suite",
        fields=(_BUNDLE, "testCommand", "browsers"),
        hint="The project is uploaded as a bundle, and chosen here.",
    ),
    Section(title="Pings", fields=("heartbeat.period", "heartbeat.grace")),
    Section(
        title="What makes it fail",
        fields=(
            *(_ASSERTIONS, "request.acceptedStatusCodes", "shouldFail"),
            *("maxResponseTime", "degradedResponseTime"),
            *("maxPacketLossThreshold", "degradedPacketLossThreshold"),
        ),
    ),
    _PLAN,
    Section(
        title="Who is alerted",
        fields=(
            *(_SUBSCRIPTIONS, "useGlobalAlertSettings", "alertSettings"),
            *("muted", "triggerIncident"),
        ),
    ),
    Section(
        title="More",
        fields=(
            *("description", "tags", "groupId", "groupOrder", "activated", "environmentVariables"),
            *_PLAN.fields,
            *("localSetupScript", "setupSnippetId", "localTearDownScript", "tearDownSnippetId"),
            *("scriptPath", "dependencies", "playwrightConfig"),
        ),
        is_folded=True,
        takes_rest=True,
    ),
)
_NO_RETRY: Final = "NONE"
"""Stands in a form for no `retryStrategy` and no `doubleCheck`."""
_SECONDS: Final = re.compile(r"(\d{1,3}) s", re.ASCII)
"""A frequency below a minute, as the form has it."""
_LABELS: Final = {"useGlobalAlertSettings": "When"}
_NOTES: Final = {
    "frequency": "How often it runs.",
    "useGlobalAlertSettings": "When to alert.",
    _SUBSCRIPTIONS: "Alerts go to these channels, and to those of its group. A new check starts"
    " with the channels that new checks subscribe to.",
}
_LATE: Final = "How much later a missing ping may be noticed."
_SCRIPTED: Final = SCRIPT_TYPES | {CheckType.API}
"""Types that may run a script."""
_TRIED: Final = frozenset(AGENT_TYPES) - {CheckType.HEARTBEAT}
"""A heartbeat waits for pings."""
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
    noun, path, is_heartbeat = SPEC_TYPES[kind].noun, kind.path_segment, kind is _HEARTBEAT
    return Form(
        kind=kind.value,
        title=noun[0].upper() + noun[1:],
        sentence=definition.purpose,
        model=definition.write,
        create=f"POST /v1/checks/{path}?autoAssignAlerts=false",
        replace=f"PUT /v1/checks/{path}/{{id}}",
        sections=tuple(one for one in _SECTIONS if one is not _PLAN or not is_heartbeat),
        left_out=frozenset(definition.write.refused),
        idle=_list_idle(kind),
        labels={**_LABELS, "frequency": "Looks every"} if is_heartbeat else _LABELS,
        notes={**_NOTES, "frequency": _LATE} if is_heartbeat else _NOTES,
        more_shapes={_RETRIES: Shape(constant=_NO_RETRY)},
        send=_send,
        try_path=f"/checks/try?kind={kind.value}" if kind in _TRIED else "",
        neighbors=(_UPLOAD,) if kind is CheckType.PLAYWRIGHT else (),
        is_offered=kind is not CheckType.AGENTIC,  # no agent runs them yet
    )


def _list_idle(kind: CheckType) -> frozenset[str]:
    """Fields that the API takes and keeps, without an effect on checks of a type.

    `doubleCheck` is a part of the field for retries.
    """
    of_scripts = () if kind in _SCRIPTED else ("runtimeId",)
    of_runs = (_RETRIES, "shouldFail") if kind is _HEARTBEAT else ()
    return frozenset(("doubleCheck", *of_scripts, *of_runs))


def _show(stored: Document) -> Document:
    """A check with one field for how often it runs, and one for its retries."""
    shown = dict(stored)
    if stored["frequency"] == 0:
        shown |= {"frequency": f"{stored['frequencyOffset']} s", "frequencyOffset": None}
    if stored.get(_RETRIES) is None and not stored["doubleCheck"]:
        shown[_RETRIES] = _NO_RETRY
    return shown


def _send(body: Document) -> Document:
    sent = dict(body)
    if found := _SECONDS.fullmatch(str(body.get("frequency"))):
        sent |= {"frequency": 0, "frequencyOffset": int(found[1])}
    if _RETRIES in body and not isinstance(body[_RETRIES], dict):
        sent |= {_RETRIES: None, "doubleCheck": body[_RETRIES] is None}
    return sent


async def _kind_of(_visit: Visit, stored: Document) -> str:
    return str(stored["checkType"])


async def _options(visit: Visit, form: Form) -> Options:
    locations = await choices.list_locations(visit)
    groups, snippets = await choices.list_groups(visit), await choices.list_snippets(visit)
    return {
        "frequency": _list_frequencies(form),
        "locations": list_regions(locations) or None,
        "privateLocations": locations,
        "groupId": groups or None,
        **({} if groups else {"groupOrder": None}),
        "setupSnippetId": snippets or None,
        "tearDownSnippetId": snippets or None,
        "useGlobalAlertSettings": await _list_alert_settings(visit),
        f"{_SUBSCRIPTIONS}[].alertChannelId": await choices.list_channels(visit),
        "triggerIncident.serviceId": await choices.list_services(visit),
        **offer_assertions(form, _ASSERTIONS, kind=CheckType(form.kind)),
        **await _offer_bundles(visit, form),
    }


def _list_frequencies(form: Form) -> list[Option]:
    """How often a check can run; below a minute it is a number of seconds."""
    found = next(one for one in form.root.fields if one.name == "frequency").options
    seconds = SUB_MINUTE_OFFSETS if any(one.value == 0 for one in found) else ()
    return [*(Option(f"{one} s", f"{one} s") for one in seconds), *(o for o in found if o.value)]


async def _list_alert_settings(visit: Visit) -> list[Option]:
    """The account's alert settings, in words, or others."""
    account = (await visit.look("GET /v1/accounts/me")).body
    words = dict(describe_alerting(account["alertSettings"]))
    said = f"{words['Alerts after']}; reminders: {words['Reminders']}"
    return [
        Option(True, f"As the account: after {said}"),  # noqa: FBT003 - values of a field
        Option(False, "As set here"),  # noqa: FBT003 - the same
    ]


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
    start[_SUBSCRIPTIONS] = await choices.list_automatic_subscriptions(visit)
    if "privateLocations" not in form.left_out:
        locations = await choices.list_locations(visit)
        start["privateLocations"] = [one.value for one in locations[:1]]
    if sent := visit.request.query_params.get("bundle"):
        start[_BUNDLE] = sent
    return start


async def _complete(visit: Visit, body: Document) -> Document:
    """Channels that new checks subscribe to do not get it if they were taken out of the form."""
    wanted = list(body.get(_SUBSCRIPTIONS, ()))
    named = {str(one.get("alertChannelId")) for one in wanted}
    taken_out = [
        {**one, "activated": False}
        for one in await choices.list_automatic_subscriptions(visit)
        if str(one["alertChannelId"]) not in named
    ]
    return {**body, _SUBSCRIPTIONS: [*wanted, *taken_out]}


CHECKS: Final = Resource(
    path="/checks",
    home="/",
    noun="check",
    place="Checks",
    code_types=(code.CHECK,),
    read="GET /v1/checks/{id}",
    delete="DELETE /v1/checks/{id}",
    forms=tuple(_form(one) for one in DEFINITIONS),
    kind_of=_kind_of,
    show=_show,
    options=_options,
    begin=_begin,
    complete=_complete,
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
