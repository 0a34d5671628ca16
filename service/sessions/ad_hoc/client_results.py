"""Results as the established service's command line reads them; pure.

It prints `checkRunData`, `logs`, `runError` and `scheduleError`, and takes a result for a success
unless it has `hasFailures`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins
from pydantic.alias_generators import to_camel

from contract.checks import HTTP_TYPES, CheckType
from contract.evidence import PlaywrightEvidence, ScriptEvidence
from contract.result import Outcome
from service.checks.types.registry import TYPES
from service.http.times import format_time
from service.results.model import StoredResult
from service.results.shapes import result_field
from service.results.views import explain, render, render_log, render_phased_log
from service.sessions.ad_hoc.written_snapshots import render_assets
from service.sessions.model import Session

_MOST_ERRORS: Final = 20


def render_client_result(
    stored: StoredResult, *, name: str, check_type: str, files_at: str | None = None
) -> dict[str, Any]:
    """A stored result, as `GET /v1/check-results/{checkId}/{id}` has it, and what is printed.

    `files_at`: what the paths of its files begin with. None: it is one of a stored check.
    """
    kind = CheckType(check_type)
    whole = render(stored, name=name, check_type=check_type, files_at=files_at)
    outcome = stored.detail.outcome if stored.detail else None
    data = _render_data(outcome, whole, kind) if outcome else None
    assets = render_assets(stored)
    return {
        **whole,
        **({"assets": assets} if assets else {}),
        "isCancelled": False,
        "checkRunData": data,
        "logs": _render_logs(stored, outcome, kind) if outcome else [],
        "runError": _find_error(outcome, data) if outcome else None,
        "scheduleError": explain(stored, kind) if stored.cause else None,
    }


def render_cancelled(session: Session, *, now_ms: int) -> dict[str, Any]:
    """What stands for the result of a run that was cancelled."""
    return {
        "name": session.name,
        "checkId": session.check_id,
        "checkType": session.check_type,
        "runLocation": session.locations[0] if session.locations else "",
        "resultType": "FINAL",
        "hasFailures": False,
        "hasErrors": False,
        "isDegraded": False,
        "isCancelled": True,
        "overMaxResponseTime": False,
        "responseTime": None,
        "startedAt": format_time(session.started_ms),
        "stoppedAt": format_time(now_ms),
        "checkRunData": None,
        "logs": [],
        "runError": None,
        "scheduleError": None,
    }


def _render_logs(stored: StoredResult, outcome: Outcome, kind: CheckType) -> Any:
    if kind in HTTP_TYPES:
        return render_phased_log(outcome, stored.started_ms)
    return render_log(outcome, stored.started_ms)


def _render_data(
    outcome: Outcome, whole: Mapping[str, Any], kind: CheckType
) -> dict[str, Any] | None:
    """What the check asked and what it saw. None: its type has scripts, whose errors say it."""
    if kind in HTTP_TYPES:
        http: Mapping[str, Any] = whole[to_camel(result_field(kind))]
        # Its printer reads the status of whatever answer there is.
        return {**http, "response": http["response"] or None}
    render_seen = TYPES[kind].render_seen
    return {**_render_monitor(outcome), **render_seen(outcome)} if render_seen else None


def _render_monitor(outcome: Outcome) -> dict[str, Any]:
    """The assertions, or why there was nothing to hold them against."""
    failure = outcome.failure
    return {
        "requestError": failure.message if failure and not outcome.assertions else None,
        "assertions": to_builtins(outcome.assertions),
    }


def _find_error(outcome: Outcome, data: Mapping[str, Any] | None) -> str | None:
    """Why a run did not pass, unless its data say so. None: it passed, or they do."""
    failure = outcome.failure
    if failure is None:
        return None
    if data is None:
        errors = list(_list_errors(outcome))[:_MOST_ERRORS]
        return "\n\n".join(errors) or failure.message
    is_told = data["requestError"] or any(one.error for one in outcome.assertions)
    return None if is_told else failure.message


def _list_errors(outcome: Outcome) -> Iterable[str]:
    match outcome.evidence:
        case PlaywrightEvidence() as seen:
            yield from seen.errors
            for test in seen.tests:
                yield from (f"{test.title}: {error}" for error in test.errors)
        case ScriptEvidence() as seen:
            for one in seen.errors:
                yield f"{one.message} ({one.where})" if one.where else one.message
