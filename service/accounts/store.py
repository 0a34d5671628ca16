"""SQL of accounts and API keys."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, insert, select, update

from service.accounts.keys import NewKey
from service.accounts.model import AccountRow, Caller, KeyRow, Role
from service.db.tables.accounts import account, api_key, key_pepper

_ACCOUNTS: Final[Select[Any]] = select(account.c.id, account.c.name, account.c.created_ms).order_by(
    account.c.created_ms, account.c.id
)
_SETTINGS: Final = select(account.c.alert_settings).where(account.c.id == bindparam("account_id"))
_BY_HASH: Final = select(api_key.c.id, api_key.c.account_id, api_key.c.role, api_key.c.hash).where(
    api_key.c.hash == bindparam("digest"), api_key.c.revoked_ms.is_(None)
)
_KEYS: Final[Select[Any]] = select(
    api_key.c.id,
    api_key.c.account_id,
    api_key.c.name,
    api_key.c.role,
    api_key.c.masked,
    api_key.c.created_ms,
    api_key.c.revoked_ms,
    api_key.c.used_ms,
).order_by(api_key.c.created_ms, api_key.c.id)
_REVOKE: Final = (
    update(api_key)
    .where(
        api_key.c.id == bindparam("key_id"),
        api_key.c.account_id == bindparam("of_account"),
        api_key.c.revoked_ms.is_(None),
    )
    .values(revoked_ms=bindparam("now_ms"))
)


def find_first_account(connection: Connection) -> str | None:
    """The id of the oldest account. None: there is none yet."""
    return connection.execute(_ACCOUNTS.limit(1)).scalar()


def list_accounts(connection: Connection) -> tuple[AccountRow, ...]:
    """All of them, oldest first."""
    return tuple(AccountRow(**_fields(row)) for row in connection.execute(_ACCOUNTS))


def find_account(connection: Connection, account_id: str) -> AccountRow | None:
    """One account. None: there is none with this id."""
    row = connection.execute(_ACCOUNTS.where(account.c.id == account_id)).first()
    return None if row is None else AccountRow(**_fields(row))


def find_alert_settings(connection: Connection, account_id: str) -> Mapping[str, Any] | None:
    """The alert settings of an account. None: nobody has chosen any."""
    return connection.execute(_SETTINGS, {"account_id": account_id}).scalar_one_or_none()


def update_alert_settings(
    connection: Connection, account_id: str, settings: Mapping[str, Any]
) -> None:
    """Store the alert settings of an account."""
    change = update(account).where(account.c.id == account_id)
    connection.execute(change.values(alert_settings=dict(settings)))


def insert_account(connection: Connection, account_id: str, *, name: str, now_ms: int) -> None:
    """Store an account."""
    connection.execute(insert(account), {"id": account_id, "name": name, "created_ms": now_ms})


def insert_api_key(
    connection: Connection, key: NewKey, caller: Caller, *, name: str, now_ms: int
) -> None:
    """Store an API key's keyed hash, whom it speaks for, and what it may do."""
    row = {
        "id": caller.key_id,
        "account_id": caller.account_id,
        "name": name,
        "role": caller.role.value,
        "hash": key.digest,
        "masked": key.masked,
        "created_ms": now_ms,
    }
    connection.execute(insert(api_key), row)


def find_key(connection: Connection, digest: bytes) -> tuple[bytes, Caller] | None:
    """The stored digest of a good key, and whom it speaks for. None: it is unknown or ended."""
    row = connection.execute(_BY_HASH, {"digest": digest}).first()
    if row is None:
        return None
    caller = Caller(account_id=row.account_id, key_id=row.id, role=Role(row.role))
    return row.hash, caller


def list_keys(connection: Connection, account_id: str | None) -> tuple[KeyRow, ...]:
    """API keys, ended ones as well, oldest first. None: of all accounts."""
    found = _KEYS if account_id is None else _KEYS.where(api_key.c.account_id == account_id)
    return tuple(_key_row(row) for row in connection.execute(found))


def find_good_key(connection: Connection, key_id: str) -> KeyRow | None:
    """An API key. None: there is none with this id, or it has ended."""
    found = _KEYS.where(api_key.c.id == key_id, api_key.c.revoked_ms.is_(None))
    row = connection.execute(found).first()
    return None if row is None else _key_row(row)


def list_good_keys(connection: Connection, key_ids: Collection[str]) -> frozenset[str]:
    """Those of these API keys that have not ended."""
    found = select(api_key.c.id).where(api_key.c.id.in_(key_ids), api_key.c.revoked_ms.is_(None))
    return frozenset(connection.execute(found).scalars())


def revoke(connection: Connection, key_id: str, *, account_id: str, now_ms: int) -> bool:
    """End a key; false when there is no such good key."""
    values = {"key_id": key_id, "of_account": account_id, "now_ms": now_ms}
    return connection.execute(_REVOKE, values).rowcount == 1


def update_used(connection: Connection, key_ids: Collection[str], *, now_ms: int) -> None:
    """Note that these keys were used."""
    change = update(api_key).where(api_key.c.id.in_(key_ids))
    connection.execute(change.values(used_ms=now_ms))


def find_pepper_mark(connection: Connection) -> bytes | None:
    """The mark of the pepper that all keys are stored with. None: they are stored without one."""
    found: bytes | None = connection.execute(select(key_pepper.c.mark)).scalar()
    return found


def insert_pepper_mark(connection: Connection, mark: bytes) -> None:
    """Note that all keys are stored with this pepper from now on."""
    connection.execute(insert(key_pepper), {"mark": mark})


def rehash(connection: Connection, anew: Callable[[bytes], bytes]) -> None:
    """Store every API key anew."""
    for row in connection.execute(select(api_key.c.id, api_key.c.hash)).all():
        change = update(api_key).where(api_key.c.id == row.id).values(hash=anew(row.hash))
        connection.execute(change)


def _key_row(row: Row[Any]) -> KeyRow:
    return KeyRow(**{**_fields(row), "role": Role(row.role)})


def _fields(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
