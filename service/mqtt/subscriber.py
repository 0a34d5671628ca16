"""What one connected client has subscribed to, and what it has not been told yet."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Final

from service.accounts.model import Caller
from service.mqtt.rules import matches, suite_of
from service.sessions.model import RunProgressed

MOST_FILTERS: Final = 20
"""How many filters a client may have subscribed to at a time."""
MOST_PENDING: Final = 2_000
"""How much may wait for a client; instead of more, all that happened is read anew."""


class CloseReason(StrEnum):
    """Why the service ends a connection."""

    GIVE_WAY = "others wait for the place"
    KEY_ENDED = "the API key has ended"
    SHUTDOWN = "the service is shutting down"
    TAKEN_OVER = "the client has connected again"


@dataclass(slots=True, eq=False)
class Subscriber:
    """A connected client; the event loop's alone."""

    client_id: str = ""
    caller: Caller | None = None
    """None: the client has not said yet who it is."""
    close_reason: CloseReason | None = None
    """None: the connection goes on."""
    _filters: dict[str, str] = field(default_factory=dict)
    """The suite that each filter is about."""
    _pending: dict[RunProgressed, None] = field(default_factory=dict)
    """What happened, and the client was not told yet, the oldest first."""
    _suites_to_read: set[str] = field(default_factory=set)
    """Suites of which something may have happened that is not pending."""
    _told: dict[str, set[RunProgressed]] = field(default_factory=dict)
    """What the client was told, by suite: nothing is told twice."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def subscribe(self, topic_filter: str) -> bool:
        """Add a filter; false: it is not one of the account's suites, or there are too many."""
        suite = suite_of(topic_filter, self.caller.account_id) if self.caller else None
        is_full = len(self._filters) >= MOST_FILTERS and topic_filter not in self._filters
        if suite is None or is_full:
            return False
        self._filters[topic_filter] = suite
        self._told.setdefault(suite, set())
        self._suites_to_read.add(suite)
        self._news.set()
        return True

    def unsubscribe(self, topic_filter: str) -> None:
        """Remove a filter, if there is such a one."""
        suite = self._filters.pop(topic_filter, None)
        if suite is not None and suite not in self._filters.values():
            del self._told[suite]
            self._suites_to_read.discard(suite)

    def wants(self, topic: str) -> bool:
        """Whether a filter matches the topic."""
        return any(matches(one, topic) for one in self._filters)

    def tell(self, progress: RunProgressed) -> None:
        """Something happened to a run of any account."""
        told = self._told.get(progress.suite_id)
        is_own = self.caller is not None and progress.account_id == self.caller.account_id
        if told is None or progress in told or not is_own:
            return
        if len(self._pending) < MOST_PENDING:
            self._pending[progress] = None
        else:
            self._suites_to_read.add(progress.suite_id)
        self._news.set()

    def look_again(self) -> None:
        """Something may have happened of which nobody has told."""
        if self._told:
            self._suites_to_read.update(self._told)
            self._news.set()

    def close(self, reason: CloseReason) -> None:
        """End the connection as soon as possible; the first reason counts."""
        self.close_reason = self.close_reason or reason
        self._news.set()

    async def wait(self) -> None:
        """Return when there is something to tell, or the connection is to end."""
        await self._news.wait()
        self._news.clear()

    def take_suites(self) -> frozenset[str]:
        """The suites of which all that happened is to be read."""
        suites, self._suites_to_read = frozenset(self._suites_to_read), set()
        return suites

    def next(self, most: int) -> tuple[RunProgressed, ...]:
        """The oldest of what is pending; it stays so until the client was told."""
        return tuple(islice(self._pending, most))

    def note_told(self, events: Iterable[RunProgressed]) -> None:
        """The client was told of these, and is not again."""
        for event in events:
            self._pending.pop(event, None)
            if (told := self._told.get(event.suite_id)) is not None:
                told.add(event)
