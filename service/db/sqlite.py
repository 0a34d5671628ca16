"""The embedded database: SQLite in WAL mode, one change at a time, committed in groups.

SQLite has one writer anyway. Changes that wait share a transaction, so that one commit pays for up
to 64 of them. A failing one spoils none: brief ones are then undone and made one by one, and all
others have a savepoint of their own.

A thread makes them, so that a large change, or a file that somebody else has locked, stops nobody.
Brief ones are made on the event loop while that thread has nothing to do and the file is free: two
threads that pass the interpreter's lock to and fro at each statement take a third more time.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError

from service.db.engine import (
    DatabaseBusyError,
    DatabaseUnusableError,
    Line,
    NoticeT,
)
from service.db.json_columns import read_json
from service.db.pending_changes import (
    MOST_TOGETHER,
    Change,
    ChangeQueue,
    DiskLog,
    Listeners,
    Settled,
    take_group,
)
from service.db.sqlite_group import (
    carry_out,
    carry_out_together,
    driver,
    has_begun,
    write_group,
)

T = TypeVar("T")

_MOST_WAITING: Final = 10_000
_READERS: Final = 4
_STATEMENTS_CACHED: Final = 256
_THREAD_EVERY: Final = 100
"""One group in so many of the loop's is the thread's: after some 500 pages; SQLite wants 1,000."""


class SqliteDatabase:
    """One SQLite file behind the `Database` protocol; made by `open_sqlite` on the event loop."""

    def __init__(self, path: Path, *, busy_timeout_s: float, give_up_s: float) -> None:
        self._give_up_s = give_up_s
        self._loop = asyncio.get_running_loop()
        self._listeners = Listeners()
        self._line: ChangeQueue = queue.SimpleQueue()
        self._in_line = 0
        """Changes that the thread has, from the first moment until they are settled."""
        self._brief: deque[Change] = deque()
        """Changes for the loop itself, at the end of this turn or when the line is empty."""
        self._closed = False
        self._disk = DiskLog()
        self._write_engine = _engine(path, busy_timeout_s=busy_timeout_s)
        self._connection = _connect(self._write_engine, path)
        self._loop_engine = _engine(path, busy_timeout_s=0)
        self._loop_connection = _connect(self._loop_engine, path)
        self._until_thread = _THREAD_EVERY
        # Bringing the log into the file waits for the disk.
        driver(self._loop_connection).execute("PRAGMA wal_autocheckpoint=0")
        self._read_engine = _engine(path, busy_timeout_s=busy_timeout_s)
        event.listen(self._read_engine, "begin", _begin_snapshot)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="db-reader")
        self._writer = threading.Thread(target=self._keep_writing, name="db-writer", daemon=True)
        self._writer.start()

    async def write(self, change: Callable[[Connection], T], *, brief: Line | None = None) -> T:
        """Run a change in a transaction; returns once it is committed."""
        if self._closed or self._in_line + len(self._brief) >= _MOST_WAITING:
            raise DatabaseBusyError("too many changes are waiting for the database; try again")
        waiter: asyncio.Future[T] = self._loop.create_future()
        asked = Change(change, waiter, time.monotonic() + self._give_up_s)
        if brief:
            self._brief.append(asked)
            if len(self._brief) == 1:
                self._loop.call_soon(self._make_brief)
        else:
            self._hold_nothing_back()
            self._stand_in_line(asked)
        return await waiter

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a snapshot that holds every change that was acknowledged before."""
        return await self._loop.run_in_executor(self._readers, self._query, query)

    def listen(self, kind: type[NoticeT], listener: Callable[[NoticeT], None]) -> None:
        """Call the listener, on the event loop, with each notice of this kind after its commit."""
        self._listeners.add(kind, listener)

    async def close(self) -> None:
        """Finish the changes that wait, then let go of the files."""
        if self._closed:
            return
        self._closed = True
        self._hold_nothing_back()
        self._line.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        self._loop_connection.close()
        for engine in (self._read_engine, self._loop_engine, self._write_engine):
            engine.dispose()

    def _hold_nothing_back(self) -> None:
        """Whoever comes next comes after these."""
        brief, self._brief = self._brief, deque()
        self._stand_in_line(*brief)

    def _stand_in_line(self, *changes: Change) -> None:
        self._in_line += len(changes)
        for change in changes:
            self._line.put(change)

    def _make_brief(self) -> None:
        """At the end of a turn, once the thread has settled what was asked for before."""
        if self._in_line or not self._brief:
            return
        group = deque(self._brief.popleft() for _ in range(min(MOST_TOGETHER, len(self._brief))))
        settled = None if self._is_threads_turn() else self._made_here(group)
        if settled is None:
            self._stand_in_line(*group)
            return
        self._settle(settled)
        if self._brief:
            self._loop.call_soon(self._make_brief)

    def _made_here(self, group: deque[Change]) -> list[Settled] | None:
        """None: the file is locked, or one of several failed; the thread has to see to them."""
        if not has_begun(driver(self._loop_connection)):
            return None
        run = carry_out if len(group) == 1 else carry_out_together
        return run(self._loop_connection, group)

    def _is_threads_turn(self) -> bool:
        """Its commits bring the log into the file when that is long, which waits for the disk."""
        self._until_thread = (self._until_thread or _THREAD_EVERY) - 1
        return not self._until_thread

    def _query(self, query: Callable[[Connection], T]) -> T:
        with self._read_engine.connect() as connection:
            return query(connection)

    def _keep_writing(self) -> None:
        with self._connection as connection:
            while group := take_group(self._line):
                settled = write_group(connection, group)
                self._loop.call_soon_threadsafe(self._settle_line, settled)

    def _settle_line(self, settled: list[Settled]) -> None:
        self._in_line -= len(settled)
        self._settle(settled)
        self._make_brief()

    def _settle(self, settled: list[Settled]) -> None:
        self._disk.note(settled)
        self._listeners.settle(settled)


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
        raise DatabaseUnusableError(f"{path} cannot be created: {problem.strerror}") from problem
    return SqliteDatabase(path, busy_timeout_s=busy_timeout_s, give_up_s=give_up_s)


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
        json_deserializer=read_json,
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
    settings = (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        "temp_store=MEMORY",  # savepoints would keep their copies of pages in a file
        "secure_delete=ON",  # what is gone must not stand in the file; many builds do so anyway
    )
    for pragma in settings:
        connection.execute(f"PRAGMA {pragma}")


def _begin_snapshot(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
