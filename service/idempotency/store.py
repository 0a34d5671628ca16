"""SQL of kept answers."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from service.db.tables.accounts import idempotency

_MINE: Final = (
    idempotency.c.account_id == bindparam("account"),
    idempotency.c.key_hash == bindparam("key"),
)
_FIND: Final = select(
    idempotency.c.request_hash, idempotency.c.answer, idempotency.c.created_ms
).where(*_MINE)
_REMOVE: Final = delete(idempotency).where(*_MINE)
_OF_ACCOUNT: Final = idempotency.c.account_id == bindparam("account")
_NEWEST_BEYOND: Final = (
    select(idempotency.c.created_ms)
    .where(_OF_ACCOUNT)
    .order_by(idempotency.c.created_ms.desc())
    .limit(1)
    .offset(bindparam("most"))
)
_SIZES: Final = (
    select(idempotency.c.created_ms, func.length(idempotency.c.answer))
    .where(_OF_ACCOUNT)
    .order_by(idempotency.c.created_ms.desc())
)
_FORGET_OF: Final = delete(idempotency).where(
    _OF_ACCOUNT, idempotency.c.created_ms <= bindparam("until_ms")
)
_FORGET: Final = delete(idempotency).where(idempotency.c.created_ms < bindparam("before_ms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedRow:
    """A kept answer as it is stored."""

    request_hash: bytes
    answer: bytes
    created_ms: int


def find(connection: Connection, account_id: str, key_hash: bytes) -> SealedRow | None:
    """What is kept for a key. None: nothing."""
    row = connection.execute(_FIND, {"account": account_id, "key": key_hash}).first()
    return None if row is None else SealedRow(**row._mapping)  # noqa: SLF001 - its documented face


def put(connection: Connection, account_id: str, key_hash: bytes, row: SealedRow) -> None:
    """Keep an answer, in the place of an older one."""
    connection.execute(_REMOVE, {"account": account_id, "key": key_hash})
    values = {
        "account_id": account_id,
        "key_hash": key_hash,
        "request_hash": row.request_hash,
        "answer": row.answer,
        "created_ms": row.created_ms,
    }
    connection.execute(insert(idempotency), values)


def keep_newest(connection: Connection, account_id: str, most: int) -> None:
    """Forget an account's oldest beyond so many."""
    values = {"account": account_id, "most": most}
    until_ms = connection.execute(_NEWEST_BEYOND, values).scalar()
    if until_ms is not None:
        connection.execute(_FORGET_OF, {"account": account_id, "until_ms": until_ms})


def keep_within(connection: Connection, account_id: str, most_bytes: int) -> None:
    """Forget an account's oldest beyond so many bytes; those of its newest moment stay."""
    left_bytes, newest_ms = most_bytes, None
    for created_ms, size_bytes in connection.execute(_SIZES, {"account": account_id}):
        newest_ms = created_ms if newest_ms is None else newest_ms
        left_bytes -= size_bytes
        if left_bytes < 0 and created_ms < newest_ms:
            connection.execute(_FORGET_OF, {"account": account_id, "until_ms": created_ms})
            return


def forget(connection: Connection, *, before_ms: int) -> int:
    """Forget old ones; how many went."""
    return connection.execute(_FORGET, {"before_ms": before_ms}).rowcount
