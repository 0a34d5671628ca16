"""The statements that store results, on SQLite, by the driver: they run once per check run."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from contract.job import TEST_SOURCES, RunSource
from service.db.ids import new_ids
from service.db.sqlite_group import driver
from service.results.model import Cause, Record, Recorded, ResultType, RunStatus

RESULT_COLUMNS: Final = """
  check_id, ts, id, run_id, fence, session_id, location, source, result_type, status, cause,
  attempt, response_time_ms, over_max_response_time, scheduled_ms, stopped_ms, created_ms, due_times
"""
# On PostgreSQL as well: `rows` is where they come from.
PUT_STATE: Final = """
INSERT INTO check_state (check_id, status, since_ms, result_id, result_ms) {rows}
ON CONFLICT (check_id) DO UPDATE SET
  since_ms = CASE WHEN check_state.status = excluded.status THEN check_state.since_ms
    ELSE excluded.since_ms END,
  status = excluded.status, result_id = excluded.result_id, result_ms = excluded.result_ms
WHERE (excluded.result_ms, excluded.result_id) > (check_state.result_ms, check_state.result_id)
"""
_RESULT: Final = "INSERT INTO result ({columns}) VALUES ({marks})".format(  # noqa: S608 - names
    columns=RESULT_COLUMNS, marks=", ".join("?" * 18)
)
_SLUG: Final = "SELECT slug_name FROM private_location WHERE id = ?"
_DETAIL: Final = "INSERT INTO result_detail (id, body) VALUES (?, ?)"
_FINAL: Final = "INSERT INTO run_final (run_id, fence, result_ms, body) VALUES (?, ?, ?, ?)"
_STATE: Final = PUT_STATE.format(rows=f"VALUES ({', '.join('?' * 5)})")
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
_TEXTS: Final[Mapping[str, str]] = {
    one: one.value for kind in (RunSource, ResultType, RunStatus, Cause) for one in kind
}
"""To ask a member for its value takes 0.2 µs, and there are four in a row."""


class SqliteResultStore:
    """Stores results in a SQLite file; implements `ResultStore`."""

    def add(
        self, connection: Connection, records: Sequence[Record], *, now_ms: int
    ) -> Sequence[Recorded]:
        """Store results, mark the runs that they settle, and keep each check's last state."""
        sqlite = driver(connection)
        slugs = _slugs(sqlite, {record.location_id for record in records})
        ids = new_ids(record.started_ms for record in records)
        named = list(zip(ids, records, strict=True))
        rows = (result_row(one, record, slugs[record.location_id], now_ms) for one, record in named)
        sqlite.executemany(_RESULT, rows)
        finals = [pair for pair in named if pair[1].result_type is ResultType.FINAL]
        if len(finals) < len(named):
            sqlite.executemany(_DETAIL, detail_rows(named))
        sqlite.executemany(
            _FINAL,
            ((record.run_id, record.fence, record.started_ms, record.body) for _, record in finals),
        )
        sqlite.executemany(_STATE, state_rows(finals))
        return named

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

    def hold(self, _connection: Connection, _check_ids: Iterable[str]) -> bool:
        """No other transaction writes meanwhile."""
        return True


def _slugs(sqlite: sqlite3.Connection, location_ids: Iterable[str]) -> Mapping[str, str]:
    """What locations are called in results; a location that is gone has no name."""
    found = ((one, sqlite.execute(_SLUG, (one,)).fetchone()) for one in location_ids)
    return {one: row[0] if row else "" for one, row in found}


def result_row(result_id: str, record: Record, slug: str, now_ms: int) -> tuple[object, ...]:
    """A row of `result`, in the order of `RESULT_COLUMNS`."""
    return (
        record.check_id,
        record.started_ms,
        result_id,
        record.run_id,
        record.fence,
        record.session_id,
        slug,
        _TEXTS[record.source],
        _TEXTS[record.result_type],
        _TEXTS[record.status],
        _TEXTS[record.cause] if record.cause else None,
        record.attempt,
        record.response_time_ms,
        record.over_max_response_time,
        record.scheduled_ms,
        record.stopped_ms,
        now_ms,
        record.due_times,
    )


def detail_rows(named: Iterable[tuple[str, Record]]) -> Iterator[tuple[object, ...]]:
    """Rows of `result_detail`: the bodies of attempts."""
    return (
        (one, record.body)
        for one, record in named
        if record.body and record.result_type is ResultType.ATTEMPT
    )


def state_rows(finals: Iterable[tuple[str, Record]]) -> Iterator[tuple[object, ...]]:
    """Rows of `check_state`, one for each result that judges its target."""
    return (
        (record.check_id, _TEXTS[record.status], record.started_ms, one, record.started_ms)
        for one, record in finals
        if record.status.judges_target and record.source not in TEST_SOURCES
    )
