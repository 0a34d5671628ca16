"""The statements that store results, on PostgreSQL, by the driver: they run for each check run.

Many rows go in one statement: new ones by COPY, a third of the cost of INSERT, and those that may
be there already as JSON.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection

from service.db.ids import new_ids
from service.db.postgresql_faults import driver
from service.db.postgresql_rows import copy_rows, execute_later, json_rows
from service.results.model import Record, Recorded, ResultType
from service.results.sqlite import (
    PUT_STATE,
    RESULT_COLUMNS,
    detail_rows,
    result_row,
    state_rows,
)

_RESULT: Final = f"COPY result ({RESULT_COLUMNS}) FROM STDIN (FORMAT BINARY)"
_RESULT_TYPES: Final = (
    *("text", "int8", "text", "int8", "int4", "text", "text", "text", "text", "text", "text"),
    *("int4", "float8", "bool", "int8", "int8", "int8", "int4"),
)
_SLUGS: Final = "SELECT id, slug_name FROM private_location WHERE id = ANY(%s)"
_DETAIL: Final = "COPY result_detail (id, body) FROM STDIN (FORMAT BINARY)"
_DETAIL_TYPES: Final = ("text", "bytea")
_FINAL: Final = "COPY run_final (run_id, fence, result_ms, body) FROM STDIN (FORMAT BINARY)"
_FINAL_TYPES: Final = ("int8", "int4", "int8", "bytea")
_STATE_COLUMNS: Final = ("check_id", "status", "since_ms", "result_id", "result_ms")
_STATE: Final = PUT_STATE.format(
    rows="""
SELECT check_id, status, since_ms, result_id, result_ms FROM json_to_recordset(%s) AS new
  (check_id text, status text, since_ms int8, result_id text, result_ms int8)"""
)
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
        execute = driver(connection).execute
        places = list({record.location_id for record in records})
        # A location that is gone has no name.
        slugs = dict.fromkeys(places, "") | dict(execute(_SLUGS, (places,)).fetchall())
        ids = new_ids(record.started_ms for record in records)
        named = list(zip(ids, records, strict=True))
        rows = (result_row(one, record, slugs[record.location_id], now_ms) for one, record in named)
        copy_rows(connection, _RESULT, _RESULT_TYPES, rows)
        finals = [pair for pair in named if pair[1].result_type is ResultType.FINAL]
        if len(finals) < len(named):
            copy_rows(connection, _DETAIL, _DETAIL_TYPES, detail_rows(named))
        if finals:
            ends = ((one.run_id, one.fence, one.started_ms, one.body) for _, one in finals)
            copy_rows(connection, _FINAL, _FINAL_TYPES, ends)
        for rows_of_checks in _one_of_each(state_rows(finals)):
            execute_later(connection, _STATE, (json_rows(_STATE_COLUMNS, rows_of_checks),))
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


def _one_of_each(rows: Iterable[tuple[object, ...]]) -> list[list[tuple[object, ...]]]:
    """Rows in as many statements as a check has results: one statement changes no row twice."""
    seen: Counter[object] = Counter()
    parts: list[list[tuple[object, ...]]] = []
    for row in rows:
        if seen[row[0]] == len(parts):
            parts.append([])
        parts[seen[row[0]]].append(row)
        seen[row[0]] += 1
    return parts
