"""The statement that marks hours, on PostgreSQL, by the driver: it runs with each submission."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from service.analytics.windows import HOUR_MS
from service.db.postgresql_rows import execute_later, json_rows

_MARK: Final = """
INSERT INTO rollup_dirty (check_id, hours, start_ms, due_ms)
SELECT check_id, 1, start_ms, due_ms
  FROM json_to_recordset(%s) AS new (check_id text, start_ms int8, due_ms int8)
ON CONFLICT (check_id, hours, start_ms) DO UPDATE SET version = rollup_dirty.version + 1
"""


_COLUMNS: Final = ("check_id", "start_ms", "due_ms")


def mark(connection: Connection, hours: Iterable[tuple[str, int]]) -> None:
    """Have these hours of these checks rolled up; one that is marked is marked again."""
    rows = {(check_id, hour_ms, hour_ms + HOUR_MS) for check_id, hour_ms in hours}
    execute_later(connection, _MARK, (json_rows(_COLUMNS, sorted(rows)),))
