"""What time it is in a transaction."""

import time
from typing import Final, NamedTuple

from sqlalchemy import Connection

from service.db.engine import shared_of

_NOW: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_GAP_MS: Final = 5_000
"""Looks are at most a second apart; a longer time without one is a gap."""


class Clock:
    """Tells the time by the database; SQLite has no clock but the process's own.

    Replicas share a database, so that its clock is the one on which they agree.
    """

    def now_ms(self, connection: Connection) -> int:
        """Milliseconds since 1970, UTC."""
        if connection.dialect.name == "sqlite":
            return time.time_ns() // 1_000_000
        if shared := shared_of(connection):
            return shared.began_ms
        now_ms: int = connection.exec_driver_sql(_NOW).scalar_one()
        return now_ms


class Gap(NamedTuple):
    """A time in which the service could neither assign nor listen."""

    began_ms: int
    ended_ms: int


NO_GAP: Final = Gap(0, 0)


class GapWatch:
    """Since when the service has run without a gap, in which it could neither assign nor listen.

    A stop, a machine that was suspended, a database that was locked and a clock that was set look
    alike: time has passed between two looks.
    """

    def __init__(self, last_ms: int = 0) -> None:
        """Take when the service was up last, before this process."""
        self._gap: Gap | None = None
        """The last one. None: this process has not looked yet."""
        self._looked_ms = last_ms

    def last_gap(self, now_ms: int) -> Gap:
        """Look, by the time of a transaction; the last gap, which may have ended now."""
        before_ms, self._looked_ms = self._looked_ms, now_ms
        if self._gap is None or not -_GAP_MS < now_ms - before_ms < _GAP_MS:
            self._gap = Gap(before_ms, now_ms)
        return self._gap

    def since_ms(self, now_ms: int) -> int:
        """Look; the end of the last gap."""
        return self.last_gap(now_ms).ended_ms
