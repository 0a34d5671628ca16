"""One count of each client's requests, though several processes of the service answer them.

A process admits requests by what it knows, and tells the others each second what it has admitted.
So a client may send its allowance, and what the others admit of it within that second. To count in
the database instead would cost a write for each request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from sqlalchemy import Connection

from service.db.engine import Database, Line, announce
from service.http.rate_limits.rate_limit import RateClass, RateLimits
from service.notices import SharedNotice

EVERY_S: Final = 1.0
_OF_ONE_NOTICE: Final = 40
"""These fit into a message of PostgreSQL, with names of any length."""
_MOST_CLIENTS: Final = 2_000
"""Clients with the fewest requests are left out beyond it: a flood of clients is no single one."""


@dataclass(frozen=True, slots=True)
class RequestsAdmitted(SharedNotice):
    """Notice: a process let so many requests of these clients go on."""

    process: str
    counts: tuple[tuple[RateClass, str, int], ...]
    """By the digest of the client's name."""


class SharedCounts:
    """Tells other processes of the requests that went on here, and counts theirs."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._process = token_hex(8)

    def listen(self, database: Database) -> None:
        """Count what other processes tell of."""
        database.listen(RequestsAdmitted, self._count)

    async def tell(self, database: Database) -> int:
        """Tell the others what went on since the last time; returns of how many clients."""
        counts = sorted(self._limits.take_untold(), key=_requests, reverse=True)[:_MOST_CLIENTS]
        notices = [
            RequestsAdmitted(self._process, tuple(counts[first : first + _OF_ONE_NOTICE]))
            for first in range(0, len(counts), _OF_ONE_NOTICE)
        ]
        if notices:
            await database.write(lambda c: _announce(c, notices), brief=Line.CLAIMS)
        return len(counts)

    def _count(self, notice: RequestsAdmitted) -> None:
        if notice.process == self._process:
            return
        for kind, digest, requests in notice.counts:
            self._limits.count_elsewhere(kind, digest, requests)


def _requests(count: tuple[RateClass, str, int]) -> int:
    return count[2]


def _announce(connection: Connection, notices: Sequence[RequestsAdmitted]) -> None:
    for notice in notices:
        announce(connection, notice)
