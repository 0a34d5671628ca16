"""Keeping answers and giving them again, in the transaction of the change itself.

There is one writer, so that of two requests with the same key the second finds the first one's
answer, or nothing at all when the first one failed.
"""

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from typing import Final

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection

from service.accounts.keys import Pepper
from service.http.errors import UsedKeyError
from service.idempotency import store
from service.idempotency.model import Asked, Kept
from service.idempotency.store import SealedRow

LIFETIME_MS: Final = 24 * 3600 * 1000
MOST_PER_ACCOUNT: Final = 10_000
"""Answers that are kept; the oldest go before their time."""
MOST_BYTES_PER_ACCOUNT: Final = 64 * 1024 * 1024
"""Of these answers together: that of a trigger may have megabytes."""
_UNCOUNTED_BYTES: Final = 4 * 1024 * 1024
"""To count 10,000 answers takes 10 ms, so it is done each time that so much has come."""
_NONCE_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class Answers:
    """The kept answers.

    An answer may hold a secret that is shown once, so it is sealed: it opens with the pepper and
    the client's own key together, and neither of them is in the database.
    """

    pepper: Pepper
    most_bytes: int = MOST_BYTES_PER_ACCOUNT
    _since_counted: dict[str, int] = field(default_factory=dict, repr=False)
    """Bytes by account; one that is missing was never counted in this process."""

    def find(self, connection: Connection, asked: Asked, *, now_ms: int) -> Kept | None:
        """The answer to give again. None: the request is new.

        Raises:
            UsedKeyError: the key came with another request.
        """
        row = store.find(connection, asked.account_id, self._key_hash(asked))
        if row is None or row.created_ms <= now_ms - LIFETIME_MS:
            return None
        if not hmac.compare_digest(row.request_hash, self._request_hash(asked)):
            raise UsedKeyError
        nonce, sealed = row.answer[:_NONCE_BYTES], row.answer[_NONCE_BYTES:]
        plain = self._cipher(asked).decrypt(nonce, sealed, None)
        return msgspec.msgpack.decode(plain, type=Kept)

    def keep(self, connection: Connection, asked: Asked, answer: Kept, *, now_ms: int) -> None:
        """Keep an answer for a day."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher(asked).encrypt(nonce, msgspec.msgpack.encode(answer), None)
        row = SealedRow(request_hash=self._request_hash(asked), answer=sealed, created_ms=now_ms)
        store.put(connection, asked.account_id, self._key_hash(asked), row)
        store.keep_newest(connection, asked.account_id, MOST_PER_ACCOUNT)
        self._bound(connection, asked.account_id, len(sealed))

    def _bound(self, connection: Connection, account_id: str, added_bytes: int) -> None:
        since = self._since_counted.get(account_id, _UNCOUNTED_BYTES) + added_bytes
        if since > _UNCOUNTED_BYTES:
            store.keep_within(connection, account_id, self.most_bytes)
            since = 0
        self._since_counted[account_id] = since

    def _key_hash(self, asked: Asked) -> bytes:
        return self.pepper.keyed(_plain("find", asked))

    def _request_hash(self, asked: Asked) -> bytes:
        return self.pepper.keyed(hashlib.sha256(asked.request).digest())

    def _cipher(self, asked: Asked) -> AESGCM:
        return AESGCM(self.pepper.keyed(_plain("open", asked)))


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Forget answers whose day is over; how many went."""
    return store.forget(connection, before_ms=now_ms - LIFETIME_MS)


def _plain(use: str, asked: Asked) -> bytes:
    return f"idempotency {use} {asked.account_id} {asked.key}".encode()
