"""Stored results, turned into the API's shapes."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec import to_builtins
from pydantic.alias_generators import to_camel

from contract.checks import AGENT_TYPES, HTTP_TYPES, CheckType
from contract.evidence import (
    BrowserEvidence,
    HttpEvidence,
    PageSeen,
    PlaywrightEvidence,
    ScriptEvidence,
    SeenResponse,
)
from contract.result import ArtifactKind, Evidence, LogLine, Outcome, Result, Timings
from service.http.times import format_time
from service.results.model import Cause, RunStatus, StoredResult, assets_path
from service.results.shapes import result_field

_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "TTFB": (800, 1800),
    "FCP": (1800, 3000),
    "LCP": (2500, 4000),
    "CLS": (0.1, 0.25),
    "TBT": (200, 600),
}
"""Up to the first it is good, above the second poor."""


def render_browser(result: Result, started_ms: int, files_at: str) -> dict[str, Any]:
    """A browser check's result."""
    evidence = result.outcome.evidence
    seen = evidence if isinstance(evidence, BrowserEvidence) else None
    pages = seen.pages if seen else ()
    return {
        **_script(result, started_ms, files_at),
        "traceSummary": _summary(pages, seen),
        "pages": [_page(page) for page in pages],
        "playwrightTestVideos": _paths(result, files_at, "video"),
        "tls": to_builtins(seen.tls) if seen and seen.tls else None,
    }


def render_multi_step(result: Result, started_ms: int, files_at: str) -> dict[str, Any]:
    """A multi-step check's result."""
    return _script(result, started_ms, files_at)


def render_suite(result: Result, started_ms: int, files_at: str) -> dict[str, Any]:
    """A Playwright suite's result."""
    evidence = result.outcome.evidence
    seen = evidence if isinstance(evidence, PlaywrightEvidence) else None
    return {
        **_run(result, started_ms, files_at),
        "playwrightVersion": seen.playwright_version if seen else None,
        "nodeVersion": seen.node_version if seen else None,
        "counts": to_builtins(seen.counts) if seen else None,
        "tests": to_builtins(seen.tests) if seen else [],
        "errors": list(seen.errors) if seen else [],
        "truncated": seen.truncated if seen else False,
        "playwrightTestVideos": _paths(result, files_at, "video"),
    }


def _script(result: Result, started_ms: int, files_at: str) -> dict[str, Any]:
    evidence = result.outcome.evidence
    seen = evidence if isinstance(evidence, ScriptEvidence) else None
    return {
        "type": "PLAYWRIGHT_TEST" if seen and seen.playwright else "PLAYWRIGHT",
        **_run(result, started_ms, files_at),
        "runtimeVersion": seen.runtime_id if seen else None,
        "playwrightVersion": seen.playwright if seen else None,
        "tests": to_builtins(seen.tests) if seen else [],
        "errors": to_builtins(seen.errors) if seen else [],
        "requests": to_builtins(seen.requests) if seen else [],
        "steps": to_builtins(seen.steps) if seen else [],
        "stepsLeftOff": seen.steps_left_off if seen else 0,
    }


def _run(result: Result, started_ms: int, files_at: str) -> dict[str, Any]:
    outcome = result.outcome
    reports = _paths(result, files_at, "report")
    return {
        "startTime": started_ms,
        "endTime": started_ms + round(result.took_s * 1000),
        "jobLog": render_log(outcome, started_ms),
        "jobAssets": [artifact.name for artifact in outcome.artifacts],
        "playwrightTestTraces": _paths(result, files_at, "trace"),
        "playwrightTestJsonReportFile": reports[0] if reports else None,
    }


def render_log(outcome: Outcome, started_ms: int) -> list[dict[str, Any]]:
    """The lines of a run's log."""
    return _lines(outcome.log, started_ms)


def render_phased_log(outcome: Outcome, started_ms: int) -> dict[str, list[dict[str, Any]]]:
    """The lines of an API check's log; those of no script are the request's."""
    phases: dict[str, list[LogLine]] = {"setup": [], "request": [], "teardown": []}
    for line in outcome.log:
        phases[line.phase or "request"].append(line)
    return {phase: _lines(lines, started_ms) for phase, lines in phases.items()}


def _lines(lines: Iterable[LogLine], started_ms: int) -> list[dict[str, Any]]:
    return [
        {"time": started_ms + round(line.after_ms), "msg": line.message, "level": line.level}
        for line in lines
    ]


def _paths(result: Result, files_at: str, kind: ArtifactKind) -> list[str]:
    found = [one.name for one in result.outcome.artifacts if one.kind == kind]
    return [f"{files_at}/{quote(name)}" for name in found]


def _summary(pages: Iterable[PageSeen], seen: ScriptEvidence | None) -> dict[str, int]:
    return {
        "consoleErrors": sum(page.console_errors for page in pages),
        "networkErrors": sum(page.network_errors for page in pages),
        "documentErrors": sum(page.document_errors for page in pages),
        "userScriptErrors": seen.user_script_errors if seen else 0,
    }


def _page(page: PageSeen) -> dict[str, Any]:
    metrics = page.metrics
    values = {
        "TTFB": metrics.ttfb_ms,
        "FCP": metrics.fcp_ms,
        "LCP": metrics.lcp_ms,
        "CLS": metrics.cls,
        "TBT": metrics.tbt_ms,
    }
    return {
        "pageIndex": page.index,
        "url": page.url,
        "webVitals": {
            name: None if value is None else {"value": value, "score": score(name, value)}
            for name, value in values.items()
        },
        "pageTimings": {"onContentLoad": metrics.content_loaded_ms, "onLoad": metrics.load_ms},
        "consoleErrors": page.console_errors,
        "networkErrors": page.network_errors,
        "documentErrors": page.document_errors,
    }


def score(name: str, value: float) -> str:
    """What a measure of a page is worth, by the limits that its makers give."""
    good, poor = _LIMITS[name]
    if value <= good:
        return "GOOD"
    return "POOR" if value > poor else "NEEDS_IMPROVEMENT"


MOST_LISTED_LETTERS: Final = 1_000
"""A multiple of four, so that base64 stays readable."""
MOST_LISTED_ITEMS: Final = 100
_KEYS: Final = {kind: to_camel(result_field(kind)) for kind in AGENT_TYPES}
_SCRIPTED: Final = {
    CheckType.BROWSER: render_browser,
    CheckType.MULTI_STEP: render_multi_step,
    CheckType.PLAYWRIGHT: render_suite,
}
_CAUSES: Final = {
    Cause.NO_AGENT: (
        "No agent that runs {type} checks is connected at the location {location}: {remedy}."
    ),
    Cause.QUEUE_EXPIRED: (
        "No agent took the run in time: other runs used all slots (JOB_CONCURRENCY limits checks "
        "that need Node, UPTIME_CONCURRENCY the others), or no agent could reach "
        "this service. A script that hangs holds its slot until its limit."
    ),
    Cause.SERVICE_DOWN: (
        "The service was not running when the run was due or waited for an agent, or its clock was "
        "set forward."
    ),
    Cause.AGENT_LOST: "The agents that took the run disappeared before its end.",
    Cause.PAUSED: "The check was deactivated before the run began.",
    Cause.OVERLOADED: "The agents had no room for the run.",
    Cause.AGENT_ERROR: "The agents failed to execute the run; their logs say why.",
    Cause.UNREADABLE: (
        "The service could not decrypt a stored secret that the run needs, of the check or of its "
        "location's proxy; its log says which. Replace it with PUT."
    ),
}
_START_ONE: Final = (
    "start one with its key, or see on the page of the location why its agents cannot run them"
)
_NO_AGENT_YET: Final = "no agent can run them yet"


def render_listed(stored: StoredResult, *, name: str, check_type: str) -> dict[str, Any]:
    """A result as a list shows it: long texts and lists are cut."""
    whole = render(stored, name=name, check_type=check_type)
    cut: dict[str, Any] = _cut(whole)
    return {**cut, "isCut": stored.is_cut or cut != whole}


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MOST_LISTED_LETTERS]
    if isinstance(value, list | tuple):
        return type(value)(_cut(item) for item in value[:MOST_LISTED_ITEMS])
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return value


def render(
    stored: StoredResult, *, name: str, check_type: str, files_at: str | None = None
) -> dict[str, Any]:
    """A result as its answer.

    `files_at`: what the paths of its files begin with. None: it is one of a stored check.
    """
    outcome = stored.detail.outcome if stored.detail else None
    kind = CheckType(check_type)
    return {
        "id": stored.id,
        "name": name,
        "checkId": stored.check_id,
        "checkType": check_type,
        "checkRunId": stored.run_id,
        "sessionId": stored.session_id,
        "runLocation": stored.location,
        "runSource": stored.source,
        "resultType": stored.result_type.value,
        "attempts": stored.attempt,
        **_verdict(stored, outcome, kind),
        "scheduledAt": format_time(stored.scheduled_ms),
        "startedAt": format_time(stored.started_ms),
        "stoppedAt": format_time(stored.stopped_ms),
        "created_at": format_time(stored.created_ms),
        "dueTimes": stored.due_times or 1,
        "isCut": stored.is_cut,
        **dict.fromkeys(_KEYS.values()),
        **_render_seen(stored, kind, files_at or assets_path(stored.check_id, stored.id)),
    }


def explain(stored: StoredResult, kind: CheckType) -> str | None:
    """Why a run is no pass, as a sentence. None: it is one, or nobody says."""
    if stored.cause:
        remedy = _NO_AGENT_YET if kind is CheckType.AGENTIC else _START_ONE
        return _CAUSES[stored.cause].format(
            type=kind.value, location=stored.location, remedy=remedy
        )
    outcome = stored.detail.outcome if stored.detail else None
    if outcome is None:
        return None
    return outcome.failure.message if outcome.failure else outcome.degraded_because


def _verdict(stored: StoredResult, outcome: Outcome | None, kind: CheckType) -> dict[str, Any]:
    failure = outcome.failure if outcome else None
    because = explain(stored, kind) if stored.cause or failure else None
    time_ms = stored.response_time_ms
    return {
        "status": stored.status.value,
        "cause": stored.cause.value if stored.cause else None,
        "error": because,
        "failure": to_builtins(failure) if failure else None,
        "hasFailures": stored.status.has_failures,
        "hasErrors": stored.status.has_errors,
        "degradedBecause": outcome.degraded_because if outcome else None,
        "isDegraded": stored.status is RunStatus.DEGRADED,
        "overMaxResponseTime": stored.over_max_response_time,
        "responseTime": None if time_ms is None else math.floor(time_ms),
    }


def _render_seen(stored: StoredResult, kind: CheckType, files_at: str) -> dict[str, Any]:
    if stored.detail is None or kind not in _KEYS:
        return {}
    if kind in _SCRIPTED:
        return {_KEYS[kind]: _SCRIPTED[kind](stored.detail, stored.started_ms, files_at)}
    is_http = kind in HTTP_TYPES
    show = _http if is_http else _monitor
    return {_KEYS[kind]: show(stored.detail, stored.started_ms)}


def _monitor(result: Result, _started_ms: int) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "assertions": _assertions(outcome),
        "timings": to_builtins(outcome.timings),
        "evidence": _evidence(outcome.evidence),
        "requestError": None if outcome.assertions else _message(outcome),
    }


def _http(result: Result, started_ms: int) -> dict[str, Any]:
    outcome = result.outcome
    evidence = outcome.evidence if isinstance(outcome.evidence, HttpEvidence) else None
    response = evidence.response if evidence else None
    return {
        "assertions": _assertions(outcome),
        "request": _request(evidence) if evidence else None,
        "response": _response(response, evidence, outcome.timings) if response and evidence else {},
        "requestError": None if response else _message(outcome),
        "hops": to_builtins(evidence.hops) if evidence else [],
        "tls": to_builtins(evidence.tls) if evidence and evidence.tls else None,
        "remoteAddress": evidence.remote_address if evidence else None,
        "jobLog": render_phased_log(outcome, started_ms),
        "jobAssets": [artifact.name for artifact in outcome.artifacts],
        "pcapDataUrl": None,
    }


def _request(evidence: HttpEvidence) -> dict[str, Any]:
    sent = evidence.request
    return {
        "method": sent.method,
        "url": sent.url,
        "data": sent.body,
        "headers": sent.headers,
        "params": dict(parse_qsl(urlsplit(sent.url).query, keep_blank_values=True)),
    }


def _response(seen: SeenResponse, evidence: HttpEvidence, timings: Timings) -> dict[str, Any]:
    return {
        "status": seen.status_code,
        "statusText": seen.status_text,
        "httpVersion": seen.http_version,
        "headers": seen.headers,
        "body": seen.body,
        "bodyEncoding": seen.body_encoding,
        "bodyBytes": seen.body_bytes,
        "truncated": seen.truncated,
        "note": seen.note,
        "href": evidence.hops[-1].url if evidence.hops else evidence.request.url,
        "timings": _offsets(timings),
        "timingPhases": _phases(timings),
    }


def _phases(timings: Timings) -> dict[str, float | None]:
    """Phases as the established service names them: TLS falls into `firstByte`."""
    first_byte = timings.first_byte
    if first_byte is not None:
        first_byte += timings.tls or 0
    return {
        "wait": timings.wait,
        "dns": timings.dns,
        "tcp": timings.tcp,
        "tls": timings.tls,
        "firstByte": first_byte,
        "download": timings.download,
        "total": timings.total,
    }


def _offsets(timings: Timings) -> dict[str, float | None]:
    """When each phase ended, from the start; a phase that did not happen took no time."""
    phases = _phases(timings)
    socket = phases["wait"] or 0
    lookup = socket + (phases["dns"] or 0)
    connect = lookup + (phases["tcp"] or 0)
    return {
        "socket": socket,
        "lookup": lookup,
        "connect": connect,
        "response": connect + (phases["firstByte"] or 0),
        "end": phases["total"],
    }


def _assertions(outcome: Outcome) -> list[dict[str, Any]]:
    shown_assertions: list[dict[str, Any]] = to_builtins(outcome.assertions)
    return list(shown_assertions)


def _evidence(evidence: Evidence | None) -> Mapping[str, Any] | None:
    if evidence is None:
        return None
    seen: dict[str, Any] = to_builtins(evidence)
    return seen


def _message(outcome: Outcome) -> str | None:
    return outcome.failure.message if outcome.failure else None
