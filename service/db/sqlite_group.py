"""Changes of the embedded database in groups: one transaction, and a savepoint for each."""

import sqlite3
import time
from collections import deque
from collections.abc import Iterable
from typing import cast

import structlog
from sqlalchemy import Connection

from service.db.engine import DatabaseBusyError, DatabaseFullError, take_notices
from service.db.pending_changes import Change, Settled

log = structlog.get_logger()


def is_disk_fault(problem: Exception) -> bool:
    """Whether the disk, not the change, is at fault; SQLAlchemy wraps the driver's errors."""
    code = getattr(getattr(problem, "orig", problem), "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, for statements that are too hot for anything above it."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def write_group(connection: Connection, group: deque[Change]) -> list[Settled]:
    """Commit what can be committed; every change of the group is settled in one way or another."""
    refused = _begin(driver(connection), group)
    return refused + carry_out(connection, group) if group else refused


def has_begun(sqlite: sqlite3.Connection) -> bool:
    """Begin a transaction, unless the file is locked or nothing can be begun at all."""
    try:
        sqlite.execute("BEGIN IMMEDIATE")
    except sqlite3.DatabaseError:
        return False
    return True


def carry_out(connection: Connection, group: deque[Change]) -> list[Settled]:
    """Make the changes of a group in the transaction that has begun, and commit."""
    sqlite = driver(connection)
    run = _run_alone if len(group) == 1 else _run_in_savepoint
    return _ended(connection, group, (run(connection, sqlite, change) for change in group))


def carry_out_together(connection: Connection, group: deque[Change]) -> list[Settled] | None:
    """Make the changes of a group as one, and commit. None: one failed, and nothing was made.

    Then they must be made again, one by one. It spares each change its savepoint, for which SQLite
    keeps a copy of every page that is touched.
    """
    try:
        settled = [_made(connection, change) for change in group]
    except Exception:  # noqa: BLE001 - where each is made for itself, it is told whose fault it is
        connection.rollback()
        driver(connection).rollback()
        take_notices(connection)
        return None
    return _ended(connection, group, settled)


def _ended(connection: Connection, group: deque[Change], made: Iterable[Settled]) -> list[Settled]:
    try:
        settled = list(made)
        driver(connection).execute("COMMIT")
    except sqlite3.Error as problem:
        if not is_disk_fault(problem):
            log.exception("database.group_lost", changes=len(group))
        settled = _refuse(group, problem)
        driver(connection).rollback()
        take_notices(connection)
    finally:
        connection.rollback()
    return settled


def _begin(sqlite: sqlite3.Connection, group: deque[Change]) -> list[Settled]:
    """Begin a transaction, however long others hold the file; refuse changes that waited too long.

    IMMEDIATE, because a transaction that reads first and writes later fails at once, whatever the
    busy timeout, when another one wrote in between.
    """
    refused: list[Settled] = []
    while group:
        try:
            sqlite.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as problem:
            if not is_disk_fault(problem):
                log.warning("database.not_begun", waiting=len(group), error=str(problem))
            overdue = _overdue(group, problem)
            refused += _refuse(overdue, problem)
            for change in overdue:
                group.remove(change)
        else:
            break
    return refused


def _overdue(group: deque[Change], problem: sqlite3.DatabaseError) -> list[Change]:
    """The changes that should wait no longer: all of them when waiting does not help."""
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # the driver's own have none
    if code & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return list(group)
    now = time.monotonic()
    return [change for change in group if change.give_up < now]


def _refuse(changes: Iterable[Change], problem: sqlite3.Error) -> list[Settled]:
    kind = DatabaseFullError if is_disk_fault(problem) else DatabaseBusyError
    busy = kind(f"the database accepted no change: {problem}")
    busy.__cause__ = problem
    return [Settled(change.waiter, None, busy, []) for change in changes]


def _run_alone(connection: Connection, sqlite: sqlite3.Connection, change: Change) -> Settled:
    """The transaction is the change's own: no savepoint, which would take 20 µs of CPU time."""
    try:
        return _made(connection, change)
    except Exception as problem:  # noqa: BLE001 - as in a savepoint
        return _undone(connection, sqlite, change, problem, "ROLLBACK", "BEGIN")


def _run_in_savepoint(
    connection: Connection, sqlite: sqlite3.Connection, change: Change
) -> Settled:
    sqlite.execute("SAVEPOINT change")
    try:
        made = _made(connection, change)
    except Exception as problem:  # noqa: BLE001 - a change fails in whatever way its author chose
        undo = ("ROLLBACK TO change", "RELEASE change")
        return _undone(connection, sqlite, change, problem, *undo)
    sqlite.execute("RELEASE change")
    return made


def _made(connection: Connection, change: Change) -> Settled:
    changes_before = driver(connection).total_changes
    value = change.change(connection)
    wrote = driver(connection).total_changes > changes_before
    return Settled(change.waiter, value, None, take_notices(connection), wrote)


def _undone(
    connection: Connection,
    sqlite: sqlite3.Connection,
    change: Change,
    problem: Exception,
    *undo: str,
) -> Settled:
    """A change that failed leaves nothing; whoever waits for it is told."""
    if not sqlite.in_transaction or is_disk_fault(problem):
        # The disk is full or broken: SQLite has rolled back the whole group, or should.
        fault = getattr(problem, "orig", problem)
        if isinstance(fault, sqlite3.Error):
            raise fault
        raise sqlite3.OperationalError(str(problem)) from problem
    for statement in undo:
        sqlite.execute(statement)
    take_notices(connection)
    return Settled(change.waiter, None, problem, [])
