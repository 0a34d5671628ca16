"""The tick's statements on PostgreSQL, by the driver; they read what those on SQLite read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from service.db.postgresql_faults import driver
from service.scheduling.model import DueCheck

_DUE: Final = """
SELECT s.check_id, c.type, c.lane, c.run_parallel, s.period_ms, s.phase_ms, s.next_run_ms, s.turn,
  c.type = 'HEARTBEAT' AND EXISTS (
    SELECT 1 FROM heartbeat h WHERE h.check_id = c.id AND h.timer_started_ms IS NULL)
FROM schedule s JOIN check_ c ON c.id = s.check_id
WHERE s.next_run_ms <= %s ORDER BY s.next_run_ms LIMIT %s FOR NO KEY UPDATE OF s SKIP LOCKED
"""
_LOCATIONS: Final = """
SELECT check_id, location_id FROM check_location WHERE check_id = ANY(%s)
ORDER BY check_id, position
"""
_MOVE: Final = "UPDATE schedule SET next_run_ms = %s, turn = %s WHERE check_id = %s"


class PostgresDueSchedules:
    """The schedules in a PostgreSQL database; the statements decide nothing."""

    def due(self, connection: Connection, *, now_ms: int, limit: int) -> list[DueCheck]:
        """Checks whose next run is due, longest due first."""
        return [DueCheck._make(row) for row in driver(connection).execute(_DUE, (now_ms, limit))]

    def locations(
        self, connection: Connection, check_ids: Sequence[str]
    ) -> Mapping[str, list[str]]:
        """Where each check runs, in the order of its round robin."""
        places: dict[str, list[str]] = defaultdict(list)
        for check_id, location_id in driver(connection).execute(_LOCATIONS, (list(check_ids),)):
            places[check_id].append(location_id)
        return places

    def move(self, connection: Connection, moves: Iterable[tuple[int, int, str]]) -> None:
        """Set (next run, turn) of schedules, by check."""
        driver(connection).cursor().executemany(_MOVE, list(moves))
