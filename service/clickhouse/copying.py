"""Copying results: each hour that was rolled up is sent as a whole, and again when it changes.

What has to be copied is marked in the database, and a mark goes only once ClickHouse has the hour:
a crash copies some results twice, which ClickHouse counts once.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import actions as analytics
from service.analytics.actions import HourToCopy
from service.analytics.windows import HOUR_MS
from service.analytics.worker import SqlResults
from service.checks import actions as checks
from service.clickhouse.copies import ClickHouse
from service.clickhouse.model import ArchiveError, CopyState
from service.clock import Clock
from service.db.engine import Database
from service.results.model import Finished

log = structlog.get_logger()

GROUP: Final = 200
"""How many hours one service takes at a time."""
_LEASE_MS: Final = 120_000
"""How long others leave them to it."""
_MOST_BYTES: Final = 32_000_000
"""About so much of what agents sent goes in one insert."""
_CHECKS: Final = 20
"""How many checks one transaction marks when copying begins."""
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0


class CopyWorker:
    """Copies to ClickHouse what is marked; alone in waiting for it."""

    def __init__(
        self,
        clickhouse: ClickHouse,
        clock: Clock,
        *,
        monotonic: Callable[[], float],
        report: Callable[[CopyState], None],
    ) -> None:
        self._clickhouse = clickhouse
        self._clock = clock
        self._monotonic = monotonic
        self._report = report
        self._is_on = False
        self._has_table = False
        self._problem: str | None = None
        """Why the last attempt failed. None: it did not."""
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0

    async def act(self, database: Database) -> int:
        """Copy some hours; how many. While ClickHouse is away, look now and then."""
        if not self._is_on:
            if not await database.read(analytics.is_copying):
                await _mark_all(database)
            self._is_on = True
        if self._monotonic() < self._retry_at:
            return 0
        try:
            hours, rows = await self._copy(database)
        except ArchiveError as problem:
            self._fail(problem.reason)
            hours, rows = 0, 0
        else:
            self._succeed()
        waiting = await database.read(analytics.count_copies)
        is_up = self._problem is None
        self._report(CopyState(is_up=is_up, hours_waiting=waiting, rows=rows))
        return hours

    async def _copy(self, database: Database) -> tuple[int, int]:
        """How many hours were copied, and how many results they have."""
        if not self._has_table:
            if not await asyncio.to_thread(self._clickhouse.has_table):
                # It is new, or emptied: what was copied elsewhere is not there.
                await _mark_all(database)
            await asyncio.to_thread(self._clickhouse.create_table)
            self._has_table = True
        if not await database.read(partial(analytics.has_copies_due, clock=self._clock)):
            return 0, 0
        claim = partial(analytics.claim_copies, clock=self._clock, lease_ms=_LEASE_MS, most=GROUP)
        claimed = rest = await database.write(claim)
        rows = 0
        while rest:
            version, finals, done = await database.read(partial(self._read, due=rest))
            await asyncio.to_thread(self._clickhouse.insert, finals, version=version)
            await database.write(partial(analytics.finish_copies, due=rest[:done]))
            rest, rows = rest[done:], rows + len(finals)
        return len(claimed), rows

    def _read(
        self, connection: Connection, *, due: Iterable[HourToCopy]
    ) -> tuple[int, list[Finished], int]:
        """The time, the results of the first hours, and how many hours these are."""
        kinds = checks.find_types(connection, {one.mark.check_id for one in due})
        finals: list[Finished] = []
        done = size = 0
        for one in due:
            if size >= _MOST_BYTES:
                break
            found = list(_read_hour(connection, one, kinds))
            finals += found
            size += sum(len(final.body or b"") for final in found)
            done += 1
        return self._clock.now_ms(connection), finals, done

    def _fail(self, reason: str) -> None:
        if reason != self._problem:
            log.warning(
                "clickhouse.failed",
                reason=f"Results are not copied to ClickHouse: {reason}. They are kept until then.",
            )
        self._problem = reason
        self._has_table = False
        self._retry_at = self._monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _succeed(self) -> None:
        if self._problem is not None:
            log.info("clickhouse.works_again")
        self._problem = None
        self._pause_s = _FIRST_PAUSE_S


def _read_hour(
    connection: Connection, due: HourToCopy, kinds: Mapping[str, CheckType]
) -> Iterator[Finished]:
    """Nothing of a check that was deleted: nobody could ask for it."""
    kind = kinds.get(due.mark.check_id)
    if kind is None:
        return iter(())
    window = (due.mark.start_ms, due.mark.start_ms + HOUR_MS)
    own = SqlResults(connection, {due.mark.check_id: kind})
    return own.list_finals([due.mark.check_id], window=window, with_bodies=True)


async def _mark_all(database: Database) -> None:
    """Have every hour copied whose results are still there, and each that is rolled up later."""
    await database.write(analytics.begin_copying)
    check_ids = await database.read(analytics.list_checks_with_blocks)
    for start in range(0, len(check_ids), _CHECKS):
        some = check_ids[start : start + _CHECKS]
        await database.write(partial(analytics.mark_copies, check_ids=some))
    await database.write(analytics.trust_copies)
