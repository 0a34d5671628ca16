"""Waiting for the end of a session, without a lost wake-up and without asking the database."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import structlog

from service.db.engine import Database, DatabaseBusyError, NoticesLost
from service.sessions import store
from service.sessions.model import SessionFinished

log = structlog.get_logger()


class SessionWaiters:
    """Who waits for which session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closed = False
        self._look: asyncio.Task[None] | None = None
        """Reads which of them have ended. None: it never had to."""
        database.listen(SessionFinished, lambda finished: self._wake([finished.session_id]))
        database.listen(NoticesLost, self._start_look)

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
        if self._look is not None:
            self._look.cancel()
        for waiting in self._waiting.values():
            for event in waiting:
                event.set()

    def _wake(self, session_ids: Iterable[str]) -> None:
        for session_id in session_ids:
            for event in self._waiting.get(session_id, ()):
                event.set()

    def _start_look(self, _lost: NoticesLost) -> None:
        is_looking = self._look is not None and not self._look.done()
        if self._waiting and not is_looking and not self._closed:
            self._look = asyncio.create_task(self._wake_ended(), name="sessions.ended")

    async def _wake_ended(self) -> None:
        """Wake those whose session has ended, of which the notice was lost."""
        waiting = set(self._waiting)
        try:
            is_open = await self._database.read(lambda c: store.list_open(c, waiting))
        except DatabaseBusyError as problem:  # the next look comes soon
            log.warning("sessions.look_postponed", reason=str(problem))
        else:
            self._wake(waiting.difference(is_open))
