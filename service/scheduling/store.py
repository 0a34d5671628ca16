"""SQL of schedules, apart from the tick's own statements, which are the engine's."""

from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, delete, insert, select, update

from service.db.tables.checks import schedule
from service.scheduling.model import Rhythm

_SCHEDULE: Final = select(schedule.c.period_ms, schedule.c.phase_ms).where(
    schedule.c.check_id == bindparam("check")
)
_ADD: Final = insert(schedule).values(turn=0)
_CHANGE: Final = update(schedule).where(schedule.c.check_id == bindparam("check"))
_RESCHEDULE: Final = (
    update(schedule)
    .where(
        (schedule.c.next_run_ms - bindparam("now_ms", type_=BigInteger)) * 2
        > schedule.c.period_ms * 3
    )
    .values(next_run_ms=bindparam("now_ms"))
)
_REMOVE: Final = delete(schedule).where(schedule.c.check_id == bindparam("check"))


def rhythm_of(connection: Connection, check_id: str) -> Rhythm | None:
    """The rhythm that is set. None: the check is not scheduled."""
    row = connection.execute(_SCHEDULE, {"check": check_id}).one_or_none()
    return Rhythm(*row) if row else None


def put(connection: Connection, check_id: str, when: Rhythm, *, next_run_ms: int) -> None:
    """Set a check's rhythm; its turn in the round robin stays."""
    values = {
        "period_ms": when.period_ms,
        "phase_ms": when.phase_ms,
        "next_run_ms": next_run_ms,
    }
    changed = connection.execute(_CHANGE, {"check": check_id, **values})
    if not changed.rowcount:
        connection.execute(_ADD, {"check_id": check_id, **values})


def remove(connection: Connection, check_id: str) -> None:
    """Plan no more runs of a check."""
    connection.execute(_REMOVE, {"check": check_id})


def reschedule_after_clock_change(connection: Connection, *, now_ms: int) -> int:
    """Runs planned later than any plan goes, a period and a half, are due now; how many."""
    return connection.execute(_RESCHEDULE, {"now_ms": now_ms}).rowcount
