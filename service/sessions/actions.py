"""What happens to sessions once they go on; each is part of the caller's transaction."""

from sqlalchemy import Connection

from service.db.engine import announce
from service.http.errors import NotFoundError
from service.results.model import RunStatus
from service.sessions import store
from service.sessions.model import Session, SessionFinished, SessionStatus
from service.sessions.rules import deadline_ms, worse


def run_finished(
    connection: Connection, session_id: str, *, status: RunStatus, now_ms: int
) -> None:
    """A run of the session has its final result; the last one ends the session."""
    session = store.find(connection, session_id)
    if session is None or session.stopped_ms is not None:
        return
    pending = max(0, session.pending - 1)
    _settle(
        connection,
        session_id,
        status=worse(session.status, status),
        pending=pending,
        stopped_ms=now_ms if pending == 0 else None,
    )


def end_overdue(connection: Connection, session: Session, *, now_ms: int) -> Session:
    """The session, ended as TIMED_OUT if its deadline has passed."""
    if session.stopped_ms is not None or now_ms < deadline_ms(session):
        return session
    _time_out(connection, session, now_ms=now_ms)
    return store.find(connection, session.id) or session


def abandon(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """The check goes: its sessions end, as their runs never come back."""
    for session in store.open_of_check(connection, check_id):
        _time_out(connection, session, now_ms=now_ms)


def find(connection: Connection, account_id: str, session_id: str) -> Session:
    """A session of the account.

    Raises:
        NotFoundError: it has none with this id.
    """
    session = store.find_of(connection, account_id, session_id)
    if session is None:
        raise NotFoundError("No such check session.")
    return session


def _time_out(connection: Connection, session: Session, *, now_ms: int) -> None:
    _settle(
        connection,
        session.id,
        status=worse(session.status, RunStatus.TIMED_OUT),
        pending=session.pending,
        stopped_ms=now_ms,
    )


def _settle(
    connection: Connection,
    session_id: str,
    *,
    status: SessionStatus,
    pending: int,
    stopped_ms: int | None,
) -> None:
    changed = store.settle(
        connection, session_id, status=status, pending=pending, stopped_ms=stopped_ms
    )
    if changed and stopped_ms is not None:
        announce(connection, SessionFinished(session_id))
