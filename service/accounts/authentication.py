"""API keys: whom does a request speak for?"""

from collections.abc import Callable
from typing import Final

from service.accounts import store
from service.accounts.key_cache import MAX_KEY_LETTERS, KeyCache
from service.accounts.keys import SERVICE_PREFIX, USER_PREFIX, Pepper, digest_key
from service.accounts.model import ApiKeyEnded, Caller
from service.db.engine import Database

REMEMBER_S: Final = 3.0
"""How long another process's revocation may go unnoticed; one of this process counts at once."""


class ApiKeys:
    """The good API keys."""

    def __init__(
        self, database: Database, *, pepper: Pepper, monotonic: Callable[[], float]
    ) -> None:
        self._cache = KeyCache(
            database, store.find_key, pepper=pepper, monotonic=monotonic, remember_s=REMEMBER_S
        )
        database.listen(ApiKeyEnded, self._forget)
        self._used: set[str] = set()
        """Ids of the keys that were used since somebody last asked."""

    async def caller(self, raw_key: str) -> Caller | None:
        """Whom the key speaks for. None: it is unknown or ended."""
        caller = await self._cache.find(digest_key(raw_key)) if _may_be_one(raw_key) else None
        if caller is not None and caller.key_id is not None:
            self._used.add(caller.key_id)
        return caller

    def take_used(self) -> frozenset[str]:
        """The ids of the keys that were used since the last call."""
        used, self._used = frozenset(self._used), set()
        return used

    def _forget(self, ended: ApiKeyEnded) -> None:
        self._cache.forget(lambda caller: caller.key_id == ended.key_id)


def _may_be_one(raw_key: str) -> bool:
    return len(raw_key) <= MAX_KEY_LETTERS and raw_key.startswith((USER_PREFIX, SERVICE_PREFIX))
