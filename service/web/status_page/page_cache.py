"""Status pages in memory: each is read once for all who ask, and outlives the database.

A copy is used for some seconds, or until something changes. Whoever asks then has it read anew, and
all who ask meanwhile wait for that one reading. Where the database does not answer, the last copy
does.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.db.engine import DatabaseBusyError, DatabaseUnusableError
from service.http.errors import ApiError
from service.web.status_page.documents import PageDocuments
from service.web.status_page.snapshot import Snapshot

log = structlog.get_logger()

FRESH_S: Final = 15.0
PATIENCE_S: Final = 2.0
"""How long visitors wait for the database while there is a copy to show."""
_RETRY_S: Final = 5.0
"""How long the database is left alone after it has not answered."""
_MOST_PAGES: Final = 256
_MOST_BYTES: Final = 64 * 1024 * 1024
_AWAY: Final = (
    SQLAlchemyError,
    DatabaseBusyError,
    DatabaseUnusableError,
    OSError,  # a time-out, too
    RuntimeError,  # what its threads raise once it is closed
)


class RecordsAwayError(ApiError):
    """503: the database does not answer, and there is no copy."""

    status = 503


@dataclass(frozen=True, slots=True)
class Copy:
    """A page as it was read."""

    documents: PageDocuments
    generation: int
    """How many changes there had been before."""
    read_at_s: float

    @property
    def snapshot(self) -> Snapshot:
        """What was read."""
        return self.documents.snapshot


@dataclass(frozen=True, slots=True)
class Shown:
    """A copy, and how old it is."""

    documents: PageDocuments
    age_s: float
    is_last: bool
    """Whether the database does not answer, so that this may be out of date."""


class PageCache:
    """The copies of all pages that visitors asked for lately."""

    def __init__(
        self,
        read: Callable[[str], Awaitable[PageDocuments | None]],
        *,
        monotonic: Callable[[], float],
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        self._copies: OrderedDict[str, Copy] = OrderedDict()
        self._renewals: dict[str, asyncio.Task[Copy | None]] = {}
        self._generation = 0
        self._retry_at_s = 0.0

    def expire(self, _notice: object) -> None:
        """Something changed: every copy is read anew before it is shown again."""
        self._generation += 1

    def has(self, url: str) -> bool:
        """Whether there is a copy, however old."""
        return url in self._copies

    async def find(self, url: str) -> Shown | None:
        """The page of an address. None: there is none.

        Raises:
            RecordsAwayError: the database does not answer, and there is no copy.
        """
        copy = self._copies.get(url)
        if copy is not None and self._is_fresh(copy):
            self._copies.move_to_end(url)
            return self._show(copy, is_last=False)
        if self._monotonic() >= self._retry_at_s:
            try:
                renewed = await self._renew(url, patience_s=PATIENCE_S if copy else None)
            except _AWAY as problem:
                self._note_away(problem)
            else:
                return self._show(renewed, is_last=False) if renewed else None
        if copy is None:
            raise RecordsAwayError(
                "The records of this page cannot be read at the moment; try again in a minute.",
                headers={"retry-after": "30"},
            )
        return self._show(copy, is_last=True)

    def _is_fresh(self, copy: Copy) -> bool:
        is_young = self._monotonic() - copy.read_at_s < FRESH_S
        return is_young and copy.generation == self._generation

    def _show(self, copy: Copy, *, is_last: bool) -> Shown:
        return Shown(copy.documents, self._monotonic() - copy.read_at_s, is_last)

    async def _renew(self, url: str, *, patience_s: float | None) -> Copy | None:
        """Wait for the reading that is under way, or begin one."""
        renewal = self._renewals.get(url)
        if renewal is None:
            renewal = asyncio.create_task(self._read_copy(url), name="status-page")
            self._renewals[url] = renewal
            renewal.add_done_callback(lambda done: self._end_renewal(url, done))
        async with asyncio.timeout(patience_s):
            return await asyncio.shield(renewal)

    def _end_renewal(self, url: str, done: "asyncio.Task[Copy | None]") -> None:
        del self._renewals[url]
        if not done.cancelled():
            done.exception()  # whoever waited has seen it, or nobody did

    async def _read_copy(self, url: str) -> Copy | None:
        generation, began_s = self._generation, self._monotonic()
        documents = await self._read(url)
        if documents is None:
            self._copies.pop(url, None)
            return None
        copy = Copy(documents, generation, began_s)
        self._copies[url] = copy
        self._copies.move_to_end(url)
        self._make_room()
        return copy

    def _make_room(self) -> None:
        size = sum(copy.documents.size_bytes for copy in self._copies.values())
        while len(self._copies) > 1 and (len(self._copies) > _MOST_PAGES or size > _MOST_BYTES):
            _, gone = self._copies.popitem(last=False)
            size -= gone.documents.size_bytes

    def _note_away(self, problem: Exception) -> None:
        self._retry_at_s = self._monotonic() + _RETRY_S
        log.warning("status_page.records_away", reason=str(problem) or type(problem).__name__)
