"""Sessions as the API shows them; pure."""

from collections.abc import Iterable
from typing import Any

from service.http.times import spelled
from service.results.model import ResultType, RunStatus, StoredResult
from service.sessions.model import Session
from service.sessions.rules import shown_status


def shown(session: Session, *, base_url: str, now_ms: int) -> dict[str, Any]:
    """A session without its results."""
    until_ms = now_ms if session.stopped_ms is None else session.stopped_ms
    return {
        "checkSessionId": session.id,
        "checkSessionLink": f"{base_url}/v1/check-sessions/{session.id}",
        "checkId": session.check_id,
        "checkType": session.check_type,
        "name": session.name,
        "status": shown_status(session).value,
        "startedAt": spelled(session.started_ms),
        "stoppedAt": spelled(session.stopped_ms),
        "timeElapsed": max(0, until_ms - session.started_ms),
        "runLocations": list(session.locations),
    }


def with_results(
    session: Session, results: Iterable[StoredResult], *, base_url: str, now_ms: int
) -> dict[str, Any]:
    """A session and what came of it so far."""
    listed = [_result(one, session, base_url=base_url) for one in results]
    return {**shown(session, base_url=base_url, now_ms=now_ms), "results": listed}


def _result(stored: StoredResult, session: Session, *, base_url: str) -> dict[str, Any]:
    return {
        "checkResultId": stored.id,
        "checkResultLink": f"{base_url}/v1/check-results/{stored.check_id}/{stored.id}",
        "checkId": stored.check_id,
        "checkType": session.check_type,
        "name": session.name,
        "runLocation": stored.location,
        "resultType": stored.result_type.value,
        "hasErrors": stored.status.has_errors,
        "hasFailures": stored.status.has_failures,
        "isDegraded": stored.status is RunStatus.DEGRADED,
        "aborted": stored.result_type is ResultType.FINAL and stored.status is RunStatus.MISSED,
    }
