"""Location keys: which location does an agent speak for?"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from service.accounts.key_cache import MAX_KEY_LETTERS, KeyCache
from service.accounts.keys import LOCATION_PREFIX, Pepper, digest_key
from service.agents.model import Opened
from service.db.engine import Database
from service.locations import actions as locations
from service.locations.model import LocationKeyEnded

REMEMBER_S: Final = 30.0
"""How long another process's revocation may go unnoticed; one of this process counts at once."""


class LocationKeys:
    """The good location keys."""

    def __init__(
        self, database: Database, *, pepper: Pepper, monotonic: Callable[[], float]
    ) -> None:
        self._cache = KeyCache(
            database, _read, pepper=pepper, monotonic=monotonic, remember_s=REMEMBER_S
        )
        database.listen(LocationKeyEnded, self._forget)

    async def opened_with(self, wanted: bytes) -> Opened | None:
        """Where the key of this digest lets its agent in. None: it is unknown or ended."""
        return await self._cache.find(wanted)

    def _forget(self, ended: LocationKeyEnded) -> None:
        """A location has two keys at most, so forgetting both costs one look-up."""
        self._cache.forget(lambda opened: opened.location_id == ended.location_id)


def _read(connection: Connection, stored: bytes) -> tuple[bytes, Opened] | None:
    found = locations.find_key(connection, stored)
    return (found.digest, Opened(found.location_id, found.id)) if found else None


def digest_of(raw_key: str) -> bytes | None:
    """The digest by which a location key is known. None: the text cannot be such a key."""
    if len(raw_key) > MAX_KEY_LETTERS or not raw_key.startswith(LOCATION_PREFIX):
        return None
    return digest_key(raw_key)
