"""SQL of accounts and API keys."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from service.accounts.keys import NewKey
from service.accounts.model import Caller
from service.db.tables import account, api_key

_ANY_ACCOUNT: Final = select(account.c.id).order_by(account.c.created_ms).limit(1)
_BY_HASH: Final = select(api_key.c.id, api_key.c.account_id, api_key.c.hash).where(
    api_key.c.hash == bindparam("digest"), api_key.c.revoked_ms.is_(None)
)
_REVOKE: Final = (
    update(api_key)
    .where(
        api_key.c.id == bindparam("key_id"),
        api_key.c.account_id == bindparam("of_account"),
        api_key.c.revoked_ms.is_(None),
    )
    .values(revoked_ms=bindparam("now_ms"))
)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A good API key as it is stored."""

    caller: Caller
    digest: bytes


def first_account(connection: Connection) -> str | None:
    """The id of the oldest account. None: there is none yet."""
    return connection.execute(_ANY_ACCOUNT).scalar()


def insert_account(connection: Connection, account_id: str, *, name: str, now_ms: int) -> None:
    """Store an account."""
    connection.execute(insert(account), {"id": account_id, "name": name, "created_ms": now_ms})


def insert_api_key(
    connection: Connection, key: NewKey, caller: Caller, *, name: str, now_ms: int
) -> None:
    """Store an API key's digest, and whom it speaks for."""
    row = {
        "id": caller.key_id,
        "account_id": caller.account_id,
        "name": name,
        "hash": key.digest,
        "masked": key.masked,
        "created_ms": now_ms,
    }
    connection.execute(insert(api_key), row)


def good_key(connection: Connection, digest: bytes) -> KeyRow | None:
    """The key with this digest. None: it is unknown or ended."""
    row = connection.execute(_BY_HASH, {"digest": digest}).first()
    if row is None:
        return None
    return KeyRow(Caller(account_id=row.account_id, key_id=row.id), row.hash)


def revoke(connection: Connection, key_id: str, *, account_id: str, now_ms: int) -> bool:
    """End a key; false when there is no such good key."""
    values = {"key_id": key_id, "of_account": account_id, "now_ms": now_ms}
    return connection.execute(_REVOKE, values).rowcount == 1
