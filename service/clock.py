"""What time it is in a transaction."""

import time
from typing import Final

from sqlalchemy import Connection

_GAP_MS: Final = 5_000
"""Looks are at most a second apart; a longer time without one is a gap."""


class Clock:
    """Tells the time by the database; SQLite has no clock but the process's own.

    Replicas share a database, so that its clock is the one on which they agree.
    """

    def now_ms(self, _connection: Connection) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000


class GapWatch:
    """Since when the service has run without a gap, in which it could neither assign nor listen.

    A stop, a machine that was suspended, a database that was locked and a clock that was set look
    alike: time has passed between two looks.
    """

    def __init__(self) -> None:
        self._since_ms: int | None = None
        """None: this process has not looked yet."""
        self._looked_ms = 0

    def since_ms(self, now_ms: int) -> int:
        """Look, by the time of a transaction."""
        passed_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        if self._since_ms is None or not -_GAP_MS < passed_ms < _GAP_MS:
            self._since_ms = now_ms
        return self._since_ms
