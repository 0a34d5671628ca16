"""The queue's hot statements on SQLite, by the driver: 32 µs a claim against 184 and more above it.

Only their text and their parameters live here. The partial indexes of `job` carry each of them.
Several jobs go into one statement as a JSON list of their ids: half the time of a statement each,
and the interpreter is free for other threads meanwhile. One job has a statement of its own, because
the list costs 2 µs.
A claim reads `check_`, `heartbeat`, `session`, `private_location` and `client_certificate` too,
which are other features': each job needs them, and asking for them one by one would cost a claim
four times as much.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType, Lane
from service.db.sqlite_group import driver
from service.jobs.model import (
    LEASE_MS,
    HeldJob,
    JobPlace,
    NewRun,
    Priority,
    ReadyJob,
    RequeuedJob,
)
from service.jobs.queue import Assignment, ReadyQuery, announce_jobs

_ADD: Final = """
INSERT OR IGNORE INTO job (check_id, check_type, lane, location_id, source, session_id,
  scheduled_ms, due_ms, expires_ms, priority, state, fence, deliveries, attempt)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, random() & 0x3ffffff0, 0, 1)
"""
_RESERVE: Final = "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'job' RETURNING seq"
_AMONG: Final = "IN (SELECT value FROM json_each(?))"
_READY_COLUMNS: Final = """
SELECT {claim_id}j.id, {fence}, j.check_id, j.source, j.attempt, j.scheduled_ms, j.due_ms, j.lane,
  j.check_type, {name}, {spec}, CASE j.check_type WHEN 'HEARTBEAT' THEN
    (SELECT h.last_ping_ms FROM heartbeat h WHERE h.check_id = j.check_id) END,
  CASE j.check_type WHEN 'PLAYWRIGHT' THEN
    (SELECT s.refresh_cache FROM session s WHERE s.id = j.session_id) END,
  {group_id}, j.returned_by
FROM {job} {join} check_ c ON c.id = j.check_id
"""
_READY_PARTS: Final = {
    "claim_id": "",
    "fence": "j.fence",
    "name": "c.name",
    "spec": "c.spec",
    "group_id": "c.group_id",
    "job": "job j",
    "join": "CROSS JOIN",
}
# Only a session whose check is not stored has a spec.
_TESTED: Final = "(SELECT t.%s FROM session t WHERE t.id = j.session_id)"
# Somebody waits for these runs, so they are few; their check may be a session's, not stored.
_WANTED_PARTS: Final = {
    **_READY_PARTS,
    "name": f"coalesce(c.name, {_TESTED % 'name'})",
    "spec": f"coalesce(c.spec, {_TESTED % 'spec'})",
    "group_id": f"CASE WHEN c.id IS NULL THEN {_TESTED % 'group_id'} ELSE c.group_id END",
    "join": "LEFT JOIN",
}
_IS_KNOWN: Final = f"{_WANTED_PARTS['spec']} IS NOT NULL"
_ASSIGNED: Final = (
    # Once through all that is leased, at all locations and for all claims of a round: repeated ones
    # are few, and each index costs all jobs. 50,000 leases take 42 ms.
    _READY_COLUMNS.format(
        **{
            **_WANTED_PARTS,
            "claim_id": "j.claim_id, ",
            "fence": "j.fence - 1",
            "job": "job j INDEXED BY ix_job_leased_until",
        }
    )
    + f"WHERE {_IS_KNOWN} AND j.state = 1 AND j.location_id = ? AND j.claim_id IN ({{claims}})"
    " ORDER BY j.id"
)
_PLACE: Final = """
SELECT account_id, slug_name, proxy_url,
  EXISTS (SELECT 1 FROM client_certificate c WHERE c.account_id = l.account_id), sealed_proxy_url
FROM private_location l WHERE id = ?
"""
_NEXT_DUE: Final = """
SELECT min(due_ms) FROM job WHERE state = 0 AND location_id = ? AND lane = ? AND priority = ?
  AND due_ms > ?
"""
_ASSIGN: Final = """
UPDATE job SET state = 1, fence = fence + 1, deliveries = deliveries + 1,
  agent_id = ?, claim_id = ?, claimed_ms = ?, lease_until_ms = ?
"""
_ASSIGN_ONE: Final = _ASSIGN + "WHERE id = ?"
_ASSIGN_SOME: Final = _ASSIGN + "WHERE id " + _AMONG
_RENEW: Final = """
UPDATE job SET lease_until_ms = ? + CASE lane WHEN 'main' THEN ? ELSE ? END
WHERE id = ? AND fence = ? AND state = 1 AND location_id = ?
"""
_HELD_COLUMNS: Final = """
SELECT id, state, fence, deliveries, attempt, check_id, check_type, lane, location_id, source,
  session_id, scheduled_ms, due_ms, expires_ms, priority, first_started_ms, claimed_ms, agent_id,
  returned_by
FROM job
"""
_HELD_ONE: Final = _HELD_COLUMNS + "WHERE id = ?"
_HELD_SOME: Final = _HELD_COLUMNS + "WHERE id " + _AMONG
_LOST: Final = (
    _HELD_COLUMNS + "WHERE state = 1 AND lease_until_ms <= ? ORDER BY lease_until_ms LIMIT ?"
)
_EXPIRED: Final = _HELD_COLUMNS + "WHERE state = 0 AND expires_ms <= ? ORDER BY expires_ms LIMIT ?"
_REQUEUE: Final = """
UPDATE job SET state = 0, location_id = ?, due_ms = ?, expires_ms = ?, priority = ?,
  deliveries = ?, attempt = ?, first_started_ms = ?, returned_by = ? WHERE id = ?
"""
_REMOVE: Final = "DELETE FROM job "
_REMOVE_ONE: Final = _REMOVE + "WHERE id = ?"
_REMOVE_SOME: Final = _REMOVE + "WHERE id " + _AMONG
_PRIORITIES: Final = tuple(priority.value for priority in Priority)
"""Plain numbers, because the driver searches for an adapter for any other type."""


class SqliteJobQueue:
    """The queue in a SQLite file; implements `JobQueue`."""

    def add(self, connection: Connection, runs: Sequence[NewRun]) -> None:
        """Put runs into the queue; one that is there already stays as it is. Announces them."""
        driver(connection).executemany(_ADD, runs)
        announce_jobs(connection, ((run.location_id, run.due_ms) for run in runs))

    def reserve_ids(self, connection: Connection, count: int) -> range:
        """Numbers that no run has or will have; the queue has had a run before."""
        last: int = driver(connection).execute(_RESERVE, (count,)).fetchone()[0]
        return range(last - count + 1, last + 1)

    def find_ready(
        self, connection: Connection, query: ReadyQuery, *, now_ms: int
    ) -> list[ReadyJob]:
        """Jobs that can be claimed now, in the order in which they should be."""
        execute = driver(connection).execute
        lane = query.lane.value
        jobs: list[ReadyJob] = []
        for priority in _PRIORITIES:
            statement, types = _ready(query.check_types, priority)
            asked = (query.location_id, lane, priority, now_ms, *types)
            left = query.limit - len(jobs)
            jobs += map(ReadyJob._make, execute(statement, (*asked, left)) if left else ())
        return jobs

    def load_place(self, connection: Connection, location_id: str) -> JobPlace:
        """What jobs say of a location that exists."""
        return JobPlace(*driver(connection).execute(_PLACE, (location_id,)).fetchone())

    def next_due_ms(self, connection: Connection, location_id: str, *, now_ms: int) -> int | None:
        """When the next job of a location turns due. None: none waits for its time."""
        execute = driver(connection).execute
        times = [
            execute(_NEXT_DUE, (location_id, lane, priority, now_ms)).fetchone()[0]
            for lane in Lane
            for priority in (0, 1)
        ]
        return min((due_ms for due_ms in times if due_ms is not None), default=None)

    def assign(self, connection: Connection, assignments: Iterable[Assignment]) -> None:
        """Lease ready jobs to claims: the fence grows, the lease begins."""
        execute = driver(connection).execute
        for lease, alike in groupby(assignments, itemgetter(slice(1, None))):
            ids = [one.job_id for one in alike]
            execute(_ASSIGN_ONE if len(ids) == 1 else _ASSIGN_SOME, (*lease, _listed(ids)))

    def find_assigned(
        self, connection: Connection, location_id: str, claim_ids: Sequence[str]
    ) -> Mapping[str, list[ReadyJob]]:
        """Jobs that are leased under these claims, by claim, with the fences from before it."""
        statement = _ASSIGNED.format(claims=", ".join("?" * len(claim_ids)))
        by_claim: dict[str, list[ReadyJob]] = defaultdict(list)
        for claim_id, *job in driver(connection).execute(statement, (location_id, *claim_ids)):
            by_claim[claim_id].append(ReadyJob._make(job))
        return by_claim

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

    def find_held(self, connection: Connection, job_ids: Iterable[int]) -> Mapping[int, HeldJob]:
        """The jobs that are not done, by id."""
        ids = list(job_ids)
        statement = _HELD_ONE if len(ids) == 1 else _HELD_SOME
        rows = driver(connection).execute(statement, (_listed(ids),))
        return {row[0]: HeldJob._make(row) for row in rows}

    def find_lost(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs whose lease has run out."""
        return [HeldJob._make(row) for row in driver(connection).execute(_LOST, (now_ms, limit))]

    def find_expired(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs that nobody claimed in time."""
        return [HeldJob._make(row) for row in driver(connection).execute(_EXPIRED, (now_ms, limit))]

    def requeue(self, connection: Connection, returns: Sequence[RequeuedJob]) -> None:
        """Put jobs back into the queue, and announce them."""
        driver(connection).executemany(_REQUEUE, ((*row[1:], row[0]) for row in returns))
        announce_jobs(connection, ((row.location_id, row.due_ms) for row in returns))

    def remove(self, connection: Connection, job_ids: Iterable[int]) -> None:
        """The jobs are done."""
        if ids := list(job_ids):
            statement = _REMOVE_ONE if len(ids) == 1 else _REMOVE_SOME
            driver(connection).execute(statement, (_listed(ids),))


@lru_cache(maxsize=256)
def _ready(check_types: frozenset[CheckType], priority: int) -> tuple[str, tuple[str, ...]]:
    """The claim's query for these check types, and what they are called in it.

    One range of the index, in its order, and one priority at a time, so that a retry that waits for
    its time costs a claim nothing.
    """
    types = tuple(sorted(one.value for one in check_types))
    is_wanted = priority == Priority.WANTED
    parts = _WANTED_PARTS if is_wanted else _READY_PARTS
    is_known = _IS_KNOWN if is_wanted else "TRUE"
    statement = f"""
    {_READY_COLUMNS.format(**parts)}
    WHERE {is_known} AND j.state = 0 AND j.location_id = ? AND j.lane = ? AND j.priority = ?
      AND j.due_ms <= ? AND j.check_type IN ({", ".join("?" * len(types))})
    ORDER BY j.due_ms, j.id LIMIT ?
    """
    return statement, types


def _listed(ids: Sequence[int]) -> int | str:
    """The parameter of a statement for one job, or for some."""
    return ids[0] if len(ids) == 1 else str(ids)
