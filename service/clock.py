"""What time it is in a transaction."""

import time

from sqlalchemy import Connection


class Clock:
    """Tells the time by the database; SQLite has no clock but the process's own.

    Replicas share a database, so that its clock is the one on which they agree.
    """

    def now_ms(self, _connection: Connection) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000
