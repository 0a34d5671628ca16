"""The embedded database: SQLite in WAL mode, one writer thread that commits in groups.

Why one writer: SQLite has one anyway. Changes that wait in line share a transaction, each in a
savepoint of its own, so that one commit pays for up to 64 of them and a failing one spoils none.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import structlog
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError

from service.db.engine import DatabaseBusyError, DatabaseUnusableError, NoticeT, take_notices

log = structlog.get_logger()

T = TypeVar("T")

_GROUP: Final = 64
_MOST_WAITING: Final = 10_000
_READERS: Final = 4
_STATEMENTS_CACHED: Final = 256


@dataclass(frozen=True, slots=True)
class _Change:
    """A change in line, and who waits for it."""

    change: Callable[[Connection], Any]
    waiter: asyncio.Future[Any]
    give_up: float
    """By the monotonic clock: a change that could not begin until then is refused."""


@dataclass(frozen=True, slots=True)
class _Settled:
    """What became of a change."""

    waiter: asyncio.Future[Any]
    value: Any
    problem: Exception | None
    """None: it is committed, and `value` is what it returned."""
    notices: list[object]


class SqliteDatabase:
    """One SQLite file behind the `Database` protocol; made by `open_sqlite` on the event loop."""

    def __init__(self, path: Path, *, busy_timeout_s: float, give_up_s: float) -> None:
        self._give_up_s = give_up_s
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[type, list[Callable[[Any], None]]] = {}
        self._line: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._closed = False
        self._write_engine = _engine(path, busy_timeout_s=busy_timeout_s)
        self._connection = _connect(self._write_engine, path)
        self._read_engine = _engine(path, busy_timeout_s=busy_timeout_s)
        event.listen(self._read_engine, "begin", _begin_snapshot)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="db-reader")
        self._writer = threading.Thread(target=self._keep_writing, name="db-writer", daemon=True)
        self._writer.start()

    async def write(self, change: Callable[[Connection], T]) -> T:
        """Run a change in a transaction; returns once it is committed."""
        if self._closed or self._line.qsize() >= _MOST_WAITING:
            raise DatabaseBusyError("too many changes wait for the database; try again")
        waiter: asyncio.Future[T] = self._loop.create_future()
        self._line.put(_Change(change, waiter, time.monotonic() + self._give_up_s))
        return await waiter

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a snapshot that holds every change that was acknowledged before."""
        return await self._loop.run_in_executor(self._readers, self._query, query)

    def listen(self, kind: type[NoticeT], listener: Callable[[NoticeT], None]) -> None:
        """Call the listener, on the event loop, with each notice of this kind after its commit."""
        self._listeners.setdefault(kind, []).append(listener)

    async def close(self) -> None:
        """Finish the changes that wait, then let go of the files."""
        if self._closed:
            return
        self._closed = True
        self._line.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        self._read_engine.dispose()
        self._write_engine.dispose()

    def _query(self, query: Callable[[Connection], T]) -> T:
        with self._read_engine.connect() as connection:
            return query(connection)

    def _keep_writing(self) -> None:
        with self._connection as connection:
            while group := self._next_group():
                settled = _write_group(connection, group)
                self._loop.call_soon_threadsafe(self._settle, settled)

    def _next_group(self) -> deque[_Change]:
        """The next changes in line; none at all once the database closes."""
        group: deque[_Change] = deque()
        change = self._line.get()
        while change is not None:
            group.append(change)
            if len(group) == _GROUP:
                return group
            try:
                change = self._line.get_nowait()
            except queue.Empty:
                return group
        if group:
            self._line.put(None)
        return group

    def _settle(self, settled: list[_Settled]) -> None:
        for one in settled:
            # A waiter that was cancelled meanwhile does not want to know; the change stands.
            if one.waiter.done():
                pass
            elif one.problem is not None:
                one.waiter.set_exception(one.problem)
            else:
                one.waiter.set_result(one.value)
            for notice in one.notices:
                for listener in self._listeners.get(type(notice), ()):
                    listener(notice)


def open_sqlite(
    path: Path, *, busy_timeout_s: float = 2.0, give_up_s: float = 20.0
) -> SqliteDatabase:
    """Open the file, made when it is missing; to be called on the event loop.

    While another process holds the file's lock, changes wait `give_up_s` seconds in all.

    Raises:
        DatabaseUnusableError: there is no place for the file, or it is no database.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise DatabaseUnusableError(f"{path} cannot be made: {problem.strerror}") from problem
    return SqliteDatabase(path, busy_timeout_s=busy_timeout_s, give_up_s=give_up_s)


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, for statements that are too hot for anything above it."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def _engine(path: Path, *, busy_timeout_s: float) -> Engine:
    arguments = {
        "isolation_level": None,  # we say BEGIN and COMMIT ourselves
        "check_same_thread": False,
        "timeout": busy_timeout_s,
        "cached_statements": _STATEMENTS_CACHED,
    }
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args=arguments,
        pool_size=_READERS,
        hide_parameters=True,  # what a failed statement would have stored may be a secret
    )
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _connect(engine: Engine, path: Path) -> Connection:
    try:
        return engine.connect()
    except DatabaseError as problem:
        reason = f"{path} cannot be used as a database: {problem.orig}"
        raise DatabaseUnusableError(reason) from problem


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_snapshot(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _write_group(connection: Connection, group: deque[_Change]) -> list[_Settled]:
    """Commit what can be committed; every change of the group is settled in one way or another."""
    sqlite = driver(connection)
    refused = _begin(sqlite, group)
    if not group:
        return refused
    settled: list[_Settled] = []
    try:
        run = _run_alone if len(group) == 1 else _run_in_savepoint
        settled += [run(connection, sqlite, change) for change in group]
        sqlite.execute("COMMIT")
    except sqlite3.Error as problem:
        log.exception("database.group_lost", changes=len(group))
        settled = _refuse(group, problem)
        sqlite.rollback()
        take_notices(connection)
    finally:
        connection.rollback()
    return refused + settled


def _begin(sqlite: sqlite3.Connection, group: deque[_Change]) -> list[_Settled]:
    """Begin a transaction, however long others hold the file; refuse changes that waited too long.

    IMMEDIATE, because a transaction that reads first and writes later fails at once, whatever the
    busy timeout, when another one wrote in between.
    """
    refused: list[_Settled] = []
    while group:
        try:
            sqlite.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as problem:
            log.warning("database.not_begun", waiting=len(group), error=str(problem))
            overdue = _overdue(group, problem)
            refused += _refuse(overdue, problem)
            for change in overdue:
                group.remove(change)
        else:
            break
    return refused


def _overdue(group: deque[_Change], problem: sqlite3.OperationalError) -> list[_Change]:
    """The changes that should wait no longer: all of them when waiting does not help."""
    if problem.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return list(group)
    now = time.monotonic()
    return [change for change in group if change.give_up < now]


def _refuse(changes: Iterable[_Change], problem: sqlite3.Error) -> list[_Settled]:
    busy = DatabaseBusyError(f"the database took no change: {problem}")
    busy.__cause__ = problem
    return [_Settled(change.waiter, None, busy, []) for change in changes]


def _run_alone(connection: Connection, sqlite: sqlite3.Connection, change: _Change) -> _Settled:
    """The transaction is the change's own: no savepoint, which would take 20 µs of CPU time."""
    try:
        value = change.change(connection)
    except Exception as problem:  # noqa: BLE001 - as in a savepoint
        return _undone(connection, sqlite, change, problem, "ROLLBACK", "BEGIN")
    return _Settled(change.waiter, value, None, take_notices(connection))


def _run_in_savepoint(
    connection: Connection, sqlite: sqlite3.Connection, change: _Change
) -> _Settled:
    sqlite.execute("SAVEPOINT change")
    try:
        value = change.change(connection)
    except Exception as problem:  # noqa: BLE001 - a change fails in whatever way its author chose
        undo = ("ROLLBACK TO change", "RELEASE change")
        return _undone(connection, sqlite, change, problem, *undo)
    sqlite.execute("RELEASE change")
    return _Settled(change.waiter, value, None, take_notices(connection))


def _undone(
    connection: Connection,
    sqlite: sqlite3.Connection,
    change: _Change,
    problem: Exception,
    *undo: str,
) -> _Settled:
    """A change that failed leaves nothing; whoever waits for it is told."""
    if not sqlite.in_transaction:
        # The disk is full or broken: SQLite has rolled back the whole group by itself.
        raise sqlite3.OperationalError(str(problem)) from problem
    for statement in undo:
        sqlite.execute(statement)
    take_notices(connection)
    return _Settled(change.waiter, None, problem, [])
