"""A clock that is set back: what was planned by the old time must not wait until it comes again."""

from typing import Final

import structlog
from sqlalchemy import Connection

from service.clock import Clock
from service.jobs import actions as jobs
from service.scheduling import store

log = structlog.get_logger()

_TOLERATED_MS: Final = 1_000


class Setbacks:
    """Compares the clock with itself; a start compares it with what lies in the database."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before_ms: int | None = None
        """None: this process has not looked yet."""

    def mend(self, connection: Connection) -> int:
        """Bring plans, jobs and leases near after a setback; how many."""
        now_ms = self._clock.now_ms(connection)
        before_ms, self._before_ms = self._before_ms, now_ms
        if before_ms is not None and now_ms >= before_ms - _TOLERATED_MS:
            return 0
        plans = store.bring_near(connection, now_ms=now_ms)
        moved = jobs.bring_near(connection, now_ms=now_ms)
        if plans or moved:
            log.warning("clock.set_back", schedules=plans, jobs=moved)
        return plans + moved
