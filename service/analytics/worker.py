"""Rolling up: each hour with new results is read once it is over, and computed as a whole.

To compute an hour again gives the same, so a crash or a late result does no harm: what is marked
is computed until it is stored, and what comes or is corrected meanwhile keeps the mark.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import store
from service.analytics.hours import build, pack
from service.analytics.measures import Analytics
from service.analytics.store import COPY, DAY, HOUR, Due, Mark
from service.analytics.tallies import merge_rollups, pack_rollup, roll_up, unpack_rollup
from service.analytics.windows import DAY_MS, HOUR_MS
from service.checks import actions as checks
from service.checks.types.registry import TYPES
from service.clock import Clock
from service.db.engine import Database
from service.heartbeats import actions as heartbeats
from service.results import actions as results
from service.results.model import Finished, RunStatus

GROUP: Final = 20
"""How many hours or days are computed in one go."""
_PATIENCE_MS: Final = 120_000
"""How long after an hour it is rolled up: results of its last runs are on their way."""


class _Computed(NamedTuple):
    """An hour or a day as it is to be stored."""

    due: Due
    block: tuple[bytes, bytes] | None = None
    """None: it is a day, or there is nothing to keep."""
    rolled: bytes = b""
    """Empty: there is nothing to keep."""


class RollUpWorker:
    """Computes what is marked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def act(self, database: Database) -> int:
        """Roll up some hours, or some days where no hour is due; how many."""
        hours = await database.read(self._compute_hours)
        if hours:
            await database.write(partial(_store_hours, computed=hours))
            return len(hours)
        days = await database.read(self._compute_days)
        if days:
            await database.write(partial(_store_days, computed=days))
        return len(days)

    def _compute_hours(self, connection: Connection) -> list[_Computed]:
        by_ms = self._clock.now_ms(connection) - _PATIENCE_MS
        due = store.list_due(connection, hours=HOUR, by_ms=by_ms, most=GROUP)
        types = checks.find_types(connection, {one.mark.check_id for one in due})
        return [_compute(connection, one, types.get(one.mark.check_id)) for one in due]

    def _compute_days(self, connection: Connection) -> list[_Computed]:
        by_ms = self._clock.now_ms(connection) - _PATIENCE_MS
        due = store.list_due(connection, hours=DAY, by_ms=by_ms, most=GROUP)
        return [_compute_day(connection, one) for one in due]


@dataclass(frozen=True, slots=True)
class SqlResults:
    """Results in the database, as a `FinalResults`.

    A failure of a heartbeat that a late ping has disproved is none.
    """

    connection: Connection
    kinds: Mapping[str, CheckType]
    """The types of the checks that are asked for, by id."""

    def list_finals(
        self, check_ids: Sequence[str], *, window: tuple[int, int], with_bodies: bool
    ) -> Iterator[Finished]:
        """Those of a window that count, by check and time."""
        disproved: set[str] = set()
        for check_id in check_ids:
            analytics = analytics_of(self.kinds[check_id])
            if analytics is not None and analytics.has_ping_states:
                disproved |= heartbeats.list_corrected(self.connection, check_id, window=window)
        for final in results.list_finals(
            self.connection, check_ids, window=window, with_bodies=with_bodies
        ):
            is_wrong = bool(disproved) and final.id in disproved
            yield final._replace(status=RunStatus.PASSED) if is_wrong else final

    def count_finals(self, check_ids: Sequence[str], *, window: tuple[int, int]) -> int:
        """How many there are."""
        return results.count_finals(self.connection, check_ids, window=window)


def analytics_of(kind: CheckType) -> Analytics | None:
    """What is measured of a type. None: nothing is."""
    return TYPES[kind].analytics


def _compute(connection: Connection, due: Due, kind: CheckType | None) -> _Computed:
    mark = due.mark
    analytics = analytics_of(kind) if kind is not None else None
    if kind is None or analytics is None or store.is_bare(connection, mark):
        # Of an hour whose results are gone, a late one must not replace the roll-up of all.
        return _Computed(due)
    window = (mark.start_ms, mark.start_ms + HOUR_MS)
    own = SqlResults(connection, {mark.check_id: kind})
    finals = own.list_finals([mark.check_id], window=window, with_bodies=True)
    block = build(finals, analytics, hour_ms=mark.start_ms)
    rolled = roll_up(block, analytics.stored)
    return _Computed(due, pack(block), pack_rollup(rolled))


def _store_hours(connection: Connection, *, computed: Iterable[_Computed]) -> None:
    is_copied = store.find_copied_from(connection) is not None
    for one in computed:
        mark = one.due.mark
        if store.remove_mark(connection, one.due, hours=HOUR) and one.block is not None:
            store.put_block(connection, mark, one.block)
            store.put_rollup(connection, mark, one.rolled, hours=HOUR)
            day_ms = mark.start_ms - mark.start_ms % DAY_MS
            day = Mark(mark.check_id, day_ms)
            store.add_mark(connection, day, hours=DAY, due_ms=day_ms + DAY_MS)
            if is_copied:
                store.add_mark(connection, mark, hours=COPY, due_ms=mark.start_ms + HOUR_MS)


def _compute_day(connection: Connection, due: Due) -> _Computed:
    start_ms = due.mark.start_ms
    window = (start_ms, start_ms + DAY_MS)
    hours = store.list_rollups(connection, [due.mark.check_id], hours=HOUR, window=window)
    rolled = merge_rollups(unpack_rollup(body) for _, _, body in hours)
    return _Computed(due, rolled=pack_rollup(rolled) if rolled else b"")


def _store_days(connection: Connection, *, computed: Iterable[_Computed]) -> None:
    for one in computed:
        if store.remove_mark(connection, one.due, hours=DAY) and one.rolled:
            store.put_rollup(connection, one.due.mark, one.rolled, hours=DAY)
