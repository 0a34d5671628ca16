"""SQL of sessions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    insert,
    or_,
    select,
    union_all,
    update,
)

from service.checks.model import UnstoredCheck
from service.db.ids import least_id
from service.db.tables.checks import check_
from service.db.tables.runs import session, test_session
from service.sessions.model import (
    Followed,
    LatestStarts,
    Session,
    SessionStatus,
    TestMember,
    TestSession,
    TestStatus,
)

_ONE: Final = select(session).where(session.c.id == bindparam("session_id"))
_OF_ACCOUNT: Final = _ONE.where(session.c.account_id == bindparam("account_id"))
_OPEN_OF_CHECK: Final = select(session).where(
    session.c.check_id == bindparam("check_id"), session.c.stopped_ms.is_(None)
)
_OPEN_OF_GROUPS: Final = select(session).where(
    session.c.group_run.is_not(None), session.c.stopped_ms.is_(None)
)
_OPEN_OF_GROUP: Final = (
    _OPEN_OF_GROUPS.join(check_, check_.c.id == session.c.check_id)
    .where(check_.c.group_id == bindparam("group_id"))
    .order_by(session.c.id)
    .limit(1)
)
_EARLY_OF_GROUPS: Final = _OPEN_OF_GROUPS.where(
    or_(
        and_(session.c.turn.is_(None), session.c.started_ms <= bindparam("running_ms")),
        session.c.started_ms <= bindparam("waiting_ms"),
    )
)
_FIRST_WAITING: Final = (
    _OPEN_OF_GROUPS.where(session.c.group_run == bindparam("of_run"), session.c.turn.is_not(None))
    .order_by(session.c.turn)
    .limit(1)
)
_TESTED: Final = (
    select(session.c.id)
    .where(
        session.c.stopped_ms.is_(None),
        or_(
            session.c.bundle_sha256 == bindparam("sha256"),
            session.c.snapshots.contains(bindparam("sha256")),
        ),
        session.c.account_id == bindparam("account_id"),
    )
    .limit(1)
)
_BEGIN: Final = (
    update(session)
    .where(session.c.id == bindparam("session_id"))
    .values(turn=None, started_ms=bindparam("now_ms"), pending=bindparam("runs"))
)
_SETTLE: Final = (
    update(session)
    .where(session.c.id == bindparam("session_id"), session.c.stopped_ms.is_(None))
    .values(
        status=bindparam("new_status"),
        pending=bindparam("new_pending"),
        stopped_ms=bindparam("new_stopped_ms"),
        # Runs are over: what they needed, secrets among it, goes.
        spec=case((bindparam("new_stopped_ms").is_(None), session.c.spec)),
    )
)
_OLD: Final = (
    select(session.c.id)
    .where(
        session.c.id < bindparam("least_id"),
        or_(
            session.c.stopped_ms < bindparam("before_ms"),
            # Past its deadline. One in the run of a group must end first: others wait for that.
            and_(
                session.c.stopped_ms.is_(None),
                session.c.group_run.is_(None),
                session.c.started_ms < bindparam("before_ms"),
            ),
        ),
    )
    .order_by(session.c.id)
    .limit(bindparam("most"))
)
_REMOVE: Final = delete(session).where(session.c.id == bindparam("session_id"))


def insert_sessions(connection: Connection, rows: Iterable[Session], *, account_id: str) -> None:
    """Store new sessions."""
    if values := [_values(row, account_id) for row in rows]:
        connection.execute(insert(session), values)


def _values(row: Session, account_id: str) -> Mapping[str, Any]:
    member = row.test
    return {
        "id": row.id,
        "account_id": account_id,
        "check_id": row.check_id,
        "check_type": row.check_type,
        "name": row.name,
        "locations": list(row.locations),
        "status": row.status.value,
        "pending": row.pending,
        "started_ms": row.started_ms,
        "stopped_ms": row.stopped_ms,
        "refresh_cache": row.refresh_cache,
        "group_run": row.group_run,
        "turn": row.turn,
        "is_test": row.is_test,
        "test_session_id": member.test_session_id if member else None,
        "logical_id": member.logical_id if member else None,
        "test_run_id": member.run_id if member else None,
        "tested_check_id": member.tested_check_id if member else None,
        "retry_strategy": member.retry_strategy if member else None,
    }


def insert_test(
    connection: Connection, test: TestSession, members: Sequence[tuple[Session, UnstoredCheck]]
) -> None:
    """Store a new test session with the checks that it runs; there must be any."""
    rows = [
        {
            **_values(row, test.account_id),
            "spec": check.spec,
            "group_id": check.group_id,
            "bundle_sha256": check.bundle_sha256,
            "snapshots": check.snapshots,
        }
        for row, check in members
    ]
    connection.execute(insert(test_session), {**asdict(test), "status": test.status.value})
    connection.execute(insert(session), rows)


def is_tested(connection: Connection, account_id: str, sha256: str) -> bool:
    """Whether an open session of the account, and no stored check, needs this file."""
    asked = {"account_id": account_id, "sha256": sha256}
    return connection.execute(_TESTED, asked).first() is not None


def find_owner(connection: Connection, session_id: str) -> str:
    """The account of a session that is there."""
    query = select(session.c.account_id).where(session.c.id == session_id)
    return str(connection.execute(query).scalar_one())


def find(connection: Connection, session_id: str) -> Session | None:
    """A session, whosever it is. None: there is none."""
    return _session(connection, _ONE, {"session_id": session_id})


def find_of(connection: Connection, account_id: str, session_id: str) -> Session | None:
    """A session of the account. None: it has none with this id."""
    return _session(connection, _OF_ACCOUNT, {"session_id": session_id, "account_id": account_id})


def list_open(connection: Connection, session_ids: Collection[str]) -> tuple[str, ...]:
    """Those of these sessions, of single checks or of tests, that go on."""
    found = (
        select(table.c.id).where(table.c.id.in_(session_ids), table.c.stopped_ms.is_(None))
        for table in (session, test_session)
    )
    return tuple(connection.execute(union_all(*found)).scalars())


def open_of_check(connection: Connection, check_id: str) -> tuple[Session, ...]:
    """The sessions of a check that go on."""
    return tuple(map(_read, connection.execute(_OPEN_OF_CHECK, {"check_id": check_id})))


def open_of_groups(connection: Connection, *, starts: LatestStarts) -> tuple[Session, ...]:
    """The sessions of runs of groups that go on, or wait, and started no later."""
    return tuple(map(_read, connection.execute(_EARLY_OF_GROUPS, asdict(starts))))


def open_of_group(connection: Connection, group_id: int) -> Session | None:
    """One of a run of the group that goes on. None: no such run does."""
    return _session(connection, _OPEN_OF_GROUP, {"group_id": group_id})


def first_waiting(connection: Connection, group_run: str) -> Session | None:
    """Whose turn is next in the run of a group. None: nobody waits in it."""
    return _session(connection, _FIRST_WAITING, {"of_run": group_run})


def begin(connection: Connection, session_id: str, *, runs: int, now_ms: int) -> None:
    """The session waits no more: it has so many runs, from now on."""
    values = {"session_id": session_id, "runs": runs, "now_ms": now_ms}
    connection.execute(_BEGIN, values)


def settle(
    connection: Connection,
    session_id: str,
    *,
    status: SessionStatus,
    pending: int,
    stopped_ms: int | None,
) -> bool:
    """Store how far a session is; false when it had ended before."""
    values = {
        "session_id": session_id,
        "new_status": status.value,
        "new_pending": pending,
        "new_stopped_ms": stopped_ms,
    }
    return connection.execute(_SETTLE, values).rowcount == 1


def list_old(connection: Connection, *, before_ms: int, most: int) -> tuple[str, ...]:
    """The ids of the oldest sessions that ended before, or began before and never ended."""
    asked = {"least_id": least_id(before_ms), "before_ms": before_ms, "most": most}
    return tuple(connection.execute(_OLD, asked).scalars())


def list_open_tests(connection: Connection, ids: Collection[str]) -> tuple[Session, ...]:
    """Those of these sessions that are of tests and go on."""
    query = select(session).where(
        session.c.id.in_(ids), session.c.is_test, session.c.stopped_ms.is_(None)
    )
    return tuple(map(_read, connection.execute(query)))


def remove(connection: Connection, ids: Iterable[str]) -> None:
    """Remove these sessions; there must be any."""
    connection.execute(_REMOVE, [{"session_id": session_id} for session_id in ids])


def remove_empty_tests(connection: Connection, *, before_ms: int) -> None:
    """Remove test sessions that were asked for before, and of which no check is left."""
    has_members = exists().where(session.c.test_session_id == test_session.c.id)
    connection.execute(
        delete(test_session).where(test_session.c.id < least_id(before_ms), ~has_members)
    )


def _session(
    connection: Connection, query: Select[Any], values: Mapping[str, str | int]
) -> Session | None:
    row = connection.execute(query, values).first()
    return None if row is None else _read(row)


def _read(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        check_id=row.check_id,
        check_type=row.check_type,
        name=row.name,
        locations=tuple(row.locations),
        status=SessionStatus(row.status),
        pending=row.pending,
        started_ms=row.started_ms,
        stopped_ms=row.stopped_ms,
        refresh_cache=bool(row.refresh_cache),
        group_run=row.group_run,
        turn=row.turn,
        is_test=bool(row.is_test),
        test=_read_member(row) if row.test_session_id else None,
    )


def _read_member(row: Row[Any]) -> TestMember:
    return TestMember(
        test_session_id=row.test_session_id,
        logical_id=row.logical_id,
        run_id=row.test_run_id,
        tested_check_id=row.tested_check_id,
        retry_strategy=row.retry_strategy,
    )


_ONE_TEST: Final = select(test_session).where(test_session.c.id == bindparam("test_id"))
_TEST_OF_ACCOUNT: Final = _ONE_TEST.where(test_session.c.account_id == bindparam("account_id"))
_MEMBERS: Final = (
    select(session).where(session.c.test_session_id == bindparam("test_id")).order_by(session.c.id)
)
_STATES: Final = (
    select(session.c.id, session.c.test_session_id, session.c.status, session.c.stopped_ms)
    .where(session.c.test_session_id.in_(bindparam("test_ids", expanding=True)))
    .order_by(session.c.id)
)
_ALL_FOLLOWED: Final[Select[Any]] = (
    select(
        test_session.c.account_id,
        test_session.c.suite_id,
        session.c.test_run_id.label("run_id"),
        session.c.check_id,
    )
    .join(session, session.c.test_session_id == test_session.c.id)
    .where(test_session.c.suite_id.is_not(None))
)
_FOLLOWED: Final = _ALL_FOLLOWED.where(session.c.id == bindparam("session_id"))
_OF_SUITES: Final = (
    _ALL_FOLLOWED.add_columns(session.c.id, session.c.status)
    .where(
        test_session.c.account_id == bindparam("of_account"),
        test_session.c.suite_id.in_(bindparam("suite_ids", expanding=True)),
    )
    .order_by(session.c.id)
)
_SETTLE_TEST: Final = (
    update(test_session)
    .where(test_session.c.id == bindparam("test_id"), test_session.c.stopped_ms.is_(None))
    .values(
        status=bindparam("new_status"),
        pending=bindparam("new_pending"),
        failed=bindparam("new_failed"),
        stopped_ms=bindparam("new_stopped_ms"),
    )
)


def find_test(connection: Connection, test_id: str) -> TestSession | None:
    """A test session, whosever it is. None: there is none."""
    return _test(connection, _ONE_TEST, {"test_id": test_id})


def find_test_of(connection: Connection, account_id: str, test_id: str) -> TestSession | None:
    """A test session of the account. None: it has none with this id."""
    return _test(connection, _TEST_OF_ACCOUNT, {"test_id": test_id, "account_id": account_id})


def list_members(connection: Connection, test_id: str) -> tuple[Session, ...]:
    """The sessions of a test session, in the order of their ids."""
    return tuple(map(_read, connection.execute(_MEMBERS, {"test_id": test_id})))


def list_states(
    connection: Connection, test_ids: Collection[str]
) -> Mapping[str, list[tuple[str, SessionStatus, bool]]]:
    """The sessions of test sessions: the id of each, its status, and whether it has ended."""
    found: dict[str, list[tuple[str, SessionStatus, bool]]] = {one: [] for one in test_ids}
    for row in connection.execute(_STATES, {"test_ids": list(test_ids)}):
        state = (row.id, SessionStatus(row.status), row.stopped_ms is not None)
        found[row.test_session_id].append(state)
    return found


def find_followed(connection: Connection, session_id: str) -> Followed | None:
    """Who follows the runs of a session. None: nobody does."""
    row = connection.execute(_FOLLOWED, {"session_id": session_id}).first()
    return None if row is None else Followed(**row._mapping)  # noqa: SLF001 - as in `read_test`


def list_followed(
    connection: Connection, account_id: str, suite_ids: Collection[str]
) -> Mapping[str, tuple[Followed, SessionStatus]]:
    """The sessions of an account's suites by their ids, and how far each is."""
    asked = {"of_account": account_id, "suite_ids": list(suite_ids)}
    return {
        row.id: (
            Followed(
                account_id=row.account_id,
                suite_id=row.suite_id,
                run_id=row.run_id,
                check_id=row.check_id,
            ),
            SessionStatus(row.status),
        )
        for row in connection.execute(_OF_SUITES, asked)
    }


def find_retry_strategy(connection: Connection, session_id: str) -> Mapping[str, Any] | None:
    """How failed runs of a session of a test are retried. None: they are final."""
    query = select(session.c.retry_strategy).where(session.c.id == session_id)
    found: Mapping[str, Any] | None = connection.execute(query).scalar()
    return found


def list_tests(
    connection: Connection,
    account_id: str,
    *,
    statuses: Collection[TestStatus],
    after_id: str | None,
    limit: int,
) -> tuple[TestSession, ...]:
    """Recorded test sessions of the account, newest first; no statuses: of any."""
    query = select(test_session).where(
        test_session.c.account_id == account_id, test_session.c.is_recorded
    )
    if statuses:
        query = query.where(test_session.c.status.in_([one.value for one in statuses]))
    if after_id is not None:
        query = query.where(test_session.c.id < after_id)
    rows = connection.execute(query.order_by(test_session.c.id.desc()).limit(limit))
    return tuple(map(read_test, rows))


def settle_test(connection: Connection, test: TestSession) -> None:
    """Store how far a test session is, unless it has ended."""
    values = {
        "test_id": test.id,
        "new_status": test.status.value,
        "new_pending": test.pending,
        "new_failed": test.failed,
        "new_stopped_ms": test.stopped_ms,
    }
    connection.execute(_SETTLE_TEST, values)


def _test(
    connection: Connection, query: Select[Any], values: Mapping[str, str]
) -> TestSession | None:
    row = connection.execute(query, values).first()
    return None if row is None else read_test(row)


def read_test(row: Row[Any]) -> TestSession:
    """A row of `test_session`."""
    values = {**row._mapping, "status": TestStatus(row.status)}  # noqa: SLF001 - SQLAlchemy's documented face of a row
    flags = {"is_recorded": bool(row.is_recorded), "streams_logs": bool(row.streams_logs)}
    return TestSession(**{**values, **flags})
