"""What those who follow a test session are sent, in the form of the established service."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from contract.checks import CheckType
from service.results import actions as results
from service.results.views import explain
from service.sessions import store
from service.sessions.ad_hoc.client_results import render_cancelled, render_client_result
from service.sessions.ad_hoc.views import files_path_of
from service.sessions.model import ProgressKind, RunProgressed


@dataclass(frozen=True, slots=True)
class ProgressMessage:
    """One message about one run."""

    subtopic: str
    """`run-start`, `result` or `error`."""
    body: Any
    """JSON."""


def load_message(
    connection: Connection, notice: RunProgressed, *, now_ms: int
) -> ProgressMessage | None:
    """The message of a notice. None: its session or its result has gone."""
    if notice.kind is ProgressKind.STARTED:
        return ProgressMessage("run-start", {})
    session = store.find_of(connection, notice.account_id, notice.sequence_id)
    if session is None:
        return None
    if notice.kind is ProgressKind.CANCELLED:
        cancelled = render_cancelled(session, now_ms=now_ms)
        body = {"result": cancelled, "testResultId": None, "resultType": "FINAL"}
        return ProgressMessage("result", body)
    stored = results.find(connection, notice.check_id, notice.result_id or "")
    if stored is None:
        return None
    if notice.kind is ProgressKind.ERROR:
        return ProgressMessage("error", explain(stored, CheckType(session.check_type)))
    files_at = files_path_of(session.test.test_session_id, stored.id) if session.test else None
    result = render_client_result(
        stored, name=session.name, check_type=session.check_type, files_at=files_at
    )
    body = {"result": result, "testResultId": stored.id, "resultType": stored.result_type.value}
    return ProgressMessage("result", body)
