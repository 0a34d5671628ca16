"""Queues the runs that are due, also after the clock was set."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import structlog
from sqlalchemy import Connection

from contract.checks import CheckType, Lane
from contract.job import RunSource
from service.clock import Clock
from service.db.engine import Database
from service.jobs import actions as jobs
from service.jobs import settle
from service.jobs.model import MissedRun, NewRun, Priority
from service.jobs.rules import queued_until
from service.locations import actions as locations
from service.scheduling import store
from service.scheduling.model import DueCheck, Rhythm, Ticked
from service.scheduling.postgresql import PostgresDueSchedules
from service.scheduling.rules import next_after_run_ms, places, run_due_ms, skipped_due_times
from service.scheduling.sqlite import SqliteDueSchedules

GROUP: Final = 200
"""How many checks a transaction handles at most; the longest one takes about 20 ms."""
_MOST_MISSED: Final = 1_000
"""After so many missed runs a transaction takes no further check."""


_ENGINES: Final[dict[str, SqliteDueSchedules | PostgresDueSchedules]] = {
    "sqlite": SqliteDueSchedules(),
    "postgresql": PostgresDueSchedules(),
}


def tick(connection: Connection, *, now_ms: int) -> Ticked:
    """Queue the runs that are due, plan the next ones, and record the due times that passed.

    All in one transaction: no crash in between can lose or double a run.
    """
    schedules = _ENGINES[connection.dialect.name]
    due = schedules.due(connection, now_ms=now_ms, limit=GROUP)
    if not due:
        return Ticked(checks=0, has_more=False)
    places_of = schedules.locations(connection, [check.check_id for check in due])
    planned: list[_Planned] = []
    missed: list[MissedRun] = []
    for check in due:
        planned.append(_plan(check, places_of[check.check_id], now_ms=now_ms))
        missed += planned[-1].missed
        if len(missed) >= _MOST_MISSED:
            break
    runs = [run for one in planned for run in one.runs]
    jobs.add(connection, runs)
    _give_up_where_nobody_is(connection, runs, now_ms=now_ms)
    schedules.move(connection, [one.move for one in planned])
    settle.record_missed(connection, missed, now_ms=now_ms)
    return Ticked(
        checks=len(planned),
        has_more=len(due) == GROUP or len(planned) < len(due),
        skipped=sum(each.due_times for each in missed),
        away_ms=max((now_ms - each.first_ms for each in missed), default=0),
    )


class _Planned(NamedTuple):
    runs: Sequence[NewRun]
    missed: Sequence[MissedRun]
    """The runs that were due while the service was away."""
    move: tuple[int, int, str]
    """(next run, turn) of the check's schedule."""


def _plan(check: DueCheck, where: list[str], *, now_ms: int) -> _Planned:
    when = Rhythm(check.period_ms, check.phase_ms)
    if check.waits_for_ping:
        next_ms = next_after_run_ms(when, planned_ms=check.next_run_ms, now_ms=now_ms)
        return _Planned((), (), (next_ms, check.turn, check.check_id))
    newest_ms = run_due_ms(when, planned_ms=check.next_run_ms, now_ms=now_ms)
    missed: list[MissedRun] = []
    turn = check.turn
    for each in skipped_due_times(when, planned_ms=check.next_run_ms, newest_ms=newest_ms):
        at = places(where, run_parallel=bool(check.run_parallel), turn=turn)
        missed += (MissedRun(check.check_id, location_id, *each) for location_id in at)
        turn += each.number
    next_ms = next_after_run_ms(when, planned_ms=check.next_run_ms, now_ms=now_ms)
    at = places(where, run_parallel=bool(check.run_parallel), turn=turn)
    until_ms = queued_until(CheckType(check.check_type), now_ms=now_ms, next_run_ms=next_ms)
    runs = [_run(check, location_id, newest_ms, until_ms) for location_id in at]
    return _Planned(runs, missed, (next_ms, turn + 1, check.check_id))


def _run(check: DueCheck, location_id: str, scheduled_ms: int, expires_ms: int) -> NewRun:
    return NewRun(
        check_id=check.check_id,
        check_type=CheckType(check.check_type),
        lane=Lane(check.lane),
        location_id=location_id,
        source=RunSource.SCHEDULER,
        session_id=None,
        scheduled_ms=scheduled_ms,
        due_ms=scheduled_ms,
        expires_ms=expires_ms,
        priority=Priority.SCHEDULED,
    )


def _give_up_where_nobody_is(
    connection: Connection, runs: Sequence[NewRun], *, now_ms: int
) -> None:
    """Miss runs at unavailable locations at once, so that they do not pile up."""
    if out := locations.list_outages(connection):
        for location_id in {run.location_id for run in runs} & out.keys():
            settle.end_queued_at(connection, location_id, now_ms=now_ms)


log = structlog.get_logger()


class Scheduler:
    """Ticks, and logs once when it has caught up on a time in which it did not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._skipped = 0
        self._away_ms = 0

    async def act(self, database: Database) -> int:
        """Tick once; how much it did, `GROUP` if there may be more."""
        ticked = await database.write(lambda c: tick(c, now_ms=self._clock.now_ms(c)))
        self._skipped += ticked.skipped
        self._away_ms = max(self._away_ms, ticked.away_ms)
        if self._skipped and not ticked.has_more:
            away_s = round(self._away_ms / 1000)
            log.warning("schedule.caught_up", skipped=self._skipped, away_s=away_s)
            self._skipped = self._away_ms = 0
        return GROUP if ticked.has_more else ticked.checks


_TOLERATED_MS: Final = 1_000


class ClockWatch:
    """Notices when the clock was set back; the first look compares it with what is stored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before_ms: int | None = None
        """None: this process has not looked yet."""

    def reschedule_if_set_back(self, connection: Connection) -> int:
        """Move schedules, jobs and leases near if the clock was set back; how many."""
        now_ms = self._clock.now_ms(connection)
        before_ms, self._before_ms = self._before_ms, now_ms
        if before_ms is not None and now_ms >= before_ms - _TOLERATED_MS:
            return 0
        plans = store.reschedule_after_clock_change(connection, now_ms=now_ms)
        moved = jobs.reschedule_after_clock_change(connection, now_ms=now_ms)
        if plans or moved:
            log.warning("clock.set_back", schedules=plans, jobs=moved)
        return plans + moved
