"""SQL of signed-in browsers, sign-in links, and limits of attempts to sign in."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from service.db.tables.sign_in import browser_session, sign_in_limit, sign_in_link
from service.sign_in.model import Principal


class SessionRow(NamedTuple):
    """A session of a browser."""

    principal: Principal
    created_ms: int
    expires_ms: int


def insert_session(
    connection: Connection, hashed: bytes, who: Principal, *, now_ms: int, expires_ms: int
) -> None:
    """Store a session by the keyed hash of its secret."""
    row = {
        "hash": hashed,
        "key_id": who.key_id,
        "user_id": who.user_id,
        "created_ms": now_ms,
        "expires_ms": expires_ms,
    }
    connection.execute(insert(browser_session), row)


def find_session(connection: Connection, hashed: bytes, *, now_ms: int) -> SessionRow | None:
    """A session that has not ended. None: there is none."""
    columns = browser_session.c
    found = select(columns.key_id, columns.user_id, columns.created_ms, columns.expires_ms).where(
        columns.hash == hashed, columns.expires_ms > now_ms
    )
    row = connection.execute(found).first()
    if row is None:
        return None
    who = Principal(key_id=row.key_id, user_id=row.user_id)
    return SessionRow(who, row.created_ms, row.expires_ms)


def find_principals(
    connection: Connection, hashes: Collection[bytes], *, now_ms: int
) -> dict[bytes, Principal]:
    """Whose these sessions are, as far as they have not ended."""
    columns = browser_session.c
    found = select(columns.hash, columns.key_id, columns.user_id).where(
        columns.hash.in_(hashes), columns.expires_ms > now_ms
    )
    return {
        row.hash: Principal(key_id=row.key_id, user_id=row.user_id)
        for row in connection.execute(found)
    }


def extend_session(connection: Connection, hashed: bytes, expires_ms: int) -> None:
    """Let a session last longer."""
    change = update(browser_session).where(browser_session.c.hash == hashed)
    connection.execute(change.values(expires_ms=expires_ms))


def delete_session(connection: Connection, hashed: bytes) -> None:
    """End a session."""
    connection.execute(delete(browser_session).where(browser_session.c.hash == hashed))


def delete_all(connection: Connection, who: Principal) -> int:
    """End every session of somebody, and their links; how many rows went."""
    return sum(
        connection.execute(delete(table).where(_is_of(table, who))).rowcount
        for table in (browser_session, sign_in_link)
    )


def _is_of(table: Table, who: Principal) -> ColumnElement[bool]:
    if who.user_id is not None:
        return table.c.user_id == who.user_id
    return table.c.key_id == who.key_id


def insert_link(
    connection: Connection,
    hashed: bytes,
    who: Principal,
    *,
    sets_password: bool,
    expires_ms: int,
) -> None:
    """Store a link by the keyed hash of its secret."""
    row = {
        "hash": hashed,
        "key_id": who.key_id,
        "user_id": who.user_id,
        "sets_password": sets_password,
        "expires_ms": expires_ms,
    }
    connection.execute(insert(sign_in_link), row)


def has_link(connection: Connection, hashed: bytes, *, now_ms: int) -> bool:
    """Whether a link that signs somebody in is good."""
    columns = sign_in_link.c
    found = select(columns.hash).where(
        columns.hash == hashed, ~columns.sets_password, columns.expires_ms > now_ms
    )
    return connection.execute(found).first() is not None


def take_link(
    connection: Connection, hashed: bytes, *, sets_password: bool, now_ms: int
) -> Principal | None:
    """Use a link up: whose it is. None: it is not good, or no longer."""
    columns = sign_in_link.c
    used = delete(sign_in_link).where(
        columns.hash == hashed,
        columns.sets_password == sets_password,
        columns.expires_ms > now_ms,
    )
    row = connection.execute(used.returning(columns.key_id, columns.user_id)).first()
    return None if row is None else Principal(key_id=row.key_id, user_id=row.user_id)


def find_password_link(connection: Connection, hashed: bytes, *, now_ms: int) -> str | None:
    """The id of the user who may choose a password with this link. None: it is not good."""
    columns = sign_in_link.c
    found = select(columns.user_id).where(
        columns.hash == hashed, columns.sets_password, columns.expires_ms > now_ms
    )
    return connection.execute(found).scalar()


def forget_expired(connection: Connection, *, now_ms: int) -> int:
    """Delete what is good no longer; how many rows went."""
    sessions = delete(browser_session).where(browser_session.c.expires_ms <= now_ms)
    links = delete(sign_in_link).where(sign_in_link.c.expires_ms <= now_ms)
    limits = delete(sign_in_limit).where(sign_in_limit.c.until_ms <= now_ms)
    return sum(connection.execute(one).rowcount for one in (sessions, links, limits))


def find_limits(connection: Connection, hashes: Collection[bytes]) -> dict[bytes, int]:
    """Until when each of these limits is taken; those of which nothing is known are left out."""
    columns = sign_in_limit.c
    found = select(columns.hash, columns.until_ms).where(columns.hash.in_(hashes))
    return {row.hash: row.until_ms for row in connection.execute(found)}


def put_limits(connection: Connection, until_ms: Mapping[bytes, int]) -> None:
    """Store until when limits are taken, in the place of what was known of them."""
    connection.execute(delete(sign_in_limit).where(sign_in_limit.c.hash.in_(until_ms)))
    rows = [{"hash": hashed, "until_ms": ms} for hashed, ms in until_ms.items()]
    connection.execute(insert(sign_in_limit), rows)
