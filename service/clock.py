"""What time it is: the database's clock decides, so that replicas agree."""

import time
from typing import Protocol

from sqlalchemy import Connection


class Clock(Protocol):
    """Tells the time inside a transaction."""

    def now_ms(self, connection: Connection) -> int:
        """Milliseconds since 1970, UTC, by the clock of this connection's database."""


class ProcessClock:
    """SQLite has no clock but the process's own."""

    def now_ms(self, _connection: Connection) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000
