"""SQL of sessions."""

from collections.abc import Collection, Iterable, Mapping
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
    insert,
    or_,
    select,
    update,
)

from service.checks.model import UnstoredCheck
from service.db.ids import least_id
from service.db.tables.checks import check_
from service.db.tables.runs import session
from service.sessions.model import LatestStarts, Session, SessionStatus

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
        session.c.bundle_sha256 == bindparam("sha256"),
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
    }


def insert_test(
    connection: Connection, row: Session, check: UnstoredCheck, *, account_id: str
) -> None:
    """Store a new session with the check that it runs."""
    of_check = {
        "spec": check.spec,
        "group_id": check.group_id,
        "bundle_sha256": check.bundle_sha256,
    }
    connection.execute(insert(session), {**_values(row, account_id), **of_check})


def is_tested(connection: Connection, account_id: str, sha256: str) -> bool:
    """Whether an open session of the account runs this bundle, and no stored check."""
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
    """Those of these sessions that go on."""
    found = select(session.c.id).where(
        session.c.id.in_(session_ids), session.c.stopped_ms.is_(None)
    )
    return tuple(connection.execute(found).scalars())


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


def remove(connection: Connection, ids: Iterable[str]) -> None:
    """Remove these sessions; there must be any."""
    connection.execute(_REMOVE, [{"session_id": session_id} for session_id in ids])


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
    )
