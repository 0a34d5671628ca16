"""The tick's statements on SQLite, by the driver: the queue's other hot path.

They read `check_`, `check_location` and `heartbeat` beside `schedule`: a tick that asked these
features for each of its 200 checks would hold the writer for five times as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from service.db.sqlite_group import driver
from service.scheduling.model import DueCheck

_DUE: Final = """
SELECT s.check_id, c.type, c.lane, c.run_parallel, s.period_ms, s.phase_ms, s.next_run_ms, s.turn,
  c.type = 'HEARTBEAT' AND EXISTS (
    SELECT 1 FROM heartbeat h WHERE h.check_id = c.id AND h.timer_started_ms IS NULL)
FROM schedule s JOIN check_ c ON c.id = s.check_id
WHERE s.next_run_ms <= ? ORDER BY s.next_run_ms LIMIT ?
"""
_LOCATIONS: Final = "SELECT location_id FROM check_location WHERE check_id = ? ORDER BY position"
_MOVE: Final = "UPDATE schedule SET next_run_ms = ?, turn = ? WHERE check_id = ?"


class SqliteDueSchedules:
    """The schedules in a SQLite file; the statements decide nothing."""

    def due(self, connection: Connection, *, now_ms: int, limit: int) -> list[DueCheck]:
        """Checks whose next run is due, longest due first."""
        rows = driver(connection).execute(_DUE, (now_ms, limit))
        return [DueCheck._make(row) for row in rows]

    def locations(
        self, connection: Connection, check_ids: Sequence[str]
    ) -> Mapping[str, list[str]]:
        """Where each check runs, in the order of its round robin."""
        execute = driver(connection).execute
        return {
            check_id: [row[0] for row in execute(_LOCATIONS, (check_id,))] for check_id in check_ids
        }

    def move(self, connection: Connection, moves: Iterable[tuple[int, int, str]]) -> None:
        """Set (next run, turn) of schedules, by check."""
        driver(connection).executemany(_MOVE, moves)
