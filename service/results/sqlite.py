"""The statements that store results, on SQLite, by the driver: they run once per check run."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection

from service.db.ids import new_id
from service.db.sqlite import driver
from service.results.model import Record, ResultType

_RESULT: Final = """
INSERT INTO result (check_id, ts, id, run_id, fence, session_id, location, source, result_type,
  status, cause, attempt, response_time_ms, over_max_response_time, scheduled_ms, stopped_ms,
  created_ms)
VALUES (?, ?, ?, ?, ?, ?, coalesce((SELECT slug_name FROM private_location WHERE id = ?), ''),
  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DETAIL: Final = "INSERT INTO result_detail (id, body) VALUES (?, ?)"
_FINAL: Final = "INSERT INTO run_final (run_id, fence, result_ms) VALUES (?, ?, ?)"
_STATE: Final = """
INSERT INTO check_state (check_id, status, since_ms, result_id, result_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (check_id) DO UPDATE SET
  since_ms = CASE WHEN status = excluded.status THEN since_ms ELSE excluded.since_ms END,
  status = excluded.status, result_id = excluded.result_id, result_ms = excluded.result_ms
WHERE excluded.result_ms >= result_ms
"""
_FINAL_FENCE: Final = "SELECT fence FROM run_final WHERE run_id = ?"
_SETTLED: Final = """
SELECT 1 FROM run_final f JOIN result r ON r.check_id = ? AND r.ts = f.result_ms
  AND r.run_id = f.run_id AND r.result_type = 'FINAL' WHERE f.run_id = ?
"""
_ATTEMPT: Final = "SELECT 1 FROM result WHERE check_id = ? AND run_id = ? AND fence = ?"
_LATE: Final = """
INSERT OR IGNORE INTO late_result (run_id, fence, check_id, agent_id, received_ms, body)
VALUES (?, ?, ?, ?, ?, ?)
"""


class SqliteResultStore:
    """Stores results in a SQLite file; implements `ResultStore`."""

    def add(self, connection: Connection, records: Sequence[Record], *, now_ms: int) -> None:
        """Store results, mark the runs that they settle, and keep each check's last state."""
        sqlite = driver(connection)
        named = [(new_id(record.started_ms), record) for record in records]
        finals = [pair for pair in named if pair[1].result_type is ResultType.FINAL]
        sqlite.executemany(_RESULT, (_row(one, record, now_ms) for one, record in named))
        sqlite.executemany(_DETAIL, ((one, record.body) for one, record in named if record.body))
        sqlite.executemany(
            _FINAL, ((record.run_id, record.fence, record.started_ms) for _, record in finals)
        )
        sqlite.executemany(
            _STATE,
            (
                (record.check_id, record.status.value, record.started_ms, one, record.started_ms)
                for one, record in finals
                if record.status.judges_target
            ),
        )

    def is_known(self, connection: Connection, check_id: str, run_id: int, fence: int) -> bool:
        """Whether the result of this claim is stored already, as FINAL or as ATTEMPT."""
        sqlite = driver(connection)
        final = sqlite.execute(_FINAL_FENCE, (run_id,)).fetchone()
        if final is not None and final[0] == fence:
            return True
        return sqlite.execute(_ATTEMPT, (check_id, run_id, fence)).fetchone() is not None

    def is_settled(self, connection: Connection, check_id: str, run_id: int) -> bool:
        """Whether the run is one of the check, and has its FINAL result."""
        return driver(connection).execute(_SETTLED, (check_id, run_id)).fetchone() is not None

    def add_late(self, connection: Connection, rows: Iterable[tuple[object, ...]]) -> None:
        """Keep late results, as the columns of `late_result`; one that is there stays."""
        driver(connection).executemany(_LATE, rows)


def _row(result_id: str, record: Record, now_ms: int) -> tuple[object, ...]:
    return (
        record.check_id,
        record.started_ms,
        result_id,
        record.run_id,
        record.fence,
        record.session_id,
        record.location_id,
        record.source.value,
        record.result_type.value,
        record.status.value,
        record.cause.value if record.cause else None,
        record.attempt,
        record.response_time_ms,
        record.over_max_response_time,
        record.scheduled_ms,
        record.stopped_ms,
        now_ms,
    )
