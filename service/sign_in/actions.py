"""Signing in and out: one transaction per function."""

import hmac
import secrets
from typing import Final

from sqlalchemy import Connection

from service.accounts import actions as accounts
from service.accounts.keys import Pepper, digest_key
from service.accounts.model import Caller
from service.sign_in import store
from service.sign_in.model import (
    LINK_MS,
    LONGEST_SESSION_MS,
    SESSION_MS,
    NewSession,
    Visitor,
)
from service.sign_in.store import SessionRow

_SECRET_BYTES: Final = 32
_EXTEND_AFTER_MS: Final = 600_000
"""A session is extended at most this often: a page that is only read writes nothing."""
_CSRF: Final = b"picket: forms of the session "


def start_session(
    connection: Connection, pepper: Pepper, key_id: str, *, now_ms: int
) -> NewSession:
    """Sign a browser in with an API key."""
    raw = secrets.token_urlsafe(_SECRET_BYTES)
    store.insert_session(
        connection, _hash(pepper, raw), key_id, now_ms=now_ms, expires_ms=now_ms + SESSION_MS
    )
    return NewSession(raw=raw)


def find_visitor(
    connection: Connection, pepper: Pepper, raw: str, *, now_ms: int
) -> Visitor | None:
    """Who is signed in. None: the session has ended, or its key has."""
    row = store.find_session(connection, _hash(pepper, raw), now_ms=now_ms)
    key = row and accounts.find_good_key(connection, row.key_id)
    if row is None or key is None:
        return None
    return Visitor(
        caller=Caller(account_id=key.account_id, key_id=key.id, role=key.role),
        account_name=accounts.find_account(connection, key.account_id).name,
        name=key.name,
        csrf=pepper.keyed(_CSRF + raw.encode()).hex(),
        is_stale=_extended_ms(row, now_ms) - row.expires_ms >= _EXTEND_AFTER_MS,
    )


def extend_session(connection: Connection, pepper: Pepper, raw: str, *, now_ms: int) -> None:
    """Keep a session that is used from ending."""
    hashed = _hash(pepper, raw)
    row = store.find_session(connection, hashed, now_ms=now_ms)
    if row is None:
        return
    store.extend_session(connection, hashed, _extended_ms(row, now_ms))


def end_session(connection: Connection, pepper: Pepper, raw: str) -> None:
    """Sign a browser out."""
    store.delete_session(connection, _hash(pepper, raw))


def create_link(connection: Connection, pepper: Pepper, key_id: str, *, now_ms: int) -> str:
    """The secret of a link that signs one browser in, once."""
    raw = secrets.token_urlsafe(_SECRET_BYTES)
    store.insert_link(connection, _hash(pepper, raw), key_id, now_ms + LINK_MS)
    return raw


def redeem_link(
    connection: Connection, pepper: Pepper, raw: str, *, now_ms: int
) -> NewSession | None:
    """Sign a browser in by a link, which is used up. None: it is not good, or no longer."""
    key_id = store.take_link(connection, _hash(pepper, raw), now_ms=now_ms)
    return None if key_id is None else start_session(connection, pepper, key_id, now_ms=now_ms)


def forget_expired(connection: Connection, *, now_ms: int) -> int:
    """Delete sessions and links that are good no longer; how many went."""
    return store.forget_expired(connection, now_ms=now_ms)


def is_csrf_token(visitor: Visitor, sent: str) -> bool:
    """Whether a form came from a page of this session."""
    return hmac.compare_digest(unmask(sent).encode(), visitor.csrf.encode())


def mask(token: str) -> str:
    """A token as it stands in a page: different in each, so that compression tells nothing of it.

    See BREACH (breachattack.com): pages are sent compressed, and show what their address says.
    """
    secret = bytes.fromhex(token)
    pad = secrets.token_bytes(len(secret))
    return (pad + bytes(one ^ two for one, two in zip(pad, secret, strict=True))).hex()


def unmask(sent: str) -> str:
    """The token that was masked; whatever else was sent becomes a token that no session has."""
    try:
        both = bytes.fromhex(sent)
    except ValueError:
        return ""
    half = len(both) // 2
    return bytes(one ^ two for one, two in zip(both[:half], both[half:], strict=False)).hex()


def _extended_ms(row: SessionRow, now_ms: int) -> int:
    return min(now_ms + SESSION_MS, row.created_ms + LONGEST_SESSION_MS)


def _hash(pepper: Pepper, raw: str) -> bytes:
    return pepper.keyed(digest_key(raw))
