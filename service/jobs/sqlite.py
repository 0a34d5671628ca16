"""The queue's hot statements on SQLite, by the driver: 32 µs a claim against 184 and more above it.

Only their text and their parameters live here. The partial indexes of `job` carry each of them.
A claim reads `check_`, `heartbeat` and `private_location` too, which are other features': each job
needs them, and asking for them one by one would cost a claim four times as much.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from sqlalchemy import Connection

from contract.checks import Lane
from service.db.engine import announce
from service.db.sqlite import driver
from service.jobs.model import LEASE_MS, HeldJob, JobsDue, NewRun, ReadyJob, Return
from service.jobs.queue import Deal, ReadyQuery

_ADD: Final = """
INSERT OR IGNORE INTO job (check_id, check_type, lane, location_id, source, session_id,
  scheduled_ms, due_ms, expires_ms, priority, state, fence, deliveries, attempt)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 1)
"""
_READY_COLUMNS: Final = """
SELECT j.id, {fence}, j.check_id, j.source, j.attempt, j.scheduled_ms, j.due_ms, j.lane,
  j.check_type, c.name, c.spec, h.last_ping_ms
"""
_READY_TABLES: Final = """
JOIN check_ c ON c.id = j.check_id LEFT JOIN heartbeat h ON h.check_id = j.check_id
"""
_DEALT: Final = (
    _READY_COLUMNS.format(fence="j.fence - 1")
    + "FROM job j"
    + _READY_TABLES
    + "WHERE j.state = 1 AND j.claim_id = ? AND j.location_id = ? ORDER BY j.id"
)
_PLACE: Final = "SELECT slug_name, proxy_url FROM private_location WHERE id = ?"
_NEXT_DUE: Final = """
SELECT min(due_ms) FROM job WHERE state = 0 AND location_id = ? AND lane = ? AND priority = ?
  AND due_ms > ?
"""
_DEAL: Final = """
UPDATE job SET state = 1, fence = fence + 1, deliveries = deliveries + 1,
  agent_id = ?, claim_id = ?, claimed_ms = ?, lease_until_ms = ? WHERE id = ?
"""
_RENEW: Final = """
UPDATE job SET lease_until_ms = ? + CASE lane WHEN 'main' THEN ? ELSE ? END
WHERE id = ? AND fence = ? AND state = 1 AND location_id = ?
"""
_HELD_COLUMNS: Final = """
SELECT id, state, fence, deliveries, attempt, check_id, check_type, lane, location_id, source,
  session_id, scheduled_ms, due_ms, expires_ms, priority, first_started_ms, claimed_ms, agent_id
FROM job
"""
_HELD: Final = _HELD_COLUMNS + "WHERE id = ?"
_LOST: Final = (
    _HELD_COLUMNS + "WHERE state = 1 AND lease_until_ms <= ? ORDER BY lease_until_ms LIMIT ?"
)
_EXPIRED: Final = _HELD_COLUMNS + "WHERE state = 0 AND expires_ms <= ? ORDER BY expires_ms LIMIT ?"
_GIVE_BACK: Final = """
UPDATE job SET state = 0, location_id = ?, due_ms = ?, expires_ms = ?, priority = ?,
  deliveries = ?, attempt = ?, first_started_ms = ? WHERE id = ?
"""
_REMOVE: Final = "DELETE FROM job WHERE id = ?"


class SqliteJobQueue:
    """The queue in a SQLite file; implements `JobQueue`."""

    def add(self, connection: Connection, runs: Sequence[NewRun]) -> None:
        """Put runs into the queue; one that is there already stays as it is. Announces them."""
        driver(connection).executemany(_ADD, runs)
        _announce(connection, ((run.location_id, run.due_ms) for run in runs))

    def ready(self, connection: Connection, query: ReadyQuery, *, now_ms: int) -> list[ReadyJob]:
        """Jobs that can be claimed now, in the order in which they should be."""
        types = sorted(query.check_types)
        part = (query.location_id, query.lane, now_ms, *types, query.limit)
        rows = driver(connection).execute(_ready(len(types)), (*part, *part, query.limit))
        return [ReadyJob._make(row) for row in rows]

    def place(self, connection: Connection, location_id: str) -> tuple[str, str | None]:
        """Slug and proxy of a location that exists. No proxy: direct."""
        slug, proxy_url = driver(connection).execute(_PLACE, (location_id,)).fetchone()
        return slug, proxy_url

    def next_due_ms(self, connection: Connection, location_id: str, *, now_ms: int) -> int | None:
        """When the next job of a location turns due. None: none waits for its time."""
        execute = driver(connection).execute
        times = [
            execute(_NEXT_DUE, (location_id, lane, priority, now_ms)).fetchone()[0]
            for lane in Lane
            for priority in (0, 1)
        ]
        return min((due_ms for due_ms in times if due_ms is not None), default=None)

    def deal(self, connection: Connection, deals: Iterable[Deal]) -> None:
        """Hand ready jobs out: the fence grows, the lease begins."""
        driver(connection).executemany(_DEAL, ((*deal[1:], deal[0]) for deal in deals))

    def dealt(self, connection: Connection, location_id: str, claim_id: str) -> list[ReadyJob]:
        """Jobs that are leased under a claim, their fences as before it."""
        rows = driver(connection).execute(_DEALT, (claim_id, location_id))
        return [ReadyJob._make(row) for row in rows]

    def renew(
        self,
        connection: Connection,
        location_id: str,
        leases: Iterable[tuple[int, int]],
        *,
        now_ms: int,
    ) -> list[bool]:
        """Which of the leases (job, fence) held, and hold for another full length."""
        execute = driver(connection).execute
        times = (now_ms, LEASE_MS[Lane.MAIN], LEASE_MS[Lane.UPTIME])
        return [
            execute(_RENEW, (*times, job_id, fence, location_id)).rowcount == 1
            for job_id, fence in leases
        ]

    def held(self, connection: Connection, job_ids: Iterable[int]) -> Mapping[int, HeldJob]:
        """The jobs that are not done, by id."""
        execute = driver(connection).execute
        rows = (execute(_HELD, (job_id,)).fetchone() for job_id in job_ids)
        return {row[0]: HeldJob._make(row) for row in rows if row}

    def lost(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs whose lease has run out."""
        return [HeldJob._make(row) for row in driver(connection).execute(_LOST, (now_ms, limit))]

    def expired(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs that nobody claimed in time."""
        return [HeldJob._make(row) for row in driver(connection).execute(_EXPIRED, (now_ms, limit))]

    def give_back(self, connection: Connection, returns: Sequence[Return]) -> None:
        """Put jobs back into the queue, and announce them."""
        driver(connection).executemany(_GIVE_BACK, ((*row[1:], row[0]) for row in returns))
        _announce(connection, ((row.location_id, row.due_ms) for row in returns))

    def remove(self, connection: Connection, job_ids: Iterable[int]) -> None:
        """The jobs are done."""
        driver(connection).executemany(_REMOVE, ((job_id,) for job_id in job_ids))


@lru_cache(maxsize=32)
def _ready(types: int) -> str:
    """The claim's query for so many check types.

    One range of the index per priority: a retry that waits for its time costs a claim nothing.
    """
    part = f"""
    SELECT * FROM (SELECT id, priority, due_ms FROM job
      WHERE state = 0 AND location_id = ? AND lane = ? AND priority = {{priority}} AND due_ms <= ?
        AND check_type IN ({", ".join("?" * types)}) ORDER BY due_ms, id LIMIT ?)
    """  # noqa: S608 - only question marks are put in
    ready = f"WITH r AS ({part.format(priority=0)} UNION ALL {part.format(priority=1)})"
    columns = _READY_COLUMNS.format(fence="j.fence")
    order = "ORDER BY r.priority, r.due_ms, r.id LIMIT ?"
    return f"{ready} {columns} FROM r JOIN job j ON j.id = r.id {_READY_TABLES} {order}"


def _announce(connection: Connection, jobs: Iterable[tuple[str, int]]) -> None:
    """One notice per location, with its earliest job."""
    earliest: dict[str, int] = defaultdict(lambda: 1 << 62)
    for location_id, due_ms in jobs:
        earliest[location_id] = min(earliest[location_id], due_ms)
    for location_id, due_ms in earliest.items():
        announce(connection, JobsDue(location_id, due_ms))
