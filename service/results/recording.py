"""Storing results: the one way by which a result comes into the database."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from sqlalchemy import Connection

from contract.job import TEST_SOURCES
from service.alerting import actions as alerting
from service.analytics.marking import mark_hours
from service.db.engine import announce
from service.error_groups import actions as error_groups
from service.results.model import (
    Record,
    Recorded,
    ResultType,
    RunsNotPassed,
    RunsPassed,
    RunStatus,
    Stored,
)
from service.results.postgresql import PostgresResultStore
from service.results.sqlite import SqliteResultStore
from service.sessions import actions as sessions
from service.sessions.announcements import announce_progress
from service.sessions.model import ProgressKind


class ResultStore(Protocol):
    """The statements of one database engine that store results."""

    def add(
        self, connection: Connection, records: Sequence[Record], *, now_ms: int
    ) -> Sequence[Recorded]:
        """Store results, mark the runs that they settle, and keep each check's last state."""

    def is_known(self, connection: Connection, check_id: str, run_id: int, fence: int) -> bool:
        """Whether the result of this claim is stored already, as FINAL or as ATTEMPT."""

    def is_settled(self, connection: Connection, check_id: str, run_id: int) -> bool:
        """Whether the run is one of the check, and has its FINAL result."""

    def add_late(self, connection: Connection, rows: Iterable[tuple[object, ...]]) -> None:
        """Keep late results, as the columns of `late_result`; one that is there stays."""

    def hold(self, connection: Connection, check_ids: Iterable[str]) -> bool:
        """Keep the results of these checks to this transaction; False: another one has some."""


ResultObserver = Callable[[Connection, Sequence[Recorded], int], None]
"""What a feature does with new results, in their transaction and order; the last is `now_ms`."""

_OBSERVERS: Final[tuple[ResultObserver, ...]] = (
    error_groups.observe_failures,
    alerting.observe,
    mark_hours,
)
"""In the order in which they act."""
_STORES: Final[dict[str, ResultStore]] = {
    "sqlite": SqliteResultStore(),
    "postgresql": PostgresResultStore(),
}


def store_of(connection: Connection) -> ResultStore:
    """The result store in the database that the connection leads to."""
    return _STORES[connection.dialect.name]


def record(connection: Connection, records: Sequence[Record], *, now_ms: int) -> None:
    """Store results and let the sessions of settled runs go on."""
    if not records:
        return
    stored = store_of(connection).add(connection, records, now_ms=now_ms)
    recorded = [one for one in stored if one[1].source not in TEST_SOURCES]
    for observe in _OBSERVERS if recorded else ():
        observe(connection, recorded, now_ms)
    _announce(connection, records)
    for result_id, one in stored:
        if one.session_id is not None:
            _tell_session(connection, one.session_id, result_id, one, now_ms=now_ms)


def _tell_session(
    connection: Connection, session_id: str, result_id: str, one: Record, *, now_ms: int
) -> None:
    if one.source in TEST_SOURCES:
        kind = ProgressKind.ERROR if one.cause else ProgressKind.RESULT
        announce_progress(connection, session_id, kind, result_id=result_id)
    if one.result_type is ResultType.FINAL:
        sessions.run_finished(connection, session_id, status=one.status, now_ms=now_ms)


def _announce(connection: Connection, records: Sequence[Record]) -> None:
    kinds = tuple((r.result_type, r.status, r.cause) for r in records)
    check_ids = tuple(r.check_id for r in records)
    announce(connection, Stored(kinds, check_ids))
    others = tuple(r.check_id for r in records if r.status is not RunStatus.PASSED)
    if others:
        announce(connection, RunsNotPassed(others))
    if len(others) < len(records):
        announce(connection, RunsPassed(check_ids))
