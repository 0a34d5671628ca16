"""What happens to sessions once they go on; each is part of the caller's transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from contract.job import RunSource
from service.checks import actions as checks
from service.db.engine import announce
from service.http.errors import NotFoundError
from service.jobs import actions as jobs
from service.locations import actions as locations
from service.results.model import RunStatus
from service.sessions import store
from service.sessions.announcements import announce_progress
from service.sessions.model import (
    ProgressKind,
    Session,
    SessionFinished,
    SessionStatus,
    TestSession,
    TestStatus,
)
from service.sessions.rules import after_all, after_end, deadline_ms, latest_starts, worse
from service.variables import actions as variables
from service.variables.model import Owner


def run_finished(
    connection: Connection, session_id: str, *, status: RunStatus, now_ms: int
) -> None:
    """A run of the session has its final result; the last one ends the session."""
    session = store.find(connection, session_id)
    if session is None or session.stopped_ms is not None:
        return
    pending = max(0, session.pending - 1)
    _settle(
        connection,
        session,
        status=worse(session.status, status),
        pending=pending,
        stopped_ms=now_ms if pending == 0 else None,
    )


def end_overdue(connection: Connection, session: Session, *, now_ms: int) -> Session:
    """The session, ended as TIMED_OUT if its deadline has passed."""
    if session.stopped_ms is not None or now_ms < deadline_ms(session):
        return session
    _time_out(connection, session, now_ms=now_ms)
    return store.find(connection, session.id) or session


def abandon(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """The check goes: its sessions end, as their runs never come back."""
    for session in store.open_of_check(connection, check_id):
        _time_out(connection, session, now_ms=now_ms)


def end_overdue_of_groups(connection: Connection, *, now_ms: int) -> int:
    """End what holds up the run of a group; how many were too late.

    Other sessions end when somebody looks at them, but here others wait for the end.
    """
    may_be_late = store.open_of_groups(connection, starts=latest_starts(now_ms))
    late = [one for one in may_be_late if now_ms >= deadline_ms(one)]
    for session in late:
        _time_out(connection, session, now_ms=now_ms)
    return len(late)


def pass_turn(connection: Connection, group_run: str, *, now_ms: int) -> None:
    """Let the next session of a group's run begin, if one waits."""
    while session := store.first_waiting(connection, group_run):
        if places := _places(connection, session):
            _begin(connection, session, places, now_ms=now_ms)
            return
        store.begin(connection, session.id, runs=0, now_ms=now_ms)
        _end(connection, session, SessionStatus.FAILED, now_ms=now_ms)


def count_locations(connection: Connection, session_id: str) -> int:
    """At how many locations a session runs; 0: it is gone."""
    session = store.find(connection, session_id)
    return len(session.locations) if session else 0


def has_old(connection: Connection, *, before_ms: int) -> bool:
    """Whether there are sessions that `remove_old` removes."""
    return bool(store.list_old(connection, before_ms=before_ms, most=1))


def remove_old(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove the oldest sessions that were over before; how many went.

    `before_ms` lies further back than any deadline: one that is open by then has lost its runs.
    """
    ids = store.list_old(connection, before_ms=before_ms, most=most)
    if ids:
        for session in store.list_open_tests(connection, ids):
            _time_out(connection, session, now_ms=before_ms)  # its variables go with it
        store.remove(connection, ids)
    if len(ids) < most:
        store.remove_empty_tests(connection, before_ms=before_ms)
    return len(ids)


def find(connection: Connection, account_id: str, session_id: str) -> Session:
    """A session of the account.

    Raises:
        NotFoundError: it has none with this id.
    """
    session = store.find_of(connection, account_id, session_id)
    if session is None:
        raise NotFoundError("No such check session.")
    return session


def find_test(connection: Connection, account_id: str, test_id: str) -> TestSession:
    """A test session of the account.

    Raises:
        NotFoundError: it has none with this id.
    """
    test = store.find_test_of(connection, account_id, test_id)
    if test is None:
        raise NotFoundError("No such test session.")
    return test


def list_tests(
    connection: Connection,
    account_id: str,
    *,
    statuses: Collection[TestStatus],
    after_id: str | None,
    limit: int,
) -> Sequence[TestSession]:
    """Recorded test sessions of the account, newest first; no statuses: of any."""
    return store.list_tests(
        connection, account_id, statuses=statuses, after_id=after_id, limit=limit
    )


def list_states(
    connection: Connection, tests: Iterable[TestSession]
) -> Mapping[str, Sequence[tuple[str, SessionStatus, bool]]]:
    """The sessions of test sessions, as `store.list_states` has them."""
    return store.list_states(connection, [one.id for one in tests])


def list_members(connection: Connection, test: TestSession) -> tuple[Session, ...]:
    """The sessions of a test session, one for each of its checks."""
    return store.list_members(connection, test.id)


def cancel(connection: Connection, session: Session, *, now_ms: int) -> None:
    """End a session of a test whose runs were dropped."""
    if _end(connection, session, SessionStatus.CANCELLED, now_ms=now_ms):
        announce_progress(connection, session.id, ProgressKind.CANCELLED)


def end_overdue_members(connection: Connection, test: TestSession, *, now_ms: int) -> None:
    """End the sessions of a test whose deadlines have passed, and the test if none goes on.

    A replica of an older release ends sessions without counting them in their test.
    """
    members = store.list_members(connection, test.id)
    ended = [end_overdue(connection, session, now_ms=now_ms) for session in members]
    seen = store.find_test(connection, test.id)
    if seen is None or seen.stopped_ms is not None:
        return
    if all(one.stopped_ms is not None for one in ended):
        after = after_all(seen, [one.status for one in ended], now_ms=now_ms)
        store.settle_test(connection, after)
        announce(connection, SessionFinished(test.id))


def find_bundle_owner(connection: Connection, location_id: str, sha256: str) -> str | None:
    """The account of the location, if a check runs the bundle that is not stored. None: none."""
    account_id = locations.find_account(connection, location_id)
    is_tested = account_id and store.is_tested(connection, account_id, sha256)
    return account_id if is_tested else None


def _time_out(connection: Connection, session: Session, *, now_ms: int) -> None:
    _settle(
        connection,
        session,
        status=worse(session.status, RunStatus.TIMED_OUT),
        pending=session.pending,
        stopped_ms=now_ms,
    )


def _places(connection: Connection, session: Session) -> list[str]:
    """Where a session that waited runs; a location may have gone meanwhile, and a check paused."""
    check = checks.find_terms(connection, session.check_id)
    runs = check is not None and check.activated
    ids = locations.list_ids_by_slug(connection, check.account_id) if check and runs else {}
    return [ids[slug] for slug in session.locations if slug in ids]


def _begin(connection: Connection, session: Session, places: Sequence[str], *, now_ms: int) -> None:
    store.begin(connection, session.id, runs=len(places), now_ms=now_ms)
    wanted = jobs.WantedRuns(
        check_id=session.check_id,
        location_ids=places,
        source=RunSource.TRIGGER_API,
        session_id=session.id,
    )
    jobs.enqueue(connection, wanted, now_ms=now_ms)


def _settle(
    connection: Connection,
    session: Session,
    *,
    status: SessionStatus,
    pending: int,
    stopped_ms: int | None,
) -> None:
    if stopped_ms is None:
        store.settle(connection, session.id, status=status, pending=pending, stopped_ms=None)
        return
    ended = _end(connection, session, status, pending=pending, now_ms=stopped_ms)
    # One that waited held nobody up.
    if ended and session.group_run is not None and session.turn is None:
        pass_turn(connection, session.group_run, now_ms=stopped_ms)


def _end(
    connection: Connection,
    session: Session,
    status: SessionStatus,
    *,
    now_ms: int,
    pending: int = 0,
) -> bool:
    """False: it had ended before."""
    ended = store.settle(connection, session.id, status=status, pending=pending, stopped_ms=now_ms)
    if ended:
        announce(connection, SessionFinished(session.id))
    if ended and session.is_test:
        account_id = store.find_owner(connection, session.id)
        variables.forget(connection, Owner.check(account_id, session.check_id))
    if ended and session.test:
        _count_end(connection, session.test.test_session_id, status, now_ms=now_ms)
    return ended


def _count_end(connection: Connection, test_id: str, status: SessionStatus, *, now_ms: int) -> None:
    """A check of the test session has ended; the last one ends all of it."""
    test = store.find_test(connection, test_id)
    if test is None or test.stopped_ms is not None:
        return
    after = after_end(test, status, now_ms=now_ms)
    store.settle_test(connection, after)
    if after.stopped_ms is not None:
        announce(connection, SessionFinished(test.id))


def find_retry_strategy(connection: Connection, session_id: str) -> Mapping[str, Any] | None:
    """How failed runs of a session of a test are retried. None: they are final."""
    return store.find_retry_strategy(connection, session_id)
