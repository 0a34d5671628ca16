"""Results as the API shows them: the established service's shape, and what it has no room for."""

import math
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import to_builtins
from pydantic.alias_generators import to_camel

from contract.checks import AGENT_TYPES, HTTP_TYPES, CheckType
from contract.http_evidence import HttpEvidence, SeenResponse
from contract.result import Evidence, Outcome, Result, Timings
from service.http.times import spelled
from service.results import script_views
from service.results.model import Cause, RunStatus, StoredResult
from service.results.shapes import result_field

MOST_LISTED_LETTERS: Final = 1_000
"""A multiple of four, so that base64 stays readable."""
MOST_LISTED_ITEMS: Final = 100
_KEYS: Final = {kind: to_camel(result_field(kind)) for kind in AGENT_TYPES}
_SCRIPTED: Final = {
    CheckType.BROWSER: script_views.browser,
    CheckType.MULTI_STEP: script_views.multi_step,
    CheckType.PLAYWRIGHT: script_views.suite,
}
_CAUSES: Final = {
    Cause.NO_AGENT: (
        "No agent that runs {type} checks is connected at the location {location}: {mend}."
    ),
    Cause.QUEUE_EXPIRED: (
        "No agent took the run in time: other runs held all their slots (JOB_CONCURRENCY of the "
        "agents for what needs Node, UPTIME_CONCURRENCY for the rest), or no agent could reach "
        "this service. A script that hangs holds its slot until its limit."
    ),
    Cause.AGENT_LOST: "The agents that took the run went away before its end.",
    Cause.PAUSED: "The check was deactivated before the run began.",
    Cause.OVERLOADED: "The agents had no room for the run.",
    Cause.AGENT_ERROR: "The agents failed to do the run; their logs say why.",
    Cause.UNREADABLE: (
        "The service could not open a stored secret that the run needs, of the check or of its "
        "location's proxy; its log says which. Set it anew by PUT."
    ),
}
_START_ONE: Final = "start one with its key"
_NO_AGENT_YET: Final = "no agent can run them yet"


def listed(stored: StoredResult, *, name: str, check_type: str) -> dict[str, Any]:
    """A result as a list shows it: long texts and lists are cut."""
    whole = shown(stored, name=name, check_type=check_type)
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


def shown(stored: StoredResult, *, name: str, check_type: str) -> dict[str, Any]:
    """A result as its answer."""
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
        "scheduledAt": spelled(stored.scheduled_ms),
        "startedAt": spelled(stored.started_ms),
        "stoppedAt": spelled(stored.stopped_ms),
        "created_at": spelled(stored.created_ms),
        "isCut": stored.is_cut,
        **dict.fromkeys(_KEYS.values()),
        **_seen(stored, kind),
    }


def _verdict(stored: StoredResult, outcome: Outcome | None, kind: CheckType) -> dict[str, Any]:
    failure = outcome.failure if outcome else None
    because = failure and failure.message
    if stored.cause:
        mend = _NO_AGENT_YET if kind is CheckType.AGENTIC else _START_ONE
        because = _CAUSES[stored.cause].format(type=kind.value, location=stored.location, mend=mend)
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


def _seen(stored: StoredResult, kind: CheckType) -> dict[str, Any]:
    if stored.detail is None or kind not in _KEYS:
        return {}
    if kind in _SCRIPTED:
        return {_KEYS[kind]: _SCRIPTED[kind](stored.detail, stored.started_ms, stored.id)}
    is_http = kind in HTTP_TYPES
    show = _http if is_http else _monitor
    return {_KEYS[kind]: show(stored.detail, stored.started_ms)}


def _monitor(result: Result, _started_ms: int) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "assertions": _assertions(outcome),
        "timings": to_builtins(outcome.timings),
        "evidence": _evidence(outcome.evidence),
        "requestError": None if outcome.evidence else _message(outcome),
    }


def _http(result: Result, started_ms: int) -> dict[str, Any]:
    outcome = result.outcome
    evidence = outcome.evidence if isinstance(outcome.evidence, HttpEvidence) else None
    response = evidence.response if evidence else None
    return {
        "assertions": _assertions(outcome),
        "request": _request(evidence) if evidence else None,
        "response": _response(response, evidence, outcome.timings)
        if response and evidence
        else None,
        "requestError": None if response else _message(outcome),
        "hops": to_builtins(evidence.hops) if evidence else [],
        "tls": to_builtins(evidence.tls) if evidence and evidence.tls else None,
        "remoteAddress": evidence.remote_address if evidence else None,
        "jobLog": script_views.phased_log(outcome, started_ms),
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
