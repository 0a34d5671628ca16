"""Limits of attempts to sign in, counted in the database: all replicas of the service share them.

They outlive a restart, too. Names stand there as keyed hashes, and go once they count no longer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from service.accounts.keys import Pepper
from service.clock import Clock
from service.db.engine import Database
from service.http.rate_limits.rate_limit import ALLOWANCES, Allowance, Pace, RateClass
from service.sign_in import store

Count = tuple[RateClass, str]
"""A class, and whose attempts it counts together."""

_PURPOSE: Final = b"picket: a limit of attempts to sign in "
_MS_PER_S: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Turn:
    until_ms: Mapping[bytes, int]
    """What is to be stored, by hash."""
    wait_ms: int
    """How long the attempt has to wait until it may go on."""
    refused_ms: int
    """How long it has to stay away, because it may not wait for so long. 0: it is let in."""


@dataclass(frozen=True, slots=True)
class SignInLimits:
    """Counts attempts to sign in."""

    database: Database
    clock: Clock
    pepper: Pepper
    allowances: Mapping[RateClass, Allowance] = field(default_factory=lambda: ALLOWANCES)

    async def wait_s(self, *counts: Count) -> float:
        """Count an attempt by each of these, or by none where one refuses it.

        Returns 0 when it may go on, at once or after its turn has come; else how long to wait
        before the next try.
        """
        # What is refused is read, and takes no turn of what writes.
        turn = await self.database.read(lambda c: self._find_turn(c, counts))
        if not turn.refused_ms:
            turn = await self.database.write(lambda c: self._take_turn(c, counts))
        if not turn.refused_ms and turn.wait_ms:
            await asyncio.sleep(turn.wait_ms / _MS_PER_S)
        return turn.refused_ms / _MS_PER_S

    async def use_up(self, name: str, *, until_ms: int) -> bool:
        """Whether this comes for the first time; it is remembered until it is good no longer."""
        hashed = self._hash("once", name)

        def change(connection: Connection) -> bool:
            now_ms = self.clock.now_ms(connection)
            if store.find_limits(connection, [hashed]).get(hashed, 0) > now_ms:
                return False
            store.put_limits(connection, {hashed: until_ms})
            return True

        return await self.database.write(change)

    def _take_turn(self, connection: Connection, counts: tuple[Count, ...]) -> _Turn:
        turn = self._find_turn(connection, counts)
        if turn.until_ms and not turn.refused_ms:
            store.put_limits(connection, turn.until_ms)
        return turn

    def _find_turn(self, connection: Connection, counts: tuple[Count, ...]) -> _Turn:
        now_ms = self.clock.now_ms(connection)
        hashes = {count: self._hash(*count) for count in counts}
        known = store.find_limits(connection, hashes.values())
        until_ms: dict[bytes, int] = {}
        wait_ms = refused_ms = 0
        for count, hashed in hashes.items():
            allowance = self.allowances[count[0]]
            if not allowance.requests:
                continue
            pace = Pace.of(allowance, ticks_per_s=_MS_PER_S)
            patience_ms = round(allowance.patience_s * _MS_PER_S)
            # The clock may have been set back since.
            before_ms = min(known.get(hashed, 0), now_ms + pace.span + patience_ms)
            until_ms[hashed], early_ms = pace.advance(before_ms, now_ms)
            wait_ms = max(wait_ms, early_ms)
            refused_ms = max(refused_ms, early_ms - patience_ms)
        return _Turn(until_ms, wait_ms, refused_ms)

    def _hash(self, kind: str, name: str) -> bytes:
        return self.pepper.keyed(_PURPOSE + f"{kind} {name}".encode("utf-8", "surrogatepass"))
