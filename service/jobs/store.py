"""The queue's SQL that is not hot and the same on all engines; `queue` has the rest."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, Row, bindparam, delete, func, literal_column, select, update

from contract.job import RunSource
from service.db.tables.runs import job
from service.jobs.model import LEASE_MS, QUEUE_MS, JobState, OpenJob

_DROP: Final = delete(job).where(job.c.check_id == bindparam("check"))
_OF_SESSION: Final = (
    select(
        job.c.location_id,
        job.c.state,
        job.c.agent_id,
        job.c.attempt,
        job.c.due_ms,
        job.c.claimed_ms,
    )
    .where(job.c.session_id == bindparam("session"))
    .order_by(job.c.id)
)
_QUEUED: Final = select(job.c.id).where(
    job.c.check_id == bindparam("check"),
    job.c.state == JobState.QUEUED.value,
    job.c.source == RunSource.SCHEDULER.value,
)
_QUEUED_AT: Final = select(job.c.id).where(
    job.c.location_id == bindparam("location"),
    job.c.state == JobState.QUEUED.value,
    job.c.source == RunSource.SCHEDULER.value,
)
_HELD_BY: Final = select(job.c.id).where(
    job.c.location_id == bindparam("location"),
    job.c.state == JobState.LEASED.value,
    job.c.agent_id.in_(bindparam("agents", expanding=True)),
)
_LEASED_TO: Final = select(job.c.id, job.c.fence).where(
    job.c.state == literal_column(str(JobState.LEASED.value)),  # as the partial index has it
    job.c.location_id == bindparam("location"),
    job.c.agent_id == bindparam("agent"),
)
_CLAIMS: Final = (
    select(job.c.location_id, job.c.claim_id).where(job.c.state == JobState.LEASED.value).distinct()
)
_WAITING: Final = (
    select(job.c.location_id, func.count().label("runs"), func.min(job.c.due_ms).label("oldest_ms"))
    .where(job.c.state == JobState.QUEUED.value, job.c.due_ms <= bindparam("now_ms"))
    .group_by(job.c.location_id)
)
_AT: Final = select(job.c.id).where(job.c.location_id == bindparam("location"))
_EXTEND: Final = (
    update(job)
    .where(job.c.state == JobState.LEASED.value, job.c.lease_until_ms < bindparam("until_ms"))
    .values(lease_until_ms=bindparam("until_ms"))
)
_THERE: Final = select(job.c.id).where(
    job.c.check_id == bindparam("check"),
    job.c.location_id == bindparam("location"),
    job.c.scheduled_ms == bindparam("scheduled_ms"),
    job.c.source == RunSource.SCHEDULER.value,
)
_RESCHEDULE_LEASES: Final = (
    update(job)
    .where(job.c.state == JobState.LEASED.value, job.c.lease_until_ms > bindparam("limit_ms"))
    .values(lease_until_ms=bindparam("new_ms"))
)
_RESCHEDULE_RUNS: Final = (
    update(job)
    .where(
        job.c.state == JobState.QUEUED.value,
        job.c.attempt == 1,  # a retry may well wait for its time
        job.c.due_ms > bindparam("limit_ms"),
    )
    .values(due_ms=bindparam("due"), expires_ms=bindparam("until_ms"))
)


def drop(connection: Connection, check_id: str) -> None:
    """Delete every run of a check."""
    connection.execute(_DROP, {"check": check_id})


def find_queued(connection: Connection, check_id: str) -> list[int]:
    """The scheduled runs of a check that nobody has claimed."""
    return list(connection.execute(_QUEUED, {"check": check_id}).scalars())


def find_queued_at(connection: Connection, location_id: str) -> list[int]:
    """The scheduled runs at a location that nobody has claimed."""
    return list(connection.execute(_QUEUED_AT, {"location": location_id}).scalars())


def find_held_by(connection: Connection, location_id: str, agent_ids: Iterable[str]) -> list[int]:
    """The runs at a location that are leased to one of these agents."""
    values = {"location": location_id, "agents": list(agent_ids)}
    return list(connection.execute(_HELD_BY, values).scalars())


def find_leased_to(
    connection: Connection, location_id: str, agent_id: str
) -> list[tuple[int, int]]:
    """The leases of an agent, as (job, fence)."""
    values = {"location": location_id, "agent": agent_id}
    return [(row.id, row.fence) for row in connection.execute(_LEASED_TO, values)]


def find_claims(connection: Connection) -> frozenset[tuple[str, str]]:
    """The claims under which jobs are leased, as (location, claim)."""
    return frozenset((row.location_id, row.claim_id) for row in connection.execute(_CLAIMS))


def list_of_session(connection: Connection, session_id: str) -> list[OpenJob]:
    """The runs of a session without a final result."""
    return [
        OpenJob(
            location_id=row.location_id,
            state=JobState(row.state),
            agent_id=row.agent_id,
            attempt=row.attempt,
            since_ms=row.claimed_ms if row.state == JobState.LEASED else row.due_ms,
        )
        for row in connection.execute(_OF_SESSION, {"session": session_id})
    ]


def load_queue_depths(connection: Connection, *, now_ms: int) -> list[Row[tuple[str, int, int]]]:
    """Locations where runs can be claimed: id, number of runs, when the oldest became due."""
    return list(connection.execute(_WAITING, {"now_ms": now_ms}))


def count_held(connection: Connection, location_ids: Sequence[str]) -> dict[tuple[str, str], int]:
    """How many runs each agent of these locations holds, by location and agent."""
    found = (
        select(job.c.location_id, job.c.agent_id, func.count())
        # As the partial index of leased jobs has it.
        .where(
            job.c.state == literal_column(str(JobState.LEASED.value)),
            job.c.location_id.in_(location_ids),
        )
        .group_by(job.c.location_id, job.c.agent_id)
    )
    return {(at, who): count for at, who, count in connection.execute(found)}


def find_all_at(connection: Connection, location_id: str) -> list[int]:
    """The runs at a location, claimed or not."""
    return list(connection.execute(_AT, {"location": location_id}).scalars())


def extend_leases(connection: Connection, *, until_ms: int) -> None:
    """Make every lease last until a time at least."""
    connection.execute(_EXTEND, {"until_ms": until_ms})


def is_queued_at(
    connection: Connection, check_id: str, location_id: str, *, scheduled_ms: int
) -> bool:
    """Whether a check's scheduled run of a moment is in the queue, or runs, at a location."""
    values = {"check": check_id, "location": location_id, "scheduled_ms": scheduled_ms}
    return connection.execute(_THERE, values).first() is not None


def reschedule_after_clock_change(connection: Connection, *, now_ms: int) -> int:
    """Move leases and runs that end implausibly late to near times; how many."""
    longest_ms = max(LEASE_MS.values())
    leased = {"limit_ms": now_ms + longest_ms, "new_ms": now_ms + longest_ms}
    queued = {"limit_ms": now_ms, "due": now_ms, "until_ms": now_ms + QUEUE_MS}
    return (
        connection.execute(_RESCHEDULE_LEASES, leased).rowcount
        + connection.execute(_RESCHEDULE_RUNS, queued).rowcount
    )
