"""Announces what happens to the runs of test sessions; each is part of the caller's transaction."""

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import Connection

from service.db.engine import announce
from service.sessions import store
from service.sessions.model import ProgressKind, RunProgressed


def announce_started(connection: Connection, session_ids: Iterable[str]) -> None:
    """Agents have claimed runs of these sessions."""
    for session_id in session_ids:
        announce_progress(connection, session_id, ProgressKind.STARTED)


def announce_progress(
    connection: Connection, session_id: str, kind: ProgressKind, *, result_id: str | None = None
) -> None:
    """Something happened to a run of the session; nobody is told unless somebody follows it."""
    if followed := store.find_followed(connection, session_id):
        notice = RunProgressed(
            kind=kind, sequence_id=session_id, result_id=result_id, **asdict(followed)
        )
        announce(connection, notice)
