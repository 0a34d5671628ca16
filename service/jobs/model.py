"""The queue's values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from contract.checks import CheckType, Lane
from contract.job import RunSource
from service.notices import SharedNotice

LEASE_MS: Final = {Lane.UPTIME: 60_000, Lane.MAIN: 300_000}
"""How long a lease lasts without a renewal."""
QUEUE_MS: Final = 360_000
"""How long a run may stay unclaimed before it is missed."""
MOST_DELIVERIES: Final = 3
"""How many agents may lose a job before it is given up."""
HELD_BACK_MS: Final = 5_000
"""How long a job that an agent gave back waits for another one before that agent gets it again; it
doubles each time, since a run may have reached its target before it broke."""


class Priority(IntEnum):
    """Who is served first."""

    WANTED = 0
    """Retries, and runs that a person or a pipeline waits for."""
    SCHEDULED = 1


class JobState(IntEnum):
    """A job that is done has no row."""

    QUEUED = 0
    LEASED = 1


@dataclass(frozen=True, slots=True)
class JobsDue(SharedNotice):
    """Notice: a job of this location can be claimed from `due_ms` on."""

    location_id: str
    due_ms: int


class QueueDepth(NamedTuple):
    """The runs of a location that could be claimed now."""

    runs: int
    oldest_wait_ms: int


def agents_of(returned_by: str | None) -> list[str]:
    """The agents of `returned_by`, each as often as it gave the job back."""
    return [] if returned_by is None else msgspec.json.decode(returned_by, type=list[str])


def agents_text(agents: Sequence[str]) -> str:
    """`returned_by` of these agents."""
    return msgspec.json.encode(agents).decode()


def job_number(job_id: str) -> int:
    """The row number of a job's id on the wire; 0, which no job has, for an id that is not ours."""
    return int(job_id) if job_id.isascii() and job_id.isdecimal() and len(job_id) < 19 else 0


def fence_number(fence: int) -> int:
    """A fence of the wire as the database can compare it; 0, which no claim has, otherwise."""
    return fence if 0 < fence < 1 << 31 else 0


class NewRun(NamedTuple):
    """A run to put into the queue; the columns of its row, in the order of the insert."""

    check_id: str
    check_type: CheckType
    lane: Lane
    location_id: str
    source: RunSource
    session_id: str | None
    """None: the run belongs to no session."""
    scheduled_ms: int
    due_ms: int
    expires_ms: int
    priority: Priority


class OpenJob(NamedTuple):
    """A run of a session that has no final result yet."""

    location_id: str
    state: JobState
    agent_id: str | None
    """Who holds it. None: nobody has claimed it yet."""
    attempt: int
    since_ms: int
    """When it may be claimed or, once it was, when that was."""


class MissedRun(NamedTuple):
    """Runs of a check at a location that were due while the service was away."""

    check_id: str
    location_id: str
    first_ms: int
    """When the first of them was due."""
    last_ms: int
    due_times: int
    """How many they are."""


@dataclass(frozen=True, slots=True)
class DueTimesMissed:
    """Notice: the service was away when so many runs were due."""

    count: int


class Claimant(NamedTuple):
    """One claim that waits for jobs."""

    claim_id: str
    agent_id: str
    slots: Mapping[Lane, int]
    check_types: frozenset[CheckType]
    repeated: bool
    """This claim may have got jobs before whose answer was lost."""
    oldest_ping_s: float | None = None
    """The age of the oldest ping that waited at the agent. None: none did."""


class ReadyJob(NamedTuple):
    """A job as a claim reads it, with what its answer needs of the check."""

    id: int
    fence: int
    """The fence before the claim."""
    check_id: str
    source: str
    attempt: int
    scheduled_ms: int
    due_ms: int
    lane: str
    check_type: str
    check_name: str
    spec: bytes
    """The spec as it is stored: encrypted if it has a secret."""
    last_ping_ms: int | None
    """Heartbeats only. None: no ping came yet."""
    refresh_cache: int | None
    """Suites of a session only: whether they install their packages anew. None: as 0."""
    group_id: int | None = None
    """None: the check is in no group."""
    returned_by: str | None = None
    """The agents that gave this attempt back, as JSON. None: none did."""

    def held_back_until_ms(self, agent_id: str) -> int:
        """Until when other agents may take the job, because this one gave it back."""
        times = agents_of(self.returned_by).count(agent_id)
        return self.due_ms + (HELD_BACK_MS << (times - 1)) if times else 0


class JobPlace(NamedTuple):
    """What all jobs of a location say of it."""

    account_id: str
    slug: str
    proxy_url: str | None
    """None: direct."""
    has_certificates: bool
    """The account has client certificates."""
    sealed_proxy_url: bytes | None = None
    """The encrypted URL with credentials. None: `proxy_url` has none."""


class HeldJob(NamedTuple):
    """A job with what the rules need to decide about it."""

    id: int
    state: int
    """`JobState`"""
    fence: int
    deliveries: int
    attempt: int
    check_id: str
    check_type: str
    lane: str
    location_id: str
    source: str
    session_id: str | None
    """None: the run belongs to no session."""
    scheduled_ms: int
    due_ms: int
    expires_ms: int
    priority: int
    first_started_ms: int | None
    """None: no attempt came back yet."""
    claimed_ms: int | None
    """None: never claimed."""
    agent_id: str | None
    """None: never claimed."""
    returned_by: str | None
    """The agents that gave this attempt back, as JSON. None: none did."""


class RequeuedJob(NamedTuple):
    """A job that goes back into the queue."""

    job_id: int
    location_id: str
    due_ms: int
    expires_ms: int
    priority: int
    deliveries: int
    attempt: int
    first_started_ms: int | None
    """None: no attempt came back yet."""
    returned_by: str | None
    """The agents that gave this attempt back, as JSON. None: none did."""
