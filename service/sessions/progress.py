"""What has happened to the runs of test sessions, for those who may have missed a notice of it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict

from sqlalchemy import Connection

from service.results import actions as results
from service.results.model import StoredResult
from service.sessions import store
from service.sessions.model import Followed, ProgressKind, RunProgressed, SessionStatus


def list_progress(
    connection: Connection, account_id: str, suite_ids: Collection[str]
) -> tuple[RunProgressed, ...]:
    """All that was announced of the runs of an account's suites, as far as it is stored.

    That a run has begun is known once it has a result.
    """
    followed = store.list_followed(connection, account_id, suite_ids) if suite_ids else {}
    stored = results.of_sessions(connection, followed.keys()) if followed else {}
    return tuple(
        event
        for session_id, (one, status) in followed.items()
        for event in _events(session_id, one, stored.get(session_id, ()), status)
    )


def _events(
    session_id: str, followed: Followed, stored: Sequence[StoredResult], status: SessionStatus
) -> Iterator[RunProgressed]:
    def event(kind: ProgressKind, result_id: str | None = None) -> RunProgressed:
        return RunProgressed(
            kind=kind, sequence_id=session_id, result_id=result_id, **asdict(followed)
        )

    if any(one.cause is None for one in stored):
        yield event(ProgressKind.STARTED)
    for one in stored:
        yield event(ProgressKind.ERROR if one.cause else ProgressKind.RESULT, one.id)
    if status is SessionStatus.CANCELLED:
        yield event(ProgressKind.CANCELLED)
