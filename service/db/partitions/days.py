"""Results lie in a partition for each day on PostgreSQL, so that a day is removed without its rows.

A day's partition is made before the day begins; rows of days without one are in the default
partition. What needs a lock that somebody holds is left for later: nobody waits behind it.
SQLite has one file and no partitions: there is nothing to do here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

import structlog
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from service.db.postgresql_faults import Fault, fault_of

log = structlog.get_logger()

DAY_MS: Final = 86_400_000
AHEAD: Final = 3
"""How many days after today have partitions: a lock that somebody holds is waited for so long."""
_MOST_BACK: Final = 400
"""Rows of a longer time ago lie in the default partition, if somebody keeps them."""
_NOW: Final = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
_LOCK_TIMEOUT: Final = text("SET LOCAL lock_timeout = '200ms'")
_USUAL_TIMEOUT: Final = text("SET LOCAL lock_timeout TO DEFAULT")
_PARTITIONS: Final = text(
    "SELECT child.relname, pg_get_expr(child.relpartbound, child.oid)"
    " FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid"
    " WHERE inhparent = CAST(:name AS regclass)"
)
_INDEXES: Final = text(
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
    " AND tablename = :name AND indexname <> :key"
)
_KEY: Final = text(
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE conname = :key AND connamespace = current_schema()::regnamespace"
)
_BOUNDS: Final = re.compile(r"FROM \('?(MINVALUE|-?\d+)'?\) TO \('?(-?\d+)'?\)")


class _Partitioned(NamedTuple):
    name: str
    by: str
    """The column with the time."""
    key: str
    """The primary key, with that column in it."""


_TABLES: Final = (
    _Partitioned("result", "ts", "check_id, ts, id"),
    # One FINAL result per run is held by the run's job, which goes when that is stored; what is
    # stored twice has the same time as well.
    _Partitioned("run_final", "result_ms", "run_id, result_ms"),
)


class Span(NamedTuple):
    """The time of which a partition has the rows."""

    from_ms: int | None
    """None: it is the partition of all rows from before there were days."""
    to_ms: int
    """Exclusive."""

    def has(self, time_ms: int) -> bool:
        """Whether a row of this time is there."""
        return self.to_ms > time_ms >= (time_ms if self.from_ms is None else self.from_ms)


def partition(connection: Connection) -> None:
    """Make partitioned tables of plain ones; rows that are there stay in a partition of theirs."""
    if connection.dialect.name == "sqlite":
        return
    cut_ms = _midnight(connection.execute(_NOW).scalar_one()) + DAY_MS
    for table in _TABLES:
        _partition(connection, table, cut_ms)
    create_ahead(connection)


def _partition(connection: Connection, table: _Partitioned, cut_ms: int) -> None:
    name, by, key = table
    primary = f"pk_{name}"
    indexes = connection.execute(_INDEXES, {"name": name, "key": primary}).all()
    has_rows = _run(connection, f"SELECT 1 FROM {name} LIMIT 1")  # noqa: S608 - our own name
    _run(connection, f"ALTER TABLE {name} RENAME TO {name}_before")
    for index, _ in indexes:
        _run(connection, f"ALTER INDEX {index} RENAME TO {index}_before")
    if connection.execute(_KEY, {"key": primary}).scalar_one() == f"PRIMARY KEY ({key})":
        _run(connection, f"ALTER INDEX {primary} RENAME TO {primary}_before")
    else:
        _run(connection, f"ALTER TABLE {name}_before DROP CONSTRAINT {primary}")
    _run(
        connection,
        f"CREATE TABLE {name} (LIKE {name}_before INCLUDING DEFAULTS) PARTITION BY RANGE ({by})",
    )
    _run(connection, f"ALTER TABLE {name} ADD CONSTRAINT {primary} PRIMARY KEY ({key})")
    for _, definition in indexes:
        _run(connection, definition)
    _run(connection, f"CREATE TABLE {name}_default PARTITION OF {name} DEFAULT")
    if has_rows:
        _move(connection, f"{name}_before", f"{name}_default", f"{by} >= {cut_ms}")
        _run(
            connection,
            f"ALTER TABLE {name} ATTACH PARTITION {name}_before"
            f" FOR VALUES FROM (MINVALUE) TO ({cut_ms})",
        )
    else:
        _run(connection, f"DROP TABLE {name}_before")


def create_ahead(connection: Connection) -> None:
    """Make the partitions that are missing from yesterday until some days after today."""
    for day_ms in _missing(connection):
        create_day(connection, day_ms)


def lacks_days(connection: Connection) -> bool:
    """Whether `create_ahead` has something to do."""
    return any(True for _ in _missing(connection))


def _missing(connection: Connection) -> Iterator[int]:
    if connection.dialect.name == "sqlite":
        return
    today_ms = _midnight(connection.execute(_NOW).scalar_one())
    have = [_spans(connection, table.name) for table in _TABLES]
    for day_ms in range(today_ms - DAY_MS, today_ms + AHEAD * DAY_MS + 1, DAY_MS):
        if not all(any(one.has(day_ms) for one in spans) for spans in have):
            yield day_ms


def create_day(connection: Connection, day_ms: int) -> None:
    """Make the partitions of a day, unless there are; the day's rows so far move there."""
    for table in _TABLES:
        if not any(one.has(day_ms) for one in _spans(connection, table.name)):
            _unless_locked(connection, partial(_create, connection, table, day_ms))


def _create(connection: Connection, table: _Partitioned, day_ms: int) -> None:
    """The table comes first and is attached then: reading and writing go on meanwhile."""
    name, by, _ = table
    child, to_ms = _name(name, day_ms), day_ms + DAY_MS
    _run(connection, f"CREATE TABLE {child} (LIKE {name} INCLUDING ALL)")
    _move(connection, f"{name}_default", child, f"{by} >= {day_ms} AND {by} < {to_ms}")
    _run(
        connection,
        f"ALTER TABLE {name} ATTACH PARTITION {child} FOR VALUES FROM ({day_ms}) TO ({to_ms})",
    )


def create_past(connection: Connection, days_ms: Iterable[int]) -> None:
    """Make the partitions of these days, for rows that come from elsewhere."""
    today_ms = _midnight(connection.execute(_NOW).scalar_one())
    for day_ms in sorted(days_ms):
        if today_ms - _MOST_BACK * DAY_MS <= day_ms < today_ms:
            create_day(connection, day_ms)


def list_days(connection: Connection) -> list[Span]:
    """What has a partition of its own, in order; the rows of all other times are in one."""
    if connection.dialect.name == "sqlite":
        return []
    days = {one for table in _TABLES for one in _spans(connection, table.name)}
    return sorted(days, key=lambda one: one.to_ms)


def drop_day(connection: Connection, day: Span) -> bool:
    """Remove a day with all of its rows. False: somebody reads, so that it stays for now."""
    names = ", ".join(_name(table.name, day.from_ms) for table in _TABLES)
    return _unless_locked(connection, partial(_run, connection, f"DROP TABLE IF EXISTS {names}"))


def _unless_locked(connection: Connection, act: Callable[[], object]) -> bool:
    """Act, unless others hold what has to be locked; False then, and nothing is changed."""
    savepoint = connection.begin_nested()
    try:
        connection.execute(_LOCK_TIMEOUT)
        act()
        connection.execute(_USUAL_TIMEOUT)
    except DBAPIError as problem:
        if fault_of(problem) is not Fault.CONFLICT:
            raise
        savepoint.rollback()
        log.info("partitions.locked", reason=str(problem.orig).strip())
        return False
    savepoint.commit()
    return True


def _spans(connection: Connection, name: str) -> list[Span]:
    """All but the default partition."""
    bounds = (row[1] for row in connection.execute(_PARTITIONS, {"name": name}))
    found = (_BOUNDS.search(one) for one in bounds)
    return [
        Span(None if one[1] == "MINVALUE" else int(one[1]), int(one[2]))
        for one in found
        if one is not None
    ]


def _name(table: str, day_ms: int | None) -> str:
    if day_ms is None:
        return f"{table}_before"
    return f"{table}_{datetime.fromtimestamp(day_ms / 1000, UTC):%Y%m%d}"


def _midnight(now_ms: int) -> int:
    return now_ms - now_ms % DAY_MS


def _move(connection: Connection, source: str, target: str, condition: str) -> None:
    """Names and numbers are our own."""
    moved = f"DELETE FROM {source} WHERE {condition} RETURNING *"  # noqa: S608
    _run(connection, f"WITH moved AS ({moved}) INSERT INTO {target} SELECT * FROM moved")  # noqa: S608


def _run(connection: Connection, statement: str) -> bool:
    """Whether it has a row, if it is a query."""
    done = connection.exec_driver_sql(statement)
    return done.returns_rows and done.first() is not None
