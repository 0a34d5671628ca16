"""What those who follow a test session are sent, in the form of the established service."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from contract.checks import CheckType
from service.results import actions as results
from service.results.model import RunStatus, StoredResult
from service.results.views import explain, render_log
from service.sessions import store
from service.sessions.ad_hoc.client_results import render_cancelled, render_client_result
from service.sessions.ad_hoc.views import files_path_of
from service.sessions.model import ProgressKind, RunProgressed, Session


@dataclass(frozen=True, slots=True)
class ProgressMessage:
    """One message about one run."""

    subtopic: str
    """`run-start`, `stream-logs`, `result` or `error`."""
    body: Any
    """JSON."""


def load_messages(
    connection: Connection, notice: RunProgressed, *, now_ms: int
) -> tuple[ProgressMessage, ...]:
    """The messages of a notice. None of them: its session or its result has gone."""
    if notice.kind is ProgressKind.STARTED:
        return (ProgressMessage("run-start", {}),)
    session = store.find_of(connection, notice.account_id, notice.sequence_id)
    if session is None:
        return ()
    if notice.kind is ProgressKind.CANCELLED:
        cancelled = render_cancelled(session, now_ms=now_ms)
        body = {"result": cancelled, "testResultId": None, "resultType": "FINAL"}
        return (ProgressMessage("result", body),)
    stored = results.find(connection, notice.check_id, notice.result_id or "")
    if stored is None:
        return ()
    if notice.kind is ProgressKind.ERROR:
        return (ProgressMessage("error", explain(stored, CheckType(session.check_type))),)
    files_at = files_path_of(session.test.test_session_id, stored.id) if session.test else None
    result = render_client_result(
        stored, name=session.name, check_type=session.check_type, files_at=files_at
    )
    body = {"result": result, "testResultId": stored.id, "resultType": stored.result_type.value}
    lines = _render_stream(stored) if _is_streamed(connection, session, stored) else []
    streamed = (ProgressMessage("stream-logs", {"logs": lines}),) if lines else ()
    return (*streamed, ProgressMessage("result", body))


def _is_streamed(connection: Connection, session: Session, stored: StoredResult) -> bool:
    """Whether the client prints the log of a run by this message alone.

    Logs of runs that did not pass, it prints with their results.
    """
    if session.check_type != CheckType.PLAYWRIGHT or stored.status is not RunStatus.PASSED:
        return False
    test = store.find_test(connection, session.test.test_session_id) if session.test else None
    return test is not None and test.streams_logs


def _render_stream(stored: StoredResult) -> list[dict[str, Any]]:
    lines = render_log(stored.detail.outcome, stored.started_ms) if stored.detail else []
    return [{"timestamp": one["time"], "message": one["msg"]} for one in lines]
