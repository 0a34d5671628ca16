"""The queue's hot statements on PostgreSQL, by the driver.

Only their text and their parameters live here. A claim locks the jobs that it takes and leaves out
those that another process's has locked. A claim reads other features' tables as on SQLite.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from contract.checks import Lane
from service.db.postgresql_faults import driver
from service.db.postgresql_rows import execute_later, fetch_rows, json_rows
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
INSERT INTO job (check_id, check_type, lane, location_id, source, session_id,
  scheduled_ms, due_ms, expires_ms, priority, state, fence, deliveries, attempt)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 0, floor(random() * 67108864)::int * 16, 0, 1)
ON CONFLICT DO NOTHING
"""
_RESERVE: Final = """
SELECT setval(sequence, nextval(sequence) + %s - 1)
FROM pg_get_serial_sequence('job', 'id') AS sequence
"""
_READY_COLUMNS: Final = """
SELECT {claim_id}j.id, {fence}, j.check_id, j.source, j.attempt, j.scheduled_ms, j.due_ms, j.lane,
  j.check_type, {name}, {spec}, CASE j.check_type WHEN 'HEARTBEAT' THEN
    (SELECT h.last_ping_ms FROM heartbeat h WHERE h.check_id = j.check_id) END,
  CASE j.check_type WHEN 'PLAYWRIGHT' THEN
    (SELECT s.refresh_cache FROM session s WHERE s.id = j.session_id) END,
  {group_id}, j.returned_by
FROM job j {join} check_ c ON c.id = j.check_id
"""
_READY_PARTS: Final = {
    "claim_id": "",
    "fence": "j.fence",
    "name": "c.name",
    "spec": "c.spec",
    "group_id": "c.group_id",
    "join": "JOIN",
}
# Only a session whose check is not stored has a spec. By a join PostgreSQL may read all sessions.
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
# One range of the index, in its order, and one priority at a time, so that a retry that waits for
# its time costs a claim nothing, and neither do rows before the first job that was found last.
_READY_ROWS: Final = """
j.state = 0 AND j.location_id = %s AND j.lane = %s AND j.priority = %s
  AND (j.due_ms, j.id) >= (%s, %s) AND j.due_ms <= %s
  AND j.check_type = ANY(%s) ORDER BY j.due_ms, j.id LIMIT %s FOR NO KEY UPDATE OF j SKIP LOCKED
"""
READY: Final = f"{_READY_COLUMNS.format(**_READY_PARTS)} WHERE {_READY_ROWS}"
READY_WANTED: Final = (
    f"{_READY_COLUMNS.format(**_WANTED_PARTS)} WHERE {_IS_KNOWN} AND {_READY_ROWS}"
)
_ASSIGNED: Final = (
    _READY_COLUMNS.format(**{**_WANTED_PARTS, "claim_id": "j.claim_id, ", "fence": "j.fence - 1"})
    + f"WHERE {_IS_KNOWN} AND j.state = 1 AND j.location_id = %s AND j.claim_id = ANY(%s)"
    " ORDER BY j.id"
)
_PLACE: Final = """
SELECT account_id, slug_name, proxy_url,
  EXISTS (SELECT 1 FROM client_certificate c WHERE c.account_id = l.account_id), sealed_proxy_url
FROM private_location l WHERE id = %s
"""
_NEXT_DUE: Final = """
SELECT min(due_ms) FROM job WHERE state = 0 AND location_id = %s AND lane = %s AND priority = %s
  AND due_ms > %s
"""
_ASSIGN: Final = """
UPDATE job SET state = 1, fence = fence + 1, deliveries = deliveries + 1,
  agent_id = new.agent_id, claim_id = new.claim_id, claimed_ms = new.claimed_ms,
  lease_until_ms = new.lease_until_ms
FROM json_to_recordset(%s) AS new
  (job_id int8, agent_id text, claim_id text, claimed_ms int8, lease_until_ms int8)
WHERE job.id = new.job_id
"""
_RENEW: Final = """
UPDATE job SET lease_until_ms = %s + CASE lane WHEN 'main' THEN %s ELSE %s END
WHERE id = %s AND fence = %s AND state = 1 AND location_id = %s
"""
_HELD_COLUMNS: Final = """
SELECT id, state, fence, deliveries, attempt, check_id, check_type, lane, location_id, source,
  session_id, scheduled_ms, due_ms, expires_ms, priority, first_started_ms, claimed_ms, agent_id,
  returned_by
FROM job
"""
# Whoever finds one locked is made again alone, and waits there.
_HELD: Final = _HELD_COLUMNS + "WHERE id = ANY(%s) FOR UPDATE NOWAIT"
_LOST: Final = (
    _HELD_COLUMNS + "WHERE state = 1 AND lease_until_ms <= %s ORDER BY lease_until_ms LIMIT %s"
)
_EXPIRED: Final = (
    _HELD_COLUMNS + "WHERE state = 0 AND expires_ms <= %s ORDER BY expires_ms LIMIT %s"
)
_REQUEUE: Final = """
UPDATE job SET state = 0, location_id = %s, due_ms = %s, expires_ms = %s, priority = %s,
  deliveries = %s, attempt = %s, first_started_ms = %s, returned_by = %s WHERE id = %s
"""
_REMOVE: Final = "DELETE FROM job WHERE id = ANY(%s)"
_PRIORITIES: Final = tuple(priority.value for priority in Priority)


class PostgresJobQueue:
    """The queue in a PostgreSQL database; implements `JobQueue`."""

    def add(self, connection: Connection, runs: Sequence[NewRun]) -> None:
        """Put runs into the queue; one that is there already stays as it is. Announces them."""
        driver(connection).cursor().executemany(_ADD, runs)
        announce_jobs(connection, ((run.location_id, run.due_ms) for run in runs))

    def reserve_ids(self, connection: Connection, count: int) -> range:
        """Numbers that no run has or will have."""
        row = driver(connection).execute(_RESERVE, (count,)).fetchone()
        last: int = row[0] if row else 0
        return range(last - count + 1, last + 1)

    def find_ready(
        self, connection: Connection, query: ReadyQuery, *, now_ms: int
    ) -> list[ReadyJob]:
        """Jobs that can be claimed now, in the order in which they should be."""
        types = [one.value for one in query.check_types]
        jobs: list[ReadyJob] = []
        for priority in _PRIORITIES:
            left = query.limit - len(jobs)
            if not left:
                break
            key = (query.lane, query.check_types, priority)
            floor = query.floors.begin(key, now_ms=now_ms)
            asked = (query.location_id, query.lane.value, priority, *floor, now_ms, types, left)
            statement = READY_WANTED if priority == Priority.WANTED else READY
            # Other claims of the round may have been given some that only the commit would mark.
            rows = fetch_rows(connection, statement, asked)
            found = [ReadyJob._make(row) for row in rows]
            query.floors.end(key, (found[0].due_ms, found[0].id) if found else (now_ms, 0))
            jobs += found
        return jobs

    def load_place(self, connection: Connection, location_id: str) -> JobPlace:
        """What jobs say of a location that exists."""
        row = driver(connection).execute(_PLACE, (location_id,)).fetchone()
        return JobPlace._make(row or ())

    def next_due_ms(self, connection: Connection, location_id: str, *, now_ms: int) -> int | None:
        """When the next job of a location turns due. None: none waits for its time."""
        execute = driver(connection).execute
        times = [
            row[0]
            for lane in Lane
            for priority in _PRIORITIES
            for row in execute(_NEXT_DUE, (location_id, lane.value, priority, now_ms))
        ]
        return min((due_ms for due_ms in times if due_ms is not None), default=None)

    def assign(self, connection: Connection, assignments: Iterable[Assignment]) -> None:
        """Lease ready jobs to claims: the fence grows, the lease begins."""
        if rows := list(assignments):
            execute_later(connection, _ASSIGN, (json_rows(Assignment._fields, rows),))

    def find_assigned(
        self, connection: Connection, location_id: str, claim_ids: Sequence[str]
    ) -> Mapping[str, list[ReadyJob]]:
        """Jobs that are leased under these claims, by claim, with the fences from before it."""
        by_claim: dict[str, list[ReadyJob]] = defaultdict(list)
        rows = driver(connection).execute(_ASSIGNED, (location_id, list(claim_ids)))
        for claim_id, *job in rows:
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
        rows = fetch_rows(connection, _HELD, (list(job_ids),))
        return {row[0]: HeldJob._make(row) for row in rows}

    def find_lost(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs whose lease has run out."""
        return [HeldJob._make(row) for row in driver(connection).execute(_LOST, (now_ms, limit))]

    def find_expired(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs that nobody claimed in time."""
        return [HeldJob._make(row) for row in driver(connection).execute(_EXPIRED, (now_ms, limit))]

    def requeue(self, connection: Connection, returns: Sequence[RequeuedJob]) -> None:
        """Put jobs back into the queue, and announce them."""
        rows = [(*row[1:], row[0]) for row in returns]
        driver(connection).cursor().executemany(_REQUEUE, rows)
        announce_jobs(connection, ((row.location_id, row.due_ms) for row in returns))

    def remove(self, connection: Connection, job_ids: Iterable[int]) -> None:
        """The jobs are done."""
        if ids := list(job_ids):
            execute_later(connection, _REMOVE, (ids,))
