"""Copies every row from one database to another, and compares both afterwards.

A table is copied in the order of its primary key, in transactions of some rows: after an
interruption it goes on after the last key that the target has. Until both were found equal, the
target's revision is none that a service accepts.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Table

from service.db.migrate import HEAD, UNFINISHED
from service.store_migration.model import (
    MigrationError,
    Row,
    TableDigest,
    changed_source,
    digest,
    size_of,
)
from service.store_migration.postgresql import PostgresStore
from service.store_migration.rows import (
    TABLES,
    create_schema,
    find_last_key,
    find_revision,
    finish,
    has_tables,
    list_days_of_results,
    read_rows,
)
from service.store_migration.sqlite import SqliteStore

MovableStore = SqliteStore | PostgresStore
"""A database that rows are read from or written to."""
_BATCH_ROWS: Final = 2_000
_BATCH_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table that is the same in both databases."""

    name: str
    digest: TableDigest
    copied: int
    """Rows that this run copied; the others were there from one that was interrupted."""


def move(source: MovableStore, target: MovableStore) -> Iterator[MovedTable]:
    """Copy and compare table after table; services may use the target once all have come.

    Raises:
        MigrationError: the source or the target is not fit for it, or the two differ.
    """
    _require_source(source)
    _prepare_target(target)
    target.make_days(list_days_of_results(source.engine))
    copied = {table.name: _copy(source, target, table) for table in TABLES}
    target.set_counters(source.read_counters())
    for table in TABLES:
        found = _compare(source, target, table)
        yield MovedTable(table.name, found, copied[table.name])
    if source.read_counters() != target.read_counters():
        raise changed_source(target.name, "a number that a table counts up")
    target.optimize()
    finish(target.engine)


def _require_source(source: MovableStore) -> None:
    source.require_unused()
    if find_revision(source.engine) != HEAD:
        mend = "start this version's service with it once, and stop it"
        raise MigrationError(f"{source.name} has no database of this version; {mend}")


def _prepare_target(target: MovableStore) -> None:
    if not has_tables(target.engine):
        create_schema(target.engine)
    elif find_revision(target.engine) != UNFINISHED:
        mend = "name an empty database, or move this one away"
        raise MigrationError(f"{target.name} already has tables; {mend}")


def _copy(source: MovableStore, target: MovableStore, table: Table) -> int:
    last = find_last_key(target.engine, table)
    copied = 0
    with closing(read_rows(source.engine, table, after=last)) as rows:
        for batch in _batches(rows):
            target.write(table, batch)
            copied += len(batch)
    return copied


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += size_of(row)
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _compare(source: MovableStore, target: MovableStore, table: Table) -> TableDigest:
    found = digest(read_rows(source.engine, table))
    if digest(read_rows(target.engine, table)) != found:
        raise changed_source(target.name, f"the table {table.name}")
    return found
