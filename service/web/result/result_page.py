"""`/checks/{id}/results/{id}`: what one run saw, and why it ended as it did."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec
from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from contract.assertions import WITHOUT_TARGET, AssertionResult, Comparison, Source
from contract.checks import CheckType
from contract.evidence import (
    BrowserEvidence,
    HttpEvidence,
    PageSeen,
    ScriptEvidence,
    TlsFacts,
)
from contract.result import Evidence, FailureKind, Outcome, Timings
from service.agents import actions as agents
from service.checks import actions as checks
from service.checks.model import CheckRow
from service.heartbeats import actions as heartbeats
from service.heartbeats.model import Event
from service.http.errors import NotFoundError
from service.locations import actions as locations
from service.results import actions as results
from service.results.assets import Asset, assets_of
from service.results.model import RunStatus, StoredResult
from service.results.views import explain, score
from service.web.check.heading import AT_LOCATIONS
from service.web.check.sections import show_run
from service.web.page_routing import Pages
from service.web.result.comparison import are_answered, compare, compare_bodies
from service.web.result.message_bodies import format_json, mark, read_body
from service.web.result.reached import find_reached
from service.web.result.run_files import File, describe_files, serve_file
from service.web.result.timeline import draw_calls, draw_hops, draw_phases, draw_steps
from service.web.result.trace_page import explain_absence, show_trace
from service.web.states import State, state_of_run
from service.web.visit import Visit
from service.web.words import format_duration, name_source, name_sources, shorten_message

PATH: Final = "/checks/{check_id}/results/{result_id}"
_PINGS: Final = 20
_OF_JSON: Final = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
_WORDS: Final[Mapping[RunStatus, str]] = {
    RunStatus.PASSED: "Passed",
    RunStatus.DEGRADED: "Degraded",
    RunStatus.FAILED: "Failed",
    RunStatus.TIMED_OUT: "Timed out",
    RunStatus.MISSED: "Missed",
    RunStatus.ERROR: "Not checked",
}
_COMPARISONS: Final[Mapping[Comparison, str]] = {
    Comparison.EQUALS: "equals",
    Comparison.NOT_EQUALS: "does not equal",
    Comparison.HAS_KEY: "has the key",
    Comparison.NOT_HAS_KEY: "lacks the key",
    Comparison.HAS_VALUE: "has the value",
    Comparison.NOT_HAS_VALUE: "lacks the value",
    Comparison.IS_EMPTY: "is empty",
    Comparison.NOT_EMPTY: "is not empty",
    Comparison.GREATER_THAN: "is greater than",
    Comparison.LESS_THAN: "is less than",
    Comparison.CONTAINS: "contains",
    Comparison.NOT_CONTAINS: "does not contain",
    Comparison.IS_NULL: "is null",
    Comparison.NOT_NULL: "is not null",
}
_UNITS: Final[Mapping[Source, str]] = {
    Source.RESPONSE_TIME: "ms",
    Source.LATENCY: "ms",
    Source.DAYS_TO_EXPIRY: "days",
}
"""What the numbers of an assertion count."""
_DETAILS: Final[Mapping[str, str]] = {
    "code": "Code",
    "errno": "Number of the error",
    "syscall": "System call",
    "hostname": "Host",
    "address": "Address",
    "port": "Port",
    "phase": "Phase",
    "order": "Assertion",
    "failed": "Failed assertions",
    "sent": "Packets sent",
    "received": "Packets received",
    "silentForSeconds": "Silent for",
}
_ACRONYM_KINDS: Final = frozenset({FailureKind.DNS, FailureKind.TLS})
_SCORES: Final = {
    "GOOD": State.PASSING,
    "NEEDS_IMPROVEMENT": State.DEGRADED,
    "POOR": State.FAILING,
}


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page, and the files of a run."""
    return (
        pages.show(PATH, _show),
        pages.show(PATH + "/api.json", _send_json),
        pages.show(PATH + "/files/{name}", serve_file),
        pages.show(PATH + "/traces/{name}", show_trace),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the page is about, read in one go."""

    check: CheckRow
    stored: StoredResult
    attempts: Sequence[tuple[int, str]]
    before: str | None
    """None: it is the first one."""
    after: str | None
    """None: it is the newest one."""
    last_good: StoredResult | None
    """None: no run that passed before is stored."""
    other: StoredResult | None
    """None: nothing is compared."""
    location_id: str | None
    """None: the location is gone."""
    agent_version: str | None
    """None: the agent is not known any more."""
    assets: tuple[Asset, ...]
    good_assets: tuple[Asset, ...]
    pings: Sequence[Event]
    now_ms: int


async def _show(visit: Visit) -> Response:
    params = visit.request.path_params
    other_id = visit.request.query_params.get("with") or None

    def read(connection: Connection) -> _Seen:
        return _read(connection, visit, params["check_id"], params["result_id"], other_id)

    seen = await visit.read(read)
    stored, kind = seen.stored, CheckType(seen.check.type)
    outcome = stored.detail.outcome if stored.detail else None
    evidence = outcome.evidence if outcome else None
    here = f"/checks/{seen.check.id}"
    store, good_id = visit.backend.artifacts, seen.last_good.id if seen.last_good else ""
    files = await describe_files(store, seen.assets, at=f"{here}/results/{stored.id}")
    good_files = await describe_files(store, seen.good_assets, at=f"{here}/results/{good_id}")
    sentence = _find_lines(_sentence(stored, kind), evidence)
    return visit.page(
        "result.html",
        seen=seen,
        check=seen.check,
        result=stored,
        here=here,
        this=f"{here}/results/{stored.id}",
        now_ms=seen.now_ms,
        state=state_of_run(stored.status),
        word=_WORDS[stored.status],
        sentence=shorten_message(sentence),
        whole_sentence=_find_rest(sentence, evidence),
        states={id_: state_of_run(RunStatus(id_)) for id_ in RunStatus},
        at_location=stored.cause in AT_LOCATIONS,
        took_ms=show_run(stored, kind).took_ms,
        is_run_on_demand=kind is not CheckType.HEARTBEAT and seen.check.doc["activated"],
        curl=_write_curl(visit, stored),
        outcome=outcome,
        evidence=evidence,
        kind=_template(evidence),
        phases=draw_phases(outcome.timings) if outcome else (),
        timings=outcome.timings if outcome else Timings(),
        reached=find_reached(outcome),
        details=_list_details(outcome),
        assertions=_sort(outcome),
        tls=_tls(evidence),
        differences=compare(stored, seen.other) if seen.other else None,
        are_answered=seen.other is None or are_answered(stored, seen.other),
        body_lines=compare_bodies(stored, seen.other) if seen.other else (),
        files=files,
        **_by_kind(files, good_files),
        no_viewer=explain_absence(visit),
        **_drawings(stored, evidence),
        **_functions(),
    )


async def _send_json(visit: Visit) -> Response:
    """The result as the API answers it, for whoever reads it in a browser."""
    check_id, result_id = (
        quote(visit.request.path_params[name], safe="") for name in ("check_id", "result_id")
    )
    found = await visit.find(f"/v1/check-results/{check_id}/{result_id}")
    content = msgspec.json.format(msgspec.json.encode(found))
    return Response(content, headers=_OF_JSON, media_type="application/json")


def _functions() -> dict[str, Any]:
    """What the template calls."""
    return {
        "describe": describe,
        "actual_of": say_actual,
        "source_name": name_source,
        "sources_named": name_sources,
        "read_body": read_body,
        "mark_text": mark,
        "vitals": _vitals,
    }


def _by_kind(files: Sequence[File], good_files: Sequence[File]) -> dict[str, Any]:
    """Those that the page shows."""
    kinds = {"shots": "screenshot", "videos": "video", "traces": "trace"}
    shown = {name: [one for one in files if one.kind == kind] for name, kind in kinds.items()}
    return {**shown, "good_shots": [one for one in good_files if one.kind == "screenshot"]}


def _write_curl(visit: Visit, stored: StoredResult) -> str:
    path = f"/v1/check-results/{stored.check_id}/{stored.id}"
    return f'curl -H "authorization: Bearer $API_KEY" {visit.base_url}{path}'


def _read(
    connection: Connection, visit: Visit, check_id: str, result_id: str, other_id: str | None
) -> _Seen:
    check = checks.find(connection, visit.account_id, check_id)
    stored = _find(connection, check_id, result_id)
    good_id = results.find_pass_before(connection, stored)
    last_good = _find(connection, check_id, good_id) if good_id else None
    before, after = results.find_neighbours(connection, stored)
    location_id = locations.list_ids_by_slug(connection, visit.account_id).get(stored.location)
    pings: Sequence[Event] = ()
    if check.type == CheckType.HEARTBEAT:
        until_ms = stored.stopped_ms + 1
        pings = heartbeats.list_events(connection, check_id, window=(0, until_ms), limit=_PINGS)
    return _Seen(
        check=check,
        stored=stored,
        attempts=results.list_attempts(connection, stored),
        before=before,
        after=after,
        last_good=last_good,
        other=_find(connection, check_id, other_id) if other_id else None,
        location_id=location_id,
        agent_version=_version(connection, stored, location_id),
        assets=assets_of(connection, visit.account_id, stored),
        good_assets=assets_of(connection, visit.account_id, last_good) if last_good else (),
        pings=pings,
        now_ms=visit.now_ms(connection),
    )


def _find(connection: Connection, check_id: str, result_id: str) -> StoredResult:
    found = results.find(connection, check_id, result_id)
    if found is None:
        raise NotFoundError(
            f"There is no result {result_id} of this check. Results are removed once they are"
            " older than the service keeps them."
        )
    return found


def _version(connection: Connection, stored: StoredResult, location_id: str | None) -> str | None:
    if stored.detail is None or location_id is None:
        return None
    known = agents.seen_at(connection, [location_id])
    return next((one.version for one in known if one.id == stored.detail.agent_id), None)


def _sentence(stored: StoredResult, kind: CheckType) -> str:
    because = explain(stored, kind)
    if because:
        return because
    took = format_duration(stored.response_time_ms)
    if stored.status is RunStatus.PASSED:
        return "Passed" if stored.response_time_ms is None else f"Passed in {took}"
    if stored.detail is None:
        return "What the agent sent about this run cannot be read."
    return _WORDS[stored.status]


def _find_lines(sentence: str, evidence: Evidence | None) -> str:
    """The error of a script with its line breaks, which the sentence has not; else the sentence."""
    errors = evidence.errors if isinstance(evidence, ScriptEvidence) else ()
    found = (
        error.message
        for error in errors
        if sentence.startswith(error.message.strip().partition("\n")[0])
    )
    return next(found, sentence)


def _find_rest(sentence: str, evidence: Evidence | None) -> str:
    """The whole sentence, where the heading has only a part and nothing below has it all."""
    is_below = isinstance(evidence, ScriptEvidence) and bool(evidence.errors)
    sentence = name_sources(sentence)
    return "" if is_below or shorten_message(sentence) == sentence else sentence


def _template(evidence: Evidence | None) -> str:
    if isinstance(evidence, ScriptEvidence):
        return "script"
    return "" if evidence is None else str(evidence.__struct_config__.tag)


def _tls(evidence: Evidence | None) -> TlsFacts | None:
    found = getattr(evidence, "tls", None)
    return found if isinstance(found, TlsFacts) else None


def _drawings(stored: StoredResult, evidence: Evidence | None) -> dict[str, Any]:
    end_ms = float(stored.stopped_ms - stored.started_ms)
    script = evidence if isinstance(evidence, ScriptEvidence) else None
    if script:
        ends = [step.started_after_ms + (step.took_ms or 0) for step in script.steps]
        end_ms = max([end_ms, *ends])
    return {
        "end_ms": end_ms,
        "hops": draw_hops(evidence.hops) if isinstance(evidence, HttpEvidence) else (),
        "steps": draw_steps(script.steps, end_ms=end_ms) if script else (),
        "calls": draw_calls(script.requests, end_ms=end_ms) if script else (),
        "has_pages": isinstance(evidence, BrowserEvidence),
    }


def _sort(outcome: Outcome | None) -> list[AssertionResult]:
    """Those that fail first, each group in its order."""
    found = outcome.assertions if outcome else ()
    return sorted(found, key=lambda one: (one.error is None, one.order))


def describe(one: AssertionResult) -> tuple[str, str]:
    """What an assertion expects: the comparison in words, and the value."""
    target = "" if one.comparison in WITHOUT_TARGET else _add_unit(one, one.target)
    return _COMPARISONS[one.comparison], target


def say_actual(one: AssertionResult) -> str:
    """The value that was compared, with its unit; JSON with a line for each member."""
    actual = one.actual or ""
    return format_json(actual) or _add_unit(one, actual)


def _add_unit(one: AssertionResult, value: str) -> str:
    unit = _UNITS.get(one.source)
    try:
        number = float(value)
    except ValueError:
        return value
    if unit is None or not math.isfinite(number):
        return value
    shown = f"{number:,.2f}".rstrip("0").rstrip(".")
    return f"{shown} {unit}"


def _list_details(outcome: Outcome | None) -> Sequence[tuple[str, str]]:
    """What the agent knows of a failure beside its sentence, in words."""
    failure = outcome.failure if outcome else None
    if failure is None or not failure.detail:
        return ()
    said = {
        key: format_duration(float(value) * 1000)
        if key == "silentForSeconds" and isinstance(value, int | float)
        else str(value + 1)
        if key == "order" and isinstance(value, int)
        else str(value)
        for key, value in failure.detail.items()
        if value is not None
    }
    kind = failure.kind.value.replace("_", " ")
    kind = kind if failure.kind in _ACRONYM_KINDS else kind.lower()
    return [("Kind", kind), *((_DETAILS.get(key, key), value) for key, value in said.items())]


def _vitals(page: PageSeen) -> Iterator[tuple[str, str, str, State]]:
    """Each measure of a page: its name, what it means, its value and what that is worth."""
    metrics = page.metrics
    measured = (
        ("TTFB", "time to first byte", metrics.ttfb_ms),
        ("FCP", "first contentful paint", metrics.fcp_ms),
        ("LCP", "largest contentful paint", metrics.lcp_ms),
        ("CLS", "cumulative layout shift", metrics.cls),
        ("TBT", "total blocking time", metrics.tbt_ms),
    )
    for name, meaning, value in measured:
        if value is None:
            yield name, meaning, format_duration(None), State.UNKNOWN
        else:
            said = f"{value:.2f}" if name == "CLS" else format_duration(value)
            yield name, meaning, said, _SCORES[score(name, value)]
