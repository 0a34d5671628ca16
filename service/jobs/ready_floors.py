"""From where on claims look for the jobs of a location that are ready.

PostgreSQL keeps what was deleted for as long as any transaction may still see it. A claim that
began at the oldest job would pass all those rows each time, while a long query runs elsewhere.
"""

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from contract.checks import CheckType, Lane

RESCAN_MS: Final = 5_000
"""The longest wait of a job that another process had locked, and then left in the queue."""
Place = tuple[int, int]
"""A job's due time and id: the order in which jobs of one priority are claimed."""
ReadyKey = tuple[Lane, frozenset[CheckType], int]
"""What a search asks for; the last is the priority."""
_BEGIN: Final[Place] = (0, 0)


@dataclass(slots=True)
class _Floor:
    place: Place
    whole_ms: int
    """When all was searched last."""


@dataclass(slots=True)
class ReadyFloors:
    """The first job that each search found, below which there is none, of one location.

    Claims search on the database's thread, one after the other; notices come on the event loop.
    """

    _floors: dict[ReadyKey, _Floor] = field(default_factory=dict)
    _announced: deque[int] = field(default_factory=deque)
    """Due times since the last search that are earlier than those before them."""

    def announce(self, due_ms: int) -> None:
        """A job was put into the queue, or came back to it: the next search finds it."""
        with suppress(IndexError):  # a search has taken it meanwhile
            if self._announced[-1] <= due_ms:
                return
        self._announced.append(due_ms)

    def begin(self, key: ReadyKey, *, now_ms: int) -> Place:
        """Where a search begins: now and then at the very first job."""
        while self._announced:
            place = (self._announced.popleft(), 0)
            for floor in self._floors.values():
                floor.place = min(floor.place, place)
        floor = self._floors.setdefault(key, _Floor(_BEGIN, now_ms))
        if not 0 <= now_ms - floor.whole_ms < RESCAN_MS:  # or the clock was set back
            floor.place, floor.whole_ms = _BEGIN, now_ms
        return floor.place

    def end(self, key: ReadyKey, first: Place) -> None:
        """The first job that the search found; without any, its own time and 0."""
        self._floors[key].place = first
