"""Changes that wait for an engine, and whom it tells what came of them."""

import asyncio
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from service.db.engine import DatabaseFullError, NoticeT

log = structlog.get_logger()


MOST_TOGETHER: Final = 64
"""Changes that share a transaction."""
_DISK_WORKS_AFTER_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Change:
    """A change in line, and who waits for it."""

    change: Callable[[Connection], Any]
    waiter: asyncio.Future[Any]
    give_up: float
    """By the monotonic clock: a change that could not begin until then is refused."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a change."""

    waiter: asyncio.Future[Any]
    value: Any
    problem: Exception | None
    """None: it is committed, and `value` is what it returned."""
    notices: list[object]
    wrote: bool = False
    """It changed rows, which are on the disk."""


ChangeQueue = queue.SimpleQueue[Change | None]
"""None: it is closed."""


def take_group(line: ChangeQueue) -> deque[Change]:
    """Wait for changes, and take those that are there; none at all once the queue is closed."""
    group: deque[Change] = deque()
    change = line.get()
    while change is not None:
        group.append(change)
        if len(group) == MOST_TOGETHER:
            return group
        try:
            change = line.get_nowait()
        except queue.Empty:
            return group
    if group:
        line.put(None)
    return group


class DiskLog:
    """One line when the disk begins to fail, and one when it has worked again for a while."""

    def __init__(self) -> None:
        self._began_at: float | None = None
        """None: the disk works."""
        self._failed_at = 0.0
        self._refused = 0

    def note(self, settled: Iterable[Settled]) -> None:
        """Changes were stored, or refused."""
        for one in settled:
            if isinstance(one.problem, DatabaseFullError):
                self._note_refused(one.problem)
            elif self._began_at is not None and one.wrote:
                self._note_stored(self._began_at)

    def _note_refused(self, problem: Exception) -> None:
        self._failed_at = time.monotonic()
        self._refused += 1
        if self._began_at is None:
            self._began_at = self._failed_at
            log.error("database.disk_full", error=str(problem.__cause__))

    def _note_stored(self, began_at: float) -> None:
        """Small changes may find room in the log's file while the disk is full."""
        if time.monotonic() - self._failed_at < _DISK_WORKS_AFTER_S:
            return
        for_s = round(self._failed_at - began_at)
        log.info("database.disk_works", refused=self._refused, for_s=for_s)
        self._began_at, self._refused = None, 0


class Listeners:
    """Who is told of what; on the event loop alone."""

    def __init__(self) -> None:
        self._by_kind: dict[type, list[Callable[[Any], None]]] = {}

    def add(self, kind: type[NoticeT], listener: Callable[[NoticeT], None]) -> None:
        """Have the listener called with each notice of this kind."""
        self._by_kind.setdefault(kind, []).append(listener)

    def kinds(self) -> dict[str, type]:
        """The kinds that anybody listens to, by name."""
        return {kind.__name__: kind for kind in self._by_kind}

    def settle(self, settled: Iterable[Settled]) -> None:
        """Answer whoever waits for these changes, and tell what they announced."""
        done = list(settled)
        for one in done:
            # A waiter that was cancelled meanwhile does not want to know; the change stands.
            if one.waiter.done():
                pass
            elif one.problem is not None:
                one.waiter.set_exception(one.problem)
            else:
                one.waiter.set_result(one.value)
        for notice in chain.from_iterable(one.notices for one in done):
            self.tell(notice)

    def tell(self, notice: object) -> None:
        """Call the listeners of a notice; one that fails keeps it from no other."""
        for listener in self._by_kind.get(type(notice), ()):
            try:
                listener(notice)
            except Exception:
                # Whoever listens is not ours to know, and the line must go on.
                log.exception("database.listener_failed", notice=type(notice).__name__)
