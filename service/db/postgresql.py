"""PostgreSQL, which several processes of the service share; each has three lines of changes.

An ordinary change has the database to itself, across all processes, by an advisory lock: it reads,
decides and writes as on SQLite, which has one writer. Brief changes hold that lock together with
brief ones of other lines and processes, and rely on the rows that they lock.
Changes that wait share a transaction, so that one commit pays for up to 64 of them.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError

from service.db.engine import (
    DatabaseBusyError,
    DatabaseUnusableError,
    Line,
    NoticeT,
)
from service.db.json_columns import read_json
from service.db.pending_changes import Change, DiskLog, Listeners, Settled
from service.db.postgresql_faults import Fault, driver, fault_of
from service.db.postgresql_group import ChangeLine
from service.db.postgresql_notices import NoticeExchange

T = TypeVar("T")

APPLICATION: Final = "picket"
"""How a service's connections are called in `pg_stat_activity`."""
_MOST_WAITING: Final = 10_000
_READERS: Final = 4
_OLDEST_VERSION: Final = 140_000
_OPTIONS: Final = (
    "-c statement_timeout=30s -c idle_in_transaction_session_timeout=60s -c lock_timeout=2s"
    " -c timezone=UTC -c jit=off"
)
_CONNECTION: Final = {
    "application_name": APPLICATION,
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_FACTS: Final = text(
    "SELECT current_setting('server_version_num')::int, pg_encoding_to_char(encoding), datcollate"
    " FROM pg_database WHERE datname = current_database()"
)
_BYTEWISE: Final = frozenset({"C", "POSIX"})


class PostgresDatabase:
    """A PostgreSQL database behind the `Database` protocol; made by `open_postgresql`."""

    def __init__(self, url: str, *, give_up_s: float) -> None:
        self._give_up_s = give_up_s
        self._loop = asyncio.get_running_loop()
        self._listeners = Listeners()
        self._disk = DiskLog()
        self._in_line = 0
        """Changes from the first moment until they are settled."""
        self._closed = False
        self._write_engine = _engine(url, connections=1 + len(Line))
        require_usable(self._write_engine)
        self._lines = {
            one: ChangeLine(
                self._write_engine,
                self._pass_on,
                name=f"db-{one.name.lower() if one else 'changes'}",
                brief=one is not None,
            )
            for one in (None, *Line)
        }
        """None: of ordinary changes."""
        self._read_engine = _engine(url, connections=_READERS)
        event.listen(self._read_engine, "begin", _begin_snapshot)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="db-reader")
        self._exchange = NoticeExchange(_address(url), self._listeners)
        self._exchanging = self._loop.create_task(self._exchange.run(), name="db-notices")

    async def write(self, change: Callable[[Connection], T], *, brief: Line | None = None) -> T:
        """Run a change in a transaction; returns once it is committed."""
        if self._closed or self._in_line >= _MOST_WAITING:
            raise DatabaseBusyError("too many changes are waiting for the database; try again")
        waiter: asyncio.Future[T] = self._loop.create_future()
        self._in_line += 1
        give_up = time.monotonic() + self._give_up_s
        self._lines[brief].put(Change(change, waiter, give_up))
        return await waiter

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a snapshot that holds every change that was acknowledged before."""
        return await self._loop.run_in_executor(self._readers, self._query, query)

    def listen(self, kind: type[NoticeT], listener: Callable[[NoticeT], None]) -> None:
        """Call the listener, on the event loop, with each notice of this kind after its commit."""
        self._listeners.add(kind, listener)

    async def close(self) -> None:
        """Finish the changes that wait, then let go of the connections."""
        if self._closed:
            return
        self._closed = True
        for line in self._lines.values():
            await asyncio.to_thread(line.close)
        await asyncio.to_thread(self._readers.shutdown)
        self._exchange.close()
        await self._exchanging
        for engine in (self._read_engine, self._write_engine):
            engine.dispose()

    def _query(self, query: Callable[[Connection], T]) -> T:
        """A query that lost its connection is asked once more: most of them went while idle."""
        try:
            return self._ask(query)
        except DBAPIError as problem:
            if fault_of(problem) is not Fault.CONNECTION:
                raise
        try:
            return self._ask(query)
        except DBAPIError as problem:
            if fault_of(problem) is None:
                raise
            raise DatabaseBusyError(f"the database does not answer: {problem.orig}") from problem

    def _ask(self, query: Callable[[Connection], T]) -> T:
        with self._read_engine.connect() as connection:
            answer = query(connection)
            driver(connection).commit()  # a rollback would have the driver prepare anew
            return answer

    def _pass_on(self, settled: list[Settled]) -> None:
        """From the thread of a line."""
        self._loop.call_soon_threadsafe(self._settle, settled)

    def _settle(self, settled: list[Settled]) -> None:
        self._in_line -= len(settled)
        self._disk.note(settled)
        self._listeners.settle(settled)
        for one in settled:
            self._exchange.pass_on(one.notices)


def open_postgresql(url: str, *, give_up_s: float = 20.0) -> PostgresDatabase:
    """Connect to a database that a `postgresql://` address names; to be called on the event loop.

    While the server is away, or others hold the database, changes wait `give_up_s` seconds in all.

    Raises:
        DatabaseUnusableError: it cannot be reached, or is none that the service can use.
    """
    return PostgresDatabase(url, give_up_s=give_up_s)


def _engine(url: str, *, connections: int) -> Engine:
    return create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        connect_args={**_CONNECTION, "options": _OPTIONS},
        isolation_level="AUTOCOMMIT",  # we say BEGIN and COMMIT ourselves
        pool_size=connections,
        max_overflow=0,
        json_deserializer=read_json,
        hide_parameters=True,  # what a failed statement would have stored may be a secret
    )


def _address(url: str) -> str:
    """The address in the spelling of the driver."""
    plain = make_url(url).set(drivername="postgresql")
    return plain.render_as_string(hide_password=False)


def require_usable(engine: Engine) -> None:
    """Check that a service can use the database of an engine.

    Raises:
        DatabaseUnusableError: it cannot be reached, or is none that the service can use.
    """
    name = engine.url.render_as_string(hide_password=True).replace("+psycopg", "")
    try:
        with engine.connect() as connection:
            version, encoding, collation = connection.execute(_FACTS).one()
    except DBAPIError as problem:
        reason = f"{name} cannot be used as a database: {problem.orig}"
        raise DatabaseUnusableError(reason.strip()) from problem
    finally:
        engine.dispose()  # the writer's thread makes its own
    if version < _OLDEST_VERSION:
        raise DatabaseUnusableError(f"{name} is PostgreSQL {version // 10_000}; use 14 or newer")
    if encoding != "UTF8" or collation not in _BYTEWISE:
        # Ids and cursors are compared as bytes, here as on SQLite.
        mend = "CREATE DATABASE picket TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
        raise DatabaseUnusableError(
            f"{name} has the encoding {encoding} and the collation {collation}; make one by: {mend}"
        )


def _begin_snapshot(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
