"""Waiting for the end of a session."""

from service.db.engine import Database
from service.live.waiters import Waiters
from service.sessions import store
from service.sessions.model import SessionFinished


class SessionWaiters(Waiters):
    """Who waits for which session."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, name="sessions", list_open=store.list_open)
        database.listen(SessionFinished, lambda finished: self.wake([finished.session_id]))
