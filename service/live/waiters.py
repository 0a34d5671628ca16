"""Waiting for the end of something, without a lost wake-up and without asking the database."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import Connection

from service.db.engine import Database, DatabaseBusyError, NoticesLost

log = structlog.get_logger()


class Waiters:
    """Who waits for the end of which thing of one kind; things are named by their ids.

    Whoever listens for the notices of ends calls `wake`.
    """

    def __init__(
        self,
        database: Database,
        *,
        name: str,
        list_open: Callable[[Connection, Collection[str]], Collection[str]],
    ) -> None:
        self._database = database
        self._name = name
        self._list_open = list_open
        """Those that have not ended: read where a notice may be lost."""
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closed = False
        self._look: asyncio.Task[None] | None = None
        """Reads which of them have ended. None: it never had to."""
        database.listen(NoticesLost, self._start_look)

    @contextmanager
    def register(self, thing_id: str) -> Iterator[asyncio.Event]:
        """An event that is set when the thing ends; register before looking at its row."""
        event = asyncio.Event()
        if self._closed:
            event.set()
        waiting = self._waiting.setdefault(thing_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(thing_id, None)

    def close(self) -> None:
        """Send everyone home: the service is shutting down."""
        self._closed = True
        if self._look is not None:
            self._look.cancel()
        for waiting in self._waiting.values():
            for event in waiting:
                event.set()

    @property
    def is_closed(self) -> bool:
        """Whether the service is shutting down."""
        return self._closed

    def wake(self, thing_ids: Iterable[str]) -> None:
        """These have ended."""
        for thing_id in thing_ids:
            for event in self._waiting.get(thing_id, ()):
                event.set()

    def _start_look(self, _lost: NoticesLost) -> None:
        is_looking = self._look is not None and not self._look.done()
        if self._waiting and not is_looking and not self._closed:
            self._look = asyncio.create_task(self._wake_ended(), name=f"{self._name}.ended")

    async def _wake_ended(self) -> None:
        """Wake those whose thing has ended, of which the notice was lost."""
        waiting = set(self._waiting)
        try:
            is_open = await self._database.read(lambda c: self._list_open(c, waiting))
        except DatabaseBusyError as problem:  # the next look comes soon
            log.warning("waiters.look_postponed", kind=self._name, reason=str(problem))
        else:
            self.wake(waiting.difference(is_open))
