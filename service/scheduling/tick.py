"""Queues the runs that are due, also after the clock was set."""

from collections.abc import Sequence
from typing import Final

import structlog
from sqlalchemy import Connection

from contract.checks import CheckType, Lane
from contract.job import RunSource
from service.clock import Clock
from service.jobs import actions as jobs
from service.jobs import settle
from service.jobs.model import NewRun, Priority
from service.jobs.rules import queued_until
from service.locations import actions as locations
from service.scheduling import store
from service.scheduling.model import DueCheck, Rhythm
from service.scheduling.rules import next_after_run_ms, places, run_due_ms
from service.scheduling.sqlite import SqliteDueSchedules

GROUP: Final = 200
"""How many checks a transaction handles at most; the longest one takes about 20 ms."""


_ENGINES: Final[dict[str, SqliteDueSchedules]] = {"sqlite": SqliteDueSchedules()}


def tick(connection: Connection, *, now_ms: int) -> int:
    """Queue the runs that are due and plan the next ones; how many checks were due.

    Both in one transaction: no crash between the two can lose or double a run.
    """
    schedules = _ENGINES[connection.dialect.name]
    due = schedules.due(connection, now_ms=now_ms, limit=GROUP)
    if not due:
        return 0
    places_of = schedules.locations(connection, [check.check_id for check in due])
    runs: list[NewRun] = []
    moves: list[tuple[int, int, str]] = []
    for check in due:
        when = Rhythm(check.period_ms, check.phase_ms)
        next_ms = next_after_run_ms(when, planned_ms=check.next_run_ms, now_ms=now_ms)
        runs += _runs(check, when, places_of[check.check_id], now_ms=now_ms, next_ms=next_ms)
        moves.append((next_ms, check.turn + 1, check.check_id))
    jobs.add(connection, runs)
    _give_up_where_nobody_is(connection, runs, now_ms=now_ms)
    schedules.move(connection, moves)
    return len(due)


def _give_up_where_nobody_is(
    connection: Connection, runs: Sequence[NewRun], *, now_ms: int
) -> None:
    """Miss runs at unavailable locations at once, so that they do not pile up."""
    if out := locations.list_outages(connection):
        for location_id in {run.location_id for run in runs} & out.keys():
            settle.end_queued_at(connection, location_id, now_ms=now_ms)


def _runs(
    check: DueCheck, when: Rhythm, where: list[str], *, now_ms: int, next_ms: int
) -> list[NewRun]:
    scheduled_ms = run_due_ms(when, planned_ms=check.next_run_ms, now_ms=now_ms)
    check_type = CheckType(check.check_type)
    until_ms = queued_until(check_type, now_ms=now_ms, next_run_ms=next_ms)
    return [
        NewRun(
            check_id=check.check_id,
            check_type=check_type,
            lane=Lane(check.lane),
            location_id=location_id,
            source=RunSource.SCHEDULER,
            session_id=None,
            scheduled_ms=scheduled_ms,
            due_ms=scheduled_ms,
            expires_ms=until_ms,
            priority=Priority.SCHEDULED,
        )
        for location_id in places(where, run_parallel=bool(check.run_parallel), turn=check.turn)
    ]


log = structlog.get_logger()

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
