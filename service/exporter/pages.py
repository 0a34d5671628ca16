"""What the exporter keeps in memory: counts of results, and the newest page of each account."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from service.db.engine import Database
from service.exporter.model import ResultStatus
from service.results.model import ResultType, RunStatus, Stored

KEEP_S: Final = 30.0
"""A page is not made anew for so long; Prometheus asks once a minute by default."""
_MOST_CHECKS: Final = 200_000
_MOST_PAGES: Final = 1_000
_STATUSES: Final[Mapping[RunStatus, ResultStatus]] = {
    RunStatus.PASSED: ResultStatus.PASSING,
    RunStatus.DEGRADED: ResultStatus.DEGRADED,
    RunStatus.FAILED: ResultStatus.FAILING,
    RunStatus.TIMED_OUT: ResultStatus.FAILING,
    RunStatus.MISSED: ResultStatus.MISSED,
    RunStatus.ERROR: ResultStatus.ERROR,
}


class ResultTallies:
    """Counts final results by check since the service started; the event loop's alone."""

    def __init__(self, *, most: int = _MOST_CHECKS) -> None:
        self._most = most
        self._counts: OrderedDict[str, dict[ResultStatus, int]] = OrderedDict()

    def count(self, notice: Stored) -> None:
        """Results were stored; the check that had none for longest is forgotten first."""
        for check_id, (result_type, status, _) in zip(notice.check_ids, notice.kinds, strict=True):
            if result_type is not ResultType.FINAL:
                continue
            counts = self._counts.setdefault(check_id, {})
            counts[_STATUSES[status]] = counts.get(_STATUSES[status], 0) + 1
            self._counts.move_to_end(check_id)
        while len(self._counts) > self._most:
            self._counts.popitem(last=False)

    def copy(self) -> Mapping[str, Mapping[ResultStatus, int]]:
        """The counts so far, for another thread to read."""
        return {check_id: dict(counts) for check_id, counts in self._counts.items()}


@dataclass(slots=True)
class _Page:
    text: bytes = b""
    good_until_s: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PageCache:
    """The newest page of each account; it is made once, however many ask for it."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pages: OrderedDict[str, _Page] = OrderedDict()

    async def find(self, account_id: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The account's page, made now if there is none that is young enough."""
        page = self._pages.setdefault(account_id, _Page())
        self._pages.move_to_end(account_id)
        if len(self._pages) > _MOST_PAGES:
            self._pages.popitem(last=False)
        async with page.lock:
            if self._monotonic() >= page.good_until_s:
                page.text = await make()
                page.good_until_s = self._monotonic() + KEEP_S
            return page.text


@dataclass(frozen=True, slots=True)
class Exporter:
    """The exporter's memory."""

    tallies: ResultTallies
    pages: PageCache


def exporter_of(database: Database, monotonic: Callable[[], float]) -> Exporter:
    """An exporter that counts what the database stores from now on."""
    tallies = ResultTallies()
    database.listen(Stored, tallies.count)
    return Exporter(tallies, PageCache(monotonic=monotonic))
