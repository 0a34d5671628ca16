"""The statements that store results, on PostgreSQL, by the driver: they run once per check run."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection

from service.db.ids import new_ids
from service.db.postgresql_faults import driver
from service.results.model import Record, Recorded, ResultType
from service.results.sqlite import (
    INSERT_RESULT,
    PUT_STATE,
    detail_rows,
    result_row,
    state_rows,
)

_RESULT: Final = INSERT_RESULT.format(marks=", ".join(["%s"] * 18))
_SLUGS: Final = "SELECT id, slug_name FROM private_location WHERE id = ANY(%s)"
_DETAIL: Final = "INSERT INTO result_detail (id, body) VALUES (%s, %s)"
_FINAL: Final = "INSERT INTO run_final (run_id, fence, result_ms, body) VALUES (%s, %s, %s, %s)"
_STATE: Final = PUT_STATE.format(marks=", ".join(["%s"] * 5))
_FINAL_FENCE: Final = "SELECT 1 FROM run_final WHERE run_id = %s AND fence = %s"
_SETTLED: Final = """
SELECT 1 FROM run_final f JOIN result r ON r.check_id = %s AND r.ts = f.result_ms
  AND r.run_id = f.run_id AND r.result_type = 'FINAL' WHERE f.run_id = %s
"""
_ATTEMPT: Final = "SELECT 1 FROM result WHERE check_id = %s AND run_id = %s AND fence = %s"
_LATE: Final = """
INSERT INTO late_result (run_id, fence, check_id, agent_id, received_ms, body)
VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_HOLD: Final = """
SELECT bool_and(pg_try_advisory_xact_lock(hashtextextended(id, 0))) FROM unnest(%s::text[]) AS id
"""


class PostgresResultStore:
    """Stores results in a PostgreSQL database; implements `ResultStore`."""

    def add(
        self, connection: Connection, records: Sequence[Record], *, now_ms: int
    ) -> Sequence[Recorded]:
        """Store results, mark the runs that they settle, and keep each check's last state."""
        cursor = driver(connection).cursor()
        places = list({record.location_id for record in records})
        # A location that is gone has no name.
        slugs = dict.fromkeys(places, "") | dict(cursor.execute(_SLUGS, (places,)).fetchall())
        ids = new_ids(record.started_ms for record in records)
        named = list(zip(ids, records, strict=True))
        rows = (result_row(one, record, slugs[record.location_id], now_ms) for one, record in named)
        cursor.executemany(_RESULT, rows)
        finals = [pair for pair in named if pair[1].result_type is ResultType.FINAL]
        if len(finals) < len(named):
            cursor.executemany(_DETAIL, detail_rows(named))
        cursor.executemany(
            _FINAL,
            ((record.run_id, record.fence, record.started_ms, record.body) for _, record in finals),
        )
        cursor.executemany(_STATE, state_rows(finals))
        return named

    def is_known(self, connection: Connection, check_id: str, run_id: int, fence: int) -> bool:
        """Whether the result of this claim is stored already, as FINAL or as ATTEMPT."""
        execute = driver(connection).execute
        if execute(_FINAL_FENCE, (run_id, fence)).fetchone() is not None:
            return True
        return execute(_ATTEMPT, (check_id, run_id, fence)).fetchone() is not None

    def is_settled(self, connection: Connection, check_id: str, run_id: int) -> bool:
        """Whether the run is one of the check, and has its FINAL result."""
        return driver(connection).execute(_SETTLED, (check_id, run_id)).fetchone() is not None

    def add_late(self, connection: Connection, rows: Iterable[tuple[object, ...]]) -> None:
        """Keep late results, as the columns of `late_result`; one that is there stays."""
        driver(connection).cursor().executemany(_LATE, rows)

    def hold(self, connection: Connection, check_ids: Iterable[str]) -> bool:
        """Keep the results of these checks to this transaction; False: another one has some."""
        row = driver(connection).execute(_HOLD, (sorted(check_ids),)).fetchone()
        return row is not None and row[0] is not False
