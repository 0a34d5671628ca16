"""Removing what has been kept long enough, in small transactions.

A result goes once its hour is rolled up, and never before. What deleted checks left goes too.
On PostgreSQL a day goes as a whole, as soon as all of it is old enough.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection

from service.alerting import actions as alerting
from service.analytics import actions as analytics
from service.analytics.windows import HOUR_MS
from service.clock import Clock
from service.db.engine import Database
from service.db.partitions import days
from service.heartbeats import actions as heartbeats
from service.object_store.model import ObjectStore, ObjectStoreError
from service.results import actions as results
from service.retention.model import Kept, limit_ms
from service.sessions import actions as sessions

log = structlog.get_logger()

GROUP: Final = 200
"""How many rows one transaction removes."""


class Retention:
    """Removes what is too old."""

    def __init__(self, clock: Clock, kept: Kept, *artifacts: ObjectStore) -> None:
        self._clock = clock
        self._kept = kept
        self._artifacts = artifacts

    async def sweep(self, database: Database) -> int:
        """Go through everything once; how much went."""
        if await database.read(days.lacks_days):
            await database.write(days.create_ahead)
        now_ms = await database.read(self._clock.now_ms)
        gone = {
            "days": await self._sweep_days(database, now_ms),
            "results": await self._sweep_results(database, now_ms),
            "sessions": await self._sweep_sessions(database, now_ms),
            "late_results": await self._sweep_late(database, now_ms),
            "alerts": await self._sweep_alerts(database, now_ms),
            "rollups": await self._sweep_rollups(database, now_ms),
            "runs_with_files": await self._sweep_files(now_ms),
        }
        if any(gone.values()):
            log.info("retention.swept", **gone)
        return sum(gone.values())

    async def _sweep_days(self, database: Database, now_ms: int) -> int:
        """Remove whole days of results, where they have partitions; how many went."""
        limit = limit_ms(self._kept.results, now_ms=now_ms) or 0
        gone = 0
        for day in await database.read(days.list_days):
            if day.to_ms > limit or not await database.write(partial(_remove_day, day=day)):
                break
            await _remove_rests(database, before_ms=day.to_ms)
            gone += 1
        return gone

    async def _sweep_results(self, database: Database, now_ms: int) -> int:
        limit = limit_ms(self._kept.results, now_ms=now_ms)
        if limit is None:
            return 0
        # Whole hours: a roll-up is of all results of its hour.
        kept_days = await database.read(days.list_days)
        before_ms = min(
            [limit - limit % HOUR_MS, *(one.from_ms for one in kept_days if one.from_ms)]
        )
        gone, after_id = 0, ""
        while check_id := await database.read(
            partial(results.next_check_before, after_id=after_id, before_ms=before_ms)
        ):
            remove = partial(_remove_results, check_id=check_id, before_ms=before_ms)
            gone += await _repeat(database, remove)
            after_id = check_id
        return gone

    async def _sweep_sessions(self, database: Database, now_ms: int) -> int:
        before_ms = limit_ms(self._kept.results, now_ms=now_ms)
        if before_ms is None:
            return 0
        if not await database.read(partial(sessions.has_old, before_ms=before_ms)):
            return 0
        return await _repeat(
            database, partial(sessions.remove_old, before_ms=before_ms, most=GROUP)
        )

    async def _sweep_late(self, database: Database, now_ms: int) -> int:
        before_ms = limit_ms(self._kept.late_results, now_ms=now_ms)
        if before_ms is None:
            return 0
        # A write transaction holds up all others, and mostly there is nothing to remove.
        if not await database.read(partial(results.has_late_before, before_ms=before_ms)):
            return 0
        return await _repeat(
            database, partial(results.remove_late, before_ms=before_ms, most=GROUP)
        )

    async def _sweep_alerts(self, database: Database, now_ms: int) -> int:
        before_ms = limit_ms(self._kept.alerts, now_ms=now_ms)
        if before_ms is None:
            return 0
        return await _repeat(
            database, partial(alerting.remove_before, before_ms=before_ms, most=GROUP)
        )

    async def _sweep_rollups(self, database: Database, now_ms: int) -> int:
        before_ms = limit_ms(self._kept.rollups, now_ms=now_ms)
        gone, after_id = 0, ""
        while check_id := await database.read(
            partial(analytics.next_check_before, after_id=after_id, before_ms=before_ms)
        ):
            remove = partial(analytics.remove_rollups, check_id=check_id, before_ms=before_ms)
            while some := await database.write(remove):
                gone += some
            after_id = check_id
        return gone

    async def _sweep_files(self, now_ms: int) -> int:
        before_ms = limit_ms(self._kept.files, now_ms=now_ms)
        if before_ms is None:
            return 0
        try:
            return sum([await store.remove_before(before_ms) for store in self._artifacts])
        except ObjectStoreError as problem:
            log.warning("retention.files_stay", reason=str(problem))
            return 0


def _remove_day(connection: Connection, *, day: days.Span) -> bool:
    """False: an hour of it is not rolled up yet, or somebody reads."""
    if not analytics.is_rolled_up(connection, before_ms=day.to_ms):
        return False
    analytics.note_removal(connection, before_ms=day.to_ms)
    return days.drop_day(connection, day)


async def _remove_rests(database: Database, *, before_ms: int) -> None:
    """Remove what belonged to the results of days that went, some checks at a time."""
    check_ids = await database.read(analytics.list_checks_with_blocks)
    for start in range(0, len(check_ids), GROUP):
        some = check_ids[start : start + GROUP]
        await database.write(partial(_remove_blocks, check_ids=some, until_ms=before_ms - 1))
    await database.write(partial(heartbeats.forget_corrections_before, before_ms=before_ms))
    remove = partial(results.remove_details_before, before_ms=before_ms, most=GROUP)
    await _repeat(database, remove)


def _remove_blocks(connection: Connection, *, check_ids: Sequence[str], until_ms: int) -> None:
    for check_id in check_ids:
        analytics.remove_blocks(connection, check_id, until_ms=until_ms)


async def _repeat(database: Database, remove: Callable[[Connection], int]) -> int:
    """Remove one group after the other, until there is less than a group."""
    gone = 0
    while some := await database.write(remove):
        gone += some
        if some < GROUP:
            break
    return gone


def _remove_results(connection: Connection, *, check_id: str, before_ms: int) -> int:
    analytics.note_removal(connection, before_ms=before_ms)
    allowed_ms = analytics.allow_removal(connection, check_id, before_ms=before_ms)
    removed = results.remove_before(connection, check_id, before_ms=allowed_ms, most=GROUP)
    if removed.ids:
        analytics.remove_blocks(connection, check_id, until_ms=removed.last_ms)
        heartbeats.forget_corrections(connection, check_id, removed.ids, last_ms=removed.last_ms)
    return len(removed.ids)
