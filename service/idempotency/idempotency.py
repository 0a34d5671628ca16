"""Responses kept under an `Idempotency-Key`, and sent again when the request is repeated.

A response is stored in the transaction of the change itself. There is one writer: the second of two
requests with the same key finds the first one's response, or nothing when the first one failed.
"""

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from typing import Final

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection, bindparam, delete, func, insert, select

from service.accounts.keys import Pepper
from service.db.tables.accounts import idempotency
from service.http.errors import UsedKeyError
from service.idempotency.model import IdempotentRequest, StoredResponse

LIFETIME_MS: Final = 24 * 3600 * 1000
MOST_PER_ACCOUNT: Final = 10_000
"""Answers that are kept; the oldest go before their time."""
MOST_BYTES_PER_ACCOUNT: Final = 64 * 1024 * 1024
"""The limit for the answers of an account together: that of a trigger may have megabytes."""
_UNCOUNTED_BYTES: Final = 4 * 1024 * 1024
"""To count 10,000 answers takes 10 ms, so it is done each time that so much has come."""
_NONCE_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class IdempotencyStore:
    """The kept answers.

    An answer may hold a secret that is shown once, so it is sealed: it opens with the pepper and
    the client's own key together, and neither of them is in the database.
    """

    pepper: Pepper
    most_bytes: int = MOST_BYTES_PER_ACCOUNT
    _since_counted: dict[str, int] = field(default_factory=dict, repr=False)
    """Bytes by account; one that is missing was never counted in this process."""

    def find(
        self, connection: Connection, asked: IdempotentRequest, *, now_ms: int
    ) -> StoredResponse | None:
        """The answer to give again. None: the request is new.

        Raises:
            UsedKeyError: the key came with another request.
        """
        row = find(connection, asked.account_id, self._key_hash(asked))
        if row is None or row.created_ms <= now_ms - LIFETIME_MS:
            return None
        if not hmac.compare_digest(row.request_hash, self._request_hash(asked)):
            raise UsedKeyError
        nonce, sealed = row.answer[:_NONCE_BYTES], row.answer[_NONCE_BYTES:]
        plain = self._cipher(asked).decrypt(nonce, sealed, None)
        return msgspec.msgpack.decode(plain, type=StoredResponse)

    def keep(
        self,
        connection: Connection,
        asked: IdempotentRequest,
        answer: StoredResponse,
        *,
        now_ms: int,
    ) -> None:
        """Keep an answer for a day."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher(asked).encrypt(nonce, msgspec.msgpack.encode(answer), None)
        row = EncryptedResponse(
            request_hash=self._request_hash(asked), answer=sealed, created_ms=now_ms
        )
        put(connection, asked.account_id, self._key_hash(asked), row)
        keep_newest(connection, asked.account_id, MOST_PER_ACCOUNT)
        self._bound(connection, asked.account_id, len(sealed))

    def _bound(self, connection: Connection, account_id: str, added_bytes: int) -> None:
        since = self._since_counted.get(account_id, _UNCOUNTED_BYTES) + added_bytes
        if since > _UNCOUNTED_BYTES:
            keep_within(connection, account_id, self.most_bytes)
            since = 0
        self._since_counted[account_id] = since

    def _key_hash(self, asked: IdempotentRequest) -> bytes:
        return self.pepper.keyed(_derive("find", asked))

    def _request_hash(self, asked: IdempotentRequest) -> bytes:
        return self.pepper.keyed(hashlib.sha256(asked.request).digest())

    def _cipher(self, asked: IdempotentRequest) -> AESGCM:
        return AESGCM(self.pepper.keyed(_derive("open", asked)))


def _derive(use: str, asked: IdempotentRequest) -> bytes:
    return f"idempotency {use} {asked.account_id} {asked.key}".encode()


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
class EncryptedResponse:
    """A kept answer as it is stored."""

    request_hash: bytes
    answer: bytes
    created_ms: int


def find(connection: Connection, account_id: str, key_hash: bytes) -> EncryptedResponse | None:
    """What is kept for a key. None: nothing."""
    row = connection.execute(_FIND, {"account": account_id, "key": key_hash}).first()
    return None if row is None else EncryptedResponse(**row._mapping)  # noqa: SLF001 - its documented face


def put(connection: Connection, account_id: str, key_hash: bytes, row: EncryptedResponse) -> None:
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


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Forget answers whose day is over; how many went."""
    return connection.execute(_FORGET, {"before_ms": now_ms - LIFETIME_MS}).rowcount
