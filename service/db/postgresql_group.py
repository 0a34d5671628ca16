"""Changes of PostgreSQL in groups: one transaction, one lock, and a savepoint for each."""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from service.db.engine import (
    DatabaseBusyError,
    DatabaseFullError,
    DatabaseUnsureError,
    Shared,
    set_shared,
    shared_of,
    take_notices,
)
from service.db.pending_changes import Change, ChangeQueue, Settled, take_group
from service.db.postgresql_faults import Fault, driver, fault_of
from service.db.postgresql_rows import execute_delayed

if TYPE_CHECKING:
    import psycopg

log = structlog.get_logger()

_LOCK: Final = 0x7069636B6574
"""The advisory lock of all changes: a number that nobody else in this database should use."""
# Without parameters, so that the statements go together.
_BEGIN_ALONE: Final = f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK})"
# Left to itself the planner plans a claim anew each time, three times its work, as soon as the
# queue was analyzed; or sorts all of a queue that was short when it was.
_BEGIN_SHARED: Final = (
    "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_sort = off;"
    f" SELECT pg_advisory_xact_lock_shared({_LOCK}),"
    " (date_part('epoch', clock_timestamp()) * 1000)::bigint"
)
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


class _LostError(Exception):
    """Nothing of a transaction was stored, and it is no change's fault; the cause says whose."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class ChangeLine:
    """Makes changes in order, on a thread and by a connection of its own."""

    def __init__(
        self, engine: Engine, settle: Callable[[list[Settled]], None], *, name: str, brief: bool
    ) -> None:
        self._line: ChangeQueue = queue.SimpleQueue()
        self._settle = settle
        self._writer = _GroupWriter(engine, brief=brief)
        self._thread = threading.Thread(target=self._keep_writing, name=name, daemon=True)
        self._thread.start()

    def put(self, change: Change) -> None:
        """Have a change made after those before it; `settle` is told on the line's thread."""
        self._line.put(change)

    def close(self) -> None:
        """Return once all changes in line are settled; there must be no later one."""
        self._line.put(None)
        self._thread.join()

    def _keep_writing(self) -> None:
        while group := take_group(self._line):
            self._settle(self._writer.write(group))


class _GroupWriter:
    """Makes changes by one connection, which is replaced when it breaks; for one thread."""

    def __init__(self, engine: Engine, *, brief: bool) -> None:
        self._engine = engine
        self._brief = brief

    def write(self, group: deque[Change]) -> list[Settled]:
        """Commit what can be committed; every change is settled in one way or another.

        What lost its transaction through no fault of its own is made again until its time is over.
        """
        if self._brief and (settled := self._try_together(group)) is not None:
            return settled
        pause_s = _FIRST_PAUSE_S
        refused: list[Settled] = []
        while True:
            try:
                return refused + self._run(group, _BEGIN_ALONE, _make_each)
            except _LostError as lost:
                overdue = _overdue(group, lost.fault)
                refused += _refuse(overdue, lost)
                for change in overdue:
                    group.remove(change)
            except Exception as problem:
                # Whoever waits must not do so for ever.
                log.exception("database.group_lost", changes=len(group))
                return refused + [Settled(one.waiter, None, problem, []) for one in group]
            if not group:
                return refused
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _try_together(self, group: deque[Change]) -> list[Settled] | None:
        """Make brief changes beside those of other processes. None: nothing of them is stored.

        One failed, or needs the database to itself. Each is then made in its turn.
        """
        try:
            return self._run(group, _BEGIN_SHARED, _make_together)
        except Exception:  # noqa: BLE001 - where each is made for itself, it is told whose fault it is
            return None

    def _run(
        self,
        group: deque[Change],
        begin: str,
        make: Callable[[Connection, Iterable[Change]], list[Settled]],
    ) -> list[Settled]:
        try:
            with self._engine.connect() as connection:
                return _in_transaction(connection, group, begin, make)
        except DBAPIError as problem:  # there is no connection to be had
            raise _LostError(fault_of(problem) or Fault.CONNECTION) from problem


def _in_transaction(
    connection: Connection,
    group: deque[Change],
    begin: str,
    make: Callable[[Connection, Iterable[Change]], list[Settled]],
) -> list[Settled]:
    postgres = driver(connection)
    take_notices(connection)
    set_shared(connection, None)
    is_made = False
    try:
        last = postgres.execute(begin, prepare=False)
        if begin is _BEGIN_SHARED:
            set_shared(connection, _read_shared(last))
        settled = make(connection, group)
        is_made = True
        _commit(connection)
    except Exception as problem:
        fault = fault_of(problem)
        if postgres.closed:
            connection.invalidate()
        else:
            with suppress(Exception):  # the next transaction finds out that it broke meanwhile
                postgres.rollback()
        if is_made and fault is Fault.CONNECTION:
            return _leave_unsure(group, problem)
        if fault is None:
            raise
        raise _LostError(fault) from problem
    finally:
        with suppress(DBAPIError):
            connection.rollback()
    return settled


def _read_shared(begun: "psycopg.Cursor[Any]") -> Shared:
    """What the last of the statements that began a transaction says."""
    while begun.nextset():
        pass
    (_, now_ms) = begun.fetchone() or ("", 0)
    return Shared(now_ms)


def _commit(connection: Connection) -> None:
    postgres = driver(connection)
    if (shared := shared_of(connection)) is None or not shared.later:
        postgres.execute("COMMIT")
        return
    with postgres.pipeline():
        execute_delayed(connection)
        postgres.execute("COMMIT")


def _make_together(connection: Connection, group: Iterable[Change]) -> list[Settled]:
    return [_made(connection, change) for change in group]


def _make_each(connection: Connection, group: Iterable[Change]) -> list[Settled]:
    return [_make_in_savepoint(connection, change) for change in group]


def _make_in_savepoint(connection: Connection, change: Change) -> Settled:
    postgres = driver(connection)
    postgres.execute("SAVEPOINT change")
    try:
        made = _made(connection, change)
        postgres.execute("RELEASE change")
    except Exception as problem:
        # A change fails in whatever way its author chose; the server's faults are not among them.
        if fault_of(problem) is not None:
            raise
        postgres.execute("ROLLBACK TO change")
        take_notices(connection)
        return Settled(change.waiter, None, problem, [])
    return made


def _made(connection: Connection, change: Change) -> Settled:
    value = change.change(connection)
    return Settled(change.waiter, value, None, take_notices(connection), wrote=True)


def _overdue(group: Iterable[Change], fault: Fault) -> list[Change]:
    """The changes that should wait no longer: all of them when waiting does not help."""
    if fault is Fault.DISK:
        return list(group)
    now = time.monotonic()
    return [change for change in group if change.give_up < now]


def _refuse(changes: Iterable[Change], lost: _LostError) -> list[Settled]:
    kind = DatabaseFullError if lost.fault is Fault.DISK else DatabaseBusyError
    busy = kind(f"the database accepted no change: {_reason(lost.__cause__)}")
    busy.__cause__ = lost.__cause__
    return [Settled(change.waiter, None, busy, []) for change in changes]


def _leave_unsure(changes: Iterable[Change], problem: Exception) -> list[Settled]:
    log.warning("database.commit_unsure", error=_reason(problem))
    unsure = DatabaseUnsureError(f"the connection broke during a commit: {_reason(problem)}")
    unsure.__cause__ = problem
    return [Settled(change.waiter, None, unsure, []) for change in changes]


def _reason(problem: BaseException | None) -> str:
    return str(getattr(problem, "orig", problem)).strip()
