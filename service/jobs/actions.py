"""What other features do with the queue; each function is part of the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from contract.job import RunSource
from service.checks import actions as checks
from service.checks.model import CheckTerms, CheckToRun, UnstoredCheck
from service.jobs import store
from service.jobs.engines import queue_of
from service.jobs.model import HeldJob, NewRun, OpenJob, Priority, QueueDepth, RequeuedJob
from service.jobs.rules import queued_until


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRuns:
    """Runs of a check that somebody waits for, one per location, ahead of the scheduled ones."""

    check_id: str
    location_ids: Sequence[str]
    source: RunSource
    session_id: str | None
    """None: the runs belong to no session."""


def enqueue(connection: Connection, wanted: WantedRuns, *, now_ms: int) -> None:
    """Queue the runs at once; agents that wait for work get them after the commit."""
    check = checks.find_terms(connection, wanted.check_id)
    if check is not None:
        add(connection, runs_of(wanted, check, now_ms=now_ms))


def runs_of(
    wanted: WantedRuns, check: CheckTerms | CheckToRun | UnstoredCheck, *, now_ms: int
) -> list[NewRun]:
    """The wanted runs as rows of the queue."""
    until_ms = queued_until(check.type, now_ms=now_ms, next_run_ms=None)
    return [
        NewRun(
            check_id=wanted.check_id,
            check_type=check.type,
            lane=check.lane,
            location_id=location_id,
            source=wanted.source,
            session_id=wanted.session_id,
            scheduled_ms=now_ms,
            due_ms=now_ms,
            expires_ms=until_ms,
            priority=Priority.WANTED,
        )
        for location_id in wanted.location_ids
    ]


def drop_jobs(connection: Connection, check_id: str) -> None:
    """Forget every run of a check that is being deleted; agents that hold one lose their lease."""
    store.drop(connection, check_id)


def add(connection: Connection, runs: Sequence[NewRun]) -> None:
    """Put runs into the queue; one that is there already stays as it is. Announces them."""
    queue_of(connection).add(connection, runs)


def renew(
    connection: Connection, location_id: str, leases: Iterable[tuple[int, int]], *, now_ms: int
) -> list[bool]:
    """Which of the leases (job, fence) held, and hold for another full length."""
    return queue_of(connection).renew(connection, location_id, leases, now_ms=now_ms)


def find_leased_to(
    connection: Connection, location_id: str, agent_id: str
) -> list[tuple[int, int]]:
    """The leases of an agent, as (job, fence)."""
    return store.find_leased_to(connection, location_id, agent_id)


def find_held(connection: Connection, job_ids: Iterable[int]) -> Mapping[int, HeldJob]:
    """The jobs that are not done, by id."""
    return queue_of(connection).find_held(connection, job_ids)


def finish(connection: Connection, *, done: Sequence[int], again: Sequence[RequeuedJob]) -> None:
    """Settle jobs whose results came in: done, or to be retried."""
    queue = queue_of(connection)
    queue.remove(connection, done)
    if again:
        queue.requeue(connection, again)


def list_of_session(connection: Connection, session_id: str) -> Sequence[OpenJob]:
    """The runs of a session that have no final result yet."""
    return store.list_of_session(connection, session_id)


def is_queued_at(connection: Connection, job: HeldJob, location_id: str) -> bool:
    """Whether the same scheduled run of the job's check is in the queue at a location too."""
    return store.is_queued_at(connection, job.check_id, location_id, scheduled_ms=job.scheduled_ms)


def reschedule_after_clock_change(connection: Connection, *, now_ms: int) -> int:
    """Move jobs near that a clock which was set back left in the future; how many."""
    return store.reschedule_after_clock_change(connection, now_ms=now_ms)


def load_queue_depths(connection: Connection, *, now_ms: int) -> dict[str, QueueDepth]:
    """Queue depths by location, where runs can be claimed; all other queues are empty."""
    return {
        row.location_id: QueueDepth(row.runs, now_ms - row.oldest_ms)
        for row in store.load_queue_depths(connection, now_ms=now_ms)
    }


def count_held(
    connection: Connection, location_ids: Sequence[str]
) -> Mapping[tuple[str, str], int]:
    """How many runs each agent of these locations holds, by location and agent."""
    return store.count_held(connection, location_ids)
