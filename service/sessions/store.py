"""SQL of sessions."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, insert, select, update

from service.db.tables import session
from service.sessions.model import Session, SessionStatus

_ONE: Final = select(session).where(session.c.id == bindparam("session_id"))
_OF_ACCOUNT: Final = _ONE.where(session.c.account_id == bindparam("account_id"))
_OPEN_OF_CHECK: Final = select(session).where(
    session.c.check_id == bindparam("check_id"), session.c.stopped_ms.is_(None)
)
_SETTLE: Final = (
    update(session)
    .where(session.c.id == bindparam("session_id"), session.c.stopped_ms.is_(None))
    .values(
        status=bindparam("new_status"),
        pending=bindparam("new_pending"),
        stopped_ms=bindparam("new_stopped_ms"),
    )
)


def insert_session(connection: Connection, row: Session, *, account_id: str) -> None:
    """Store a new session."""
    values: Mapping[str, Any] = {
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
    }
    connection.execute(insert(session), values)


def find(connection: Connection, session_id: str) -> Session | None:
    """A session, whosever it is. None: there is none."""
    return _session(connection, _ONE, {"session_id": session_id})


def find_of(connection: Connection, account_id: str, session_id: str) -> Session | None:
    """A session of the account. None: it has none with this id."""
    return _session(connection, _OF_ACCOUNT, {"session_id": session_id, "account_id": account_id})


def open_of_check(connection: Connection, check_id: str) -> tuple[Session, ...]:
    """The sessions of a check that go on."""
    return tuple(map(_read, connection.execute(_OPEN_OF_CHECK, {"check_id": check_id})))


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


def _session(
    connection: Connection, query: Select[Any], values: Mapping[str, str]
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
    )
