"""Test sessions, turned into the API's shapes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from contract.result import Artifact, ArtifactKind
from service.http.times import format_time
from service.results.model import ResultType, RunStatus, StoredResult
from service.sessions.model import Session, SessionStatus, TestSession, TestState, TestStatus

PATH: Final = "/v1/test-sessions"

PROVIDER: Final = "API"
"""Where all test sessions come from."""
COMMIT_FIELDS: Final = (
    *("repoUrl", "commitId", "commitOwner", "commitMessage", "branchName", "environment"),
)
_PLACES: Final[Mapping[ArtifactKind, tuple[str, str]]] = {
    "trace": ("testTraceLinks", "traces"),
    "video": ("videoLinks", "files"),
    "screenshot": ("screenshotLinks", "files"),
}
"""How links to files of a kind are called, and where below the page of the run they lead."""

_ENDED: Final[Mapping[SessionStatus, str]] = {
    SessionStatus.PASSED: "passed",
    SessionStatus.DEGRADED: "passed",
    SessionStatus.CANCELLED: "cancelled",
}
"""In which field lists name a run that has ended; all others have failed."""


def render_session(test: TestSession, *, base_url: str, now_ms: int) -> dict[str, Any]:
    """A test session without its results."""
    until_ms = now_ms if test.stopped_ms is None else test.stopped_ms
    return {
        "testSessionId": test.id,
        "testSessionLink": link_of(base_url, test.id),
        "name": test.name,
        "status": test.status.value,
        "startedAt": format_time(test.started_ms),
        "stoppedAt": format_time(test.stopped_ms),
        "timeElapsed": max(0, until_ms - test.started_ms),
        "metadata": dict(test.metadata),
    }


def render_entry(
    test: TestSession,
    states: Iterable[tuple[str, SessionStatus, bool]],
    *,
    base_url: str,
    now_ms: int,
) -> dict[str, Any]:
    """A test session as lists have it, with its runs and what its client said of the commit."""
    said = {name: test.metadata.get(name) for name in COMMIT_FIELDS}
    whole = render_session(test, base_url=base_url, now_ms=now_ms)
    runs: dict[str, list[str]] = {"running": [], "passed": [], "failed": [], "cancelled": []}
    for session_id, status, has_ended in states:
        runs[_ENDED.get(status, "failed") if has_ended else "running"].append(session_id)
    return {
        **whole,
        "id": test.id,
        "provider": PROVIDER,
        "created_at": whole["startedAt"],
        **said,
        **runs,
    }


def render_state(seen: TestState, *, base_url: str) -> dict[str, Any]:
    """A test session and what came of it so far."""
    return {
        **render_session(seen.test, base_url=base_url, now_ms=seen.now_ms),
        "results": list(_render_results(seen, base_url)),
    }


def render_scheduling(test: TestSession) -> dict[str, Any]:
    """How far its runs are handed out: all of them wait in the queue once it exists."""
    at = format_time(test.started_ms)
    return {
        "schedulingId": test.id,
        "testSessionId": test.id if test.is_recorded else None,
        "status": "SUCCEEDED",
        "checksTotal": test.checks,
        "error": None,
        "createdAt": at,
        "startedAt": at,
        "endedAt": at,
    }


def link_of(base_url: str, test_id: str) -> str:
    """Where people see a test session."""
    return f"{base_url}/test-sessions/{test_id}"


def files_path_of(test_id: str, result_id: str) -> str:
    """What the paths of all files of a test's result begin with."""
    return f"{PATH}/{test_id}/results/{result_id}/assets"


def _page_of(base_url: str, session: Session, stored: StoredResult) -> str:
    """Where people see how the run of one check at one location went."""
    return f"{base_url}/checks/try/{session.id}/at/{quote(stored.location, safe='')}"


def render_links(
    base_url: str, session: Session, stored: StoredResult, artifacts: Iterable[Artifact]
) -> dict[str, Any]:
    """Where people see a result, and those of its files that browsers show.

    The page has the files of the final result alone.
    """
    page = _page_of(base_url, session, stored)
    shown = artifacts if stored.result_type is ResultType.FINAL else ()
    links: dict[str, list[str]] = {name: [] for name, _ in _PLACES.values()}
    for one in shown:
        if one.kind in _PLACES:
            name, folder = _PLACES[one.kind]
            links[name].append(f"{page}/{folder}/{quote(one.name)}")
    return {"testResultLink": page, **links}


def _render_results(seen: TestState, base_url: str) -> Iterator[dict[str, Any]]:
    by_session: dict[str | None, list[StoredResult]] = {}
    for one in seen.results:
        by_session.setdefault(one.session_id, []).append(one)
    for session in seen.members:
        for one in by_session.get(session.id, ()):
            yield _render_result(one, session, _page_of(base_url, session, one))


def _render_result(stored: StoredResult, session: Session, link: str) -> dict[str, Any]:
    is_bad = stored.status.has_failures or stored.status.has_errors
    return {
        "testSessionResultId": stored.id,
        "testSessionResultLink": link,
        "checkId": session.test.tested_check_id if session.test else None,
        "checkType": session.check_type,
        "name": session.name,
        "runLocation": stored.location,
        "resultType": stored.result_type.value,
        "status": TestStatus.FAILED if is_bad else TestStatus.PASSED,
        "hasErrors": stored.status.has_errors,
        "hasFailures": stored.status.has_failures,
        "isDegraded": stored.status is RunStatus.DEGRADED,
        "aborted": stored.result_type is ResultType.FINAL and stored.status is RunStatus.MISSED,
    }
