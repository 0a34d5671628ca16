"""Which location does an agent speak for? Keys by digest, remembered for a moment."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.accounts.keys import LOCATION_PREFIX, Pepper, digest
from service.agents.model import Opened
from service.db.engine import Database
from service.locations import actions as locations
from service.locations.model import LocationKeyEnded

REMEMBER_S: Final = 30.0
"""How long another process's revocation may go unnoticed; one of this process counts at once."""
_MOST_REMEMBERED: Final = 4096
_MOST_LETTERS: Final = 200


@dataclass(frozen=True, slots=True)
class _Known:
    opened: Opened
    until_s: float


class LocationKeys:
    """The good location keys; asks the database at most once per key and half-minute."""

    def __init__(
        self, database: Database, *, pepper: Pepper, monotonic: Callable[[], float]
    ) -> None:
        self._database = database
        self._pepper = pepper
        self._monotonic = monotonic
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._endings = 0
        database.listen(LocationKeyEnded, self._forget)

    async def opened_by(self, raw_key: str) -> Opened | None:
        """Where the key lets its agent in. None: it is unknown or ended."""
        wanted = digest_of(raw_key)
        return None if wanted is None else await self.opened_with(wanted)

    async def opened_with(self, wanted: bytes) -> Opened | None:
        """Where the key of this digest lets its agent in. None: it is unknown or ended."""
        return self.remembered(wanted) or await self._look_up(wanted)

    def remembered(self, wanted: bytes) -> Opened | None:
        """Where the key of this digest lets its agent in. None: the database must be asked."""
        known = self._known.get(wanted)
        return known.opened if known and known.until_s > self._monotonic() else None

    async def _look_up(self, wanted: bytes) -> Opened | None:
        endings, stored = self._endings, self._pepper.keyed(wanted)
        row = await self._database.read(lambda connection: locations.of_key(connection, stored))
        if endings != self._endings:
            return await self._look_up(wanted)  # it may have ended while it was read
        if row is None or not hmac.compare_digest(row.digest, stored):
            self._known.pop(wanted, None)
            return None
        opened = Opened(row.location_id, row.id)
        self._known[wanted] = _Known(opened, self._monotonic() + REMEMBER_S)
        while len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return opened

    def _forget(self, ended: LocationKeyEnded) -> None:
        """A location has two keys at most, so forgetting both costs one look-up."""
        self._endings += 1
        for wanted, known in list(self._known.items()):
            if known.opened.location_id == ended.location_id:
                del self._known[wanted]


def digest_of(raw_key: str) -> bytes | None:
    """By what a location key is known. None: it is none."""
    if len(raw_key) > _MOST_LETTERS or not raw_key.startswith(LOCATION_PREFIX):
        return None
    return digest(raw_key)
