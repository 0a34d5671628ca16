"""Good keys, remembered for a moment: API keys and location keys are looked up alike."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from sqlalchemy import Connection

from service.accounts.keys import Pepper
from service.db.engine import Database

MAX_REMEMBERED: Final = 4096
MAX_KEY_LETTERS: Final = 200
"""No key is longer, so that nobody has megabytes hashed."""
OwnerT = TypeVar("OwnerT")
Read = Callable[[Connection, bytes], tuple[bytes, OwnerT] | None]
"""Reads the stored digest and the owner of a good key. None: the key is unknown or ended."""


@dataclass(frozen=True, slots=True)
class _Known(Generic[OwnerT]):
    owner: OwnerT
    until_s: float


class KeyCache(Generic[OwnerT]):
    """Whom good keys speak for, by digest; asks the database once per key and `remember_s`."""

    def __init__(
        self,
        database: Database,
        read: Read[OwnerT],
        *,
        pepper: Pepper,
        monotonic: Callable[[], float],
        remember_s: float,
    ) -> None:
        self._database = database
        self._read = read
        self._pepper = pepper
        self._monotonic = monotonic
        self._remember_s = remember_s
        self._known: OrderedDict[bytes, _Known[OwnerT]] = OrderedDict()
        self._endings = 0

    def get(self, digest: bytes) -> OwnerT | None:
        """Whom the key speaks for. None: the database must be asked."""
        known = self._known.get(digest)
        return known.owner if known and known.until_s > self._monotonic() else None

    async def find(self, digest: bytes) -> OwnerT | None:
        """Whom the key speaks for. None: it is unknown or ended."""
        return self.get(digest) or await self._look_up(digest)

    def forget(self, is_ended: Callable[[OwnerT], bool]) -> None:
        """Forget the keys of these owners; whatever is being read now is read again."""
        self._endings += 1
        for digest, known in list(self._known.items()):
            if is_ended(known.owner):
                del self._known[digest]

    async def _look_up(self, digest: bytes) -> OwnerT | None:
        endings, stored = self._endings, self._pepper.keyed(digest)
        found = await self._database.read(lambda connection: self._read(connection, stored))
        if endings != self._endings:
            return await self._look_up(digest)  # it may have ended while it was read
        if found is None or not hmac.compare_digest(found[0], stored):
            self._known.pop(digest, None)
            return None
        self._known[digest] = _Known(found[1], self._monotonic() + self._remember_s)
        self._known.move_to_end(digest)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return found[1]
