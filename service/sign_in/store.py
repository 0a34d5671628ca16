"""SQL of signed-in browsers and sign-in links."""

from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from service.db.tables.sign_in import browser_session, sign_in_link


class SessionRow(NamedTuple):
    """A session of a browser."""

    key_id: str
    created_ms: int
    expires_ms: int


def insert_session(
    connection: Connection, hashed: bytes, key_id: str, *, now_ms: int, expires_ms: int
) -> None:
    """Store a session by the keyed hash of its secret."""
    row = {"hash": hashed, "key_id": key_id, "created_ms": now_ms, "expires_ms": expires_ms}
    connection.execute(insert(browser_session), row)


def find_session(connection: Connection, hashed: bytes, *, now_ms: int) -> SessionRow | None:
    """A session that has not ended. None: there is none."""
    columns = browser_session.c
    found = select(columns.key_id, columns.created_ms, columns.expires_ms).where(
        columns.hash == hashed, columns.expires_ms > now_ms
    )
    row = connection.execute(found).first()
    return None if row is None else SessionRow(*row)


def extend_session(connection: Connection, hashed: bytes, expires_ms: int) -> None:
    """Let a session last longer."""
    change = update(browser_session).where(browser_session.c.hash == hashed)
    connection.execute(change.values(expires_ms=expires_ms))


def delete_session(connection: Connection, hashed: bytes) -> None:
    """End a session."""
    connection.execute(delete(browser_session).where(browser_session.c.hash == hashed))


def insert_link(connection: Connection, hashed: bytes, key_id: str, expires_ms: int) -> None:
    """Store a link by the keyed hash of its secret."""
    row = {"hash": hashed, "key_id": key_id, "expires_ms": expires_ms}
    connection.execute(insert(sign_in_link), row)


def take_link(connection: Connection, hashed: bytes, *, now_ms: int) -> str | None:
    """Use a link up: the id of the key it stands for. None: it is not good, or no longer."""
    used = delete(sign_in_link).where(
        sign_in_link.c.hash == hashed, sign_in_link.c.expires_ms > now_ms
    )
    return connection.execute(used.returning(sign_in_link.c.key_id)).scalar()


def forget_expired(connection: Connection, *, now_ms: int) -> int:
    """Delete what is good no longer; how many rows went."""
    sessions = delete(browser_session).where(browser_session.c.expires_ms <= now_ms)
    links = delete(sign_in_link).where(sign_in_link.c.expires_ms <= now_ms)
    return connection.execute(sessions).rowcount + connection.execute(links).rowcount
