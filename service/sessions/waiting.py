"""Waiting for the end of a session, without a lost wake-up and without asking the database."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from service.db.engine import Database
from service.sessions.model import SessionFinished


class SessionWaiters:
    """Who waits for which session."""

    def __init__(self, database: Database) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closed = False
        database.listen(SessionFinished, self._wake)

    @contextmanager
    def register(self, session_id: str) -> Iterator[asyncio.Event]:
        """An event that is set when the session ends; register before looking at its row."""
        event = asyncio.Event()
        if self._closed:
            event.set()
        waiting = self._waiting.setdefault(session_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(session_id, None)

    def close(self) -> None:
        """Send everyone home: the service is shutting down."""
        self._closed = True
        for waiting in self._waiting.values():
            for event in waiting:
                event.set()

    def _wake(self, finished: SessionFinished) -> None:
        for event in self._waiting.get(finished.session_id, ()):
            event.set()
