"""What a soak must not leave: due times without a record, and long silences after a fault."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Final

import psycopg

from tests.faults.ledger import open_books

_LOOK_S: Final = 0.1

Span = tuple[float, float]
"""Beginning and end of a fault."""


Records = Mapping[str, Sequence[tuple[int, int]]]
"""By check, when each was due in ms and for how many due times it stands."""
_SCHEDULED: Final = (
    "SELECT check_id, scheduled_ms, coalesce(due_times, 1) FROM result"
    " WHERE result_type = 'FINAL' AND source = 'SCHEDULER'"
)
_FAILED_HEARTBEATS: Final = (
    "SELECT h.token, r.ts FROM result r JOIN heartbeat h ON h.check_id = r.check_id"
    " WHERE r.result_type = 'FINAL' AND r.status = 'FAILED'"
)
_UNDER_WAY_MS: Final = 2_000
"""A ping that was answered so shortly before the verdict may come after it."""
_JUDGED: Final = "SELECT count(*) FROM result WHERE result_type = 'FINAL' AND status != 'MISSED'"


def count_holes(records: Records, periods_ms: Mapping[str, int], *, until_ms: int) -> int:
    """Due times before a moment that no record stands for; a check without any record counts."""
    return sum(
        _holes_of(records.get(check, ()), period_ms, until_ms)
        for check, period_ms in periods_ms.items()
    )


def _holes_of(found: Sequence[tuple[int, int]], period_ms: int, until_ms: int) -> int:
    """Of one check, whose first run may be off the rhythm of all others."""
    if not found:
        return 1
    times = [due_ms for due_ms, _ in sorted(found)]
    steps = ((after - before) / period_ms for before, after in pairwise(times))
    between = sum(max(0, ceil(step - 0.5) - 1) for step in steps)
    more = sum(count - 1 for _, count in found)
    # The second run comes half a period after the first, or one and a half.
    off_ms = period_ms // 2 if len(times) == 1 else 0
    return max(0, between - more) + max(0, (until_ms - times[-1] - off_ms) // period_ms)


def scheduled_records(database: Path | str) -> dict[str, list[tuple[int, int]]]:
    """The records of all due times, by check."""
    found: dict[str, list[tuple[int, int]]] = {}
    with open_books(database) as books:
        for check, due_ms, count in books.execute(_SCHEDULED):
            found.setdefault(check, []).append((due_ms, count))
    return found


def failed_heartbeats(database: Path | str) -> list[tuple[str, int]]:
    """Token and time in ms of each run of a heartbeat that failed."""
    with open_books(database) as books:
        return books.execute(_FAILED_HEARTBEATS).fetchall()


def count_wrong(
    failed: Sequence[tuple[str, int]], answered: Mapping[str, Sequence[int]], *, period_ms: int
) -> int:
    """How many heartbeats failed though a ping of theirs had been answered in time.

    `answered`: when, by token, in ms and in order.
    """
    return sum(
        bisect_left(answered.get(token, ()), at_ms - period_ms)
        < bisect_left(answered.get(token, ()), at_ms - _UNDER_WAY_MS)
        for token, at_ms in failed
    )


def silences_s(faults: Sequence[Span], results: Sequence[float], *, until: float) -> list[float]:
    """After the end of each fault, the seconds until a result came in which there was no fault.

    `results`: when one came, in order. `until`: when nobody listened any more.
    """
    found = []
    for _, end in sorted(faults, key=lambda fault: fault[1]):
        at = bisect_left(results, end)
        came = results[at] if at < len(results) else until
        found.append(max(0.0, came - end) - _covered_s(faults, end, came))
    return found


def p99(values: Sequence[float]) -> float:
    """The value that one in a hundred exceeds; 0 of none."""
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)] if values else 0.0


def _covered_s(spans: Sequence[Span], begin: float, end: float) -> float:
    """How many seconds between two moments at least one span covers."""
    covered, reached = 0.0, begin
    for first, last in sorted(spans):
        covered += max(0.0, min(last, end) - max(first, reached))
        reached = max(reached, min(last, end))
    return covered


@dataclass
class Watch:
    """Notes when faults begin and end, and when results come."""

    database: Path | str
    faults: list[Span] = field(default_factory=list)
    results: list[float] = field(default_factory=list)
    until: float = 0.0
    """When `listen` last looked."""
    seen: int = 0
    """How many results there were."""

    @contextmanager
    def fault(self) -> Iterator[None]:
        """Around a fault."""
        began = monotonic()
        try:
            yield
        finally:
            self.faults.append((began, monotonic()))

    async def listen(self) -> None:
        """Note results that judge a target, until it is cancelled."""
        while True:
            with suppress(psycopg.OperationalError):  # PostgreSQL is away
                await self._listen()
            await asyncio.sleep(_LOOK_S)

    async def _listen(self) -> None:
        with open_books(self.database) as books:
            while True:
                now = books.execute(_JUDGED).fetchone()[0]
                if now > self.seen:
                    self.results.append(monotonic())
                self.seen, self.until = now, monotonic()
                await asyncio.sleep(_LOOK_S)

    def silences_s(self) -> list[float]:
        """After the end of each fault, in the order of their ends."""
        return silences_s(self.faults, self.results, until=self.until)
