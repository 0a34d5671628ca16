"""Who is calling? API keys, looked up by their keyed hash and remembered for a moment."""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.accounts import store
from service.accounts.keys import SERVICE_PREFIX, USER_PREFIX, Pepper, digest
from service.accounts.model import ApiKeyEnded, Caller
from service.db.engine import Database

REMEMBER_S: Final = 3.0
"""How long another process's revocation may go unnoticed; one of this process counts at once."""
MAX_REMEMBERED: Final = 4096
_MAX_KEY_LETTERS: Final = 200


@dataclass(frozen=True, slots=True)
class _Known:
    caller: Caller
    until_s: float


class ApiKeys:
    """The good API keys; asks the database at most once per key and few seconds."""

    def __init__(
        self, database: Database, *, pepper: Pepper, monotonic: Callable[[], float]
    ) -> None:
        self._database = database
        self._pepper = pepper
        self._monotonic = monotonic
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._endings = 0
        database.listen(ApiKeyEnded, self._forget)

    def is_familiar(self, raw_key: str) -> bool:
        """Whether the key was good when it came the last time."""
        return _may_be_one(raw_key) and digest(raw_key) in self._known

    async def caller(self, raw_key: str) -> Caller | None:
        """Whom the key speaks for. None: it is unknown or ended."""
        if not _may_be_one(raw_key):
            return None
        wanted = digest(raw_key)
        known = self._known.get(wanted)
        if known and known.until_s > self._monotonic():
            return known.caller
        return await self._look_up(wanted)

    async def _look_up(self, wanted: bytes) -> Caller | None:
        endings, stored = self._endings, self._pepper.keyed(wanted)
        row = await self._database.read(lambda connection: store.good_key(connection, stored))
        if row is None or not hmac.compare_digest(row.digest, stored):
            self._known.pop(wanted, None)
            return None
        # A key that ended while it was read must not be remembered.
        if endings == self._endings:
            self._remember(wanted, row.caller)
        return row.caller

    def _remember(self, wanted: bytes, caller: Caller) -> None:
        self._known[wanted] = _Known(caller, self._monotonic() + REMEMBER_S)
        self._known.move_to_end(wanted)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)

    def _forget(self, ended: ApiKeyEnded) -> None:
        self._endings += 1
        for wanted, known in list(self._known.items()):
            if known.caller.key_id == ended.key_id:
                del self._known[wanted]


def _may_be_one(raw_key: str) -> bool:
    return len(raw_key) <= _MAX_KEY_LETTERS and raw_key.startswith((USER_PREFIX, SERVICE_PREFIX))
