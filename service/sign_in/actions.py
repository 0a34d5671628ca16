"""Signing in and out: one transaction per function."""

import hmac
import secrets
from collections.abc import Collection
from typing import Final, NamedTuple

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
    Principal,
    Visitor,
)
from service.sign_in.store import SessionRow
from service.users import actions as users
from service.users.model import UserRow

_SECRET_BYTES: Final = 32
_EXTEND_AFTER_MS: Final = 600_000
"""A session is extended at most this often: a page that is only read writes nothing."""
_CSRF: Final = b"picket: forms of the session "


def start_session(
    connection: Connection, pepper: Pepper, who: Principal, *, now_ms: int
) -> NewSession:
    """Sign a browser in."""
    raw = secrets.token_urlsafe(_SECRET_BYTES)
    expires_ms = now_ms + SESSION_MS
    store.insert_session(connection, _hash(pepper, raw), who, now_ms=now_ms, expires_ms=expires_ms)
    if who.user_id is not None:
        users.note_sign_in(connection, who.user_id, now_ms=now_ms)
    return NewSession(raw=raw)


def find_visitor(
    connection: Connection, pepper: Pepper, raw: str, *, now_ms: int
) -> Visitor | None:
    """Who is signed in. None: the session has ended, or its key, or its user is disabled."""
    session = _hash(pepper, raw)
    row = store.find_session(connection, session, now_ms=now_ms)
    person = None if row is None else _find_person(connection, row.principal)
    if row is None or person is None:
        return None
    return Visitor(
        caller=person.caller,
        account_name=accounts.find_account(connection, person.caller.account_id).name,
        name=person.name,
        email=person.email,
        session=session,
        csrf=pepper.keyed(_CSRF + raw.encode()).hex(),
        is_stale=_extended_ms(row, now_ms) - row.expires_ms >= _EXTEND_AFTER_MS,
    )


def list_ended(
    connection: Connection, sessions: Collection[bytes], *, now_ms: int
) -> frozenset[bytes]:
    """Those of these sessions, by their hashes, with which nobody is signed in any more."""
    found = store.find_principals(connection, sessions, now_ms=now_ms)
    good = {who for who in set(found.values()) if _find_person(connection, who) is not None}
    return frozenset(one for one in sessions if found.get(one) not in good)


class _Person(NamedTuple):
    caller: Caller
    name: str
    email: str | None


def _find_person(connection: Connection, who: Principal) -> _Person | None:
    if who.user_id is not None:
        user = users.find_enabled(connection, who.user_id)
        if user is None:
            return None
        caller = Caller(account_id=user.account_id, user_id=user.id, role=user.role)
        return _Person(caller, user.shown_name, user.email)
    key = accounts.find_good_key(connection, str(who.key_id))
    if key is None:
        return None
    return _Person(Caller(account_id=key.account_id, key_id=key.id, role=key.role), key.name, None)


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


def end_everywhere(connection: Connection, who: Principal) -> None:
    """Sign somebody out in every browser; their links are good no longer."""
    store.delete_all(connection, who)


def create_link(connection: Connection, pepper: Pepper, who: Principal, *, now_ms: int) -> str:
    """The secret of a link that signs one browser in, once."""
    return _add_link(connection, pepper, who, sets_password=False, now_ms=now_ms)


def is_link(connection: Connection, pepper: Pepper, raw: str, *, now_ms: int) -> bool:
    """Whether a link is good; asked first, so that guesses do not take the writer's time."""
    return store.has_link(connection, _hash(pepper, raw), now_ms=now_ms)


def redeem_link(
    connection: Connection, pepper: Pepper, raw: str, *, now_ms: int
) -> NewSession | None:
    """Sign a browser in by a link, which is used up. None: it is not good, or no longer."""
    who = store.take_link(connection, _hash(pepper, raw), sets_password=False, now_ms=now_ms)
    if who is None or _find_person(connection, who) is None:
        return None
    return start_session(connection, pepper, who, now_ms=now_ms)


def create_password_link(
    connection: Connection, pepper: Pepper, user_id: str, *, now_ms: int
) -> str:
    """The secret of a link by which a user chooses a password, once."""
    who = Principal(user_id=user_id)
    return _add_link(connection, pepper, who, sets_password=True, now_ms=now_ms)


def find_password_link(
    connection: Connection, pepper: Pepper, raw: str, *, now_ms: int
) -> UserRow | None:
    """Who may choose a password with a link, which stays good. None: nobody."""
    user_id = store.find_password_link(connection, _hash(pepper, raw), now_ms=now_ms)
    return None if user_id is None else users.find_enabled(connection, user_id)


def choose_password(
    connection: Connection, pepper: Pepper, raw: str, hashed: str, *, now_ms: int
) -> NewSession | None:
    """Set the password of whoever has this link, use it up, and sign its browser in.

    None: the link is not good, or no longer.
    """
    who = store.take_link(connection, _hash(pepper, raw), sets_password=True, now_ms=now_ms)
    user = None if who is None else users.find_enabled(connection, str(who.user_id))
    if user is None:
        return None
    set_password(connection, user.id, hashed)
    return start_session(connection, pepper, Principal(user_id=user.id), now_ms=now_ms)


def set_password(connection: Connection, user_id: str, hashed: str) -> None:
    """Store a new password's hash; whoever was signed in with the old one is signed out."""
    users.set_password_hash(connection, user_id, hashed)
    end_everywhere(connection, Principal(user_id=user_id))


def disable_user(connection: Connection, user_id: str, *, now_ms: int) -> None:
    """Let a user in no more: they are signed out at once."""
    users.disable(connection, user_id, now_ms=now_ms)
    end_everywhere(connection, Principal(user_id=user_id))


def forget_expired(connection: Connection, *, now_ms: int) -> int:
    """Delete sessions, links and limits that are over; how many went."""
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


def _add_link(
    connection: Connection, pepper: Pepper, who: Principal, *, sets_password: bool, now_ms: int
) -> str:
    raw = secrets.token_urlsafe(_SECRET_BYTES)
    store.insert_link(
        connection,
        _hash(pepper, raw),
        who,
        sets_password=sets_password,
        expires_ms=now_ms + LINK_MS,
    )
    return raw


def _extended_ms(row: SessionRow, now_ms: int) -> int:
    return min(now_ms + SESSION_MS, row.created_ms + LONGEST_SESSION_MS)


def _hash(pepper: Pepper, raw: str) -> bytes:
    return pepper.keyed(digest_key(raw))
