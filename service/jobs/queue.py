"""The queue's hot statements, one implementation per database engine.

They decide nothing: `service.jobs.rules` does. All run inside the caller's transaction.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from sqlalchemy import Connection

from contract.checks import CheckType, Lane
from service.db.engine import announce
from service.jobs.model import HeldJob, JobPlace, JobsDue, NewRun, ReadyJob, RequeuedJob
from service.jobs.ready_floors import ReadyFloors


class Assignment(NamedTuple):
    """A job that goes to a claim."""

    job_id: int
    agent_id: str
    claim_id: str
    claimed_ms: int
    lease_until_ms: int


class ReadyQuery(NamedTuple):
    """Which jobs a claim asks for."""

    location_id: str
    lane: Lane
    check_types: frozenset[CheckType]
    limit: int
    floors: ReadyFloors


class JobQueue(Protocol):
    """The queue of one database engine."""

    def add(self, connection: Connection, runs: Sequence[NewRun]) -> None:
        """Put runs into the queue; one that is there already stays as it is. Announces them."""

    def reserve_ids(self, connection: Connection, count: int) -> range:
        """Numbers that no run has or will have; the queue has had a run before."""

    def find_ready(
        self, connection: Connection, query: ReadyQuery, *, now_ms: int
    ) -> list[ReadyJob]:
        """Jobs that can be claimed now, in the order in which they should be."""

    def load_place(self, connection: Connection, location_id: str) -> JobPlace:
        """What jobs say of a location that exists."""

    def next_due_ms(self, connection: Connection, location_id: str, *, now_ms: int) -> int | None:
        """When the next job of a location turns due. None: none waits for its time."""

    def assign(self, connection: Connection, assignments: Iterable[Assignment]) -> None:
        """Lease ready jobs to claims: the fence grows, the lease begins."""

    def find_assigned(
        self, connection: Connection, location_id: str, claim_ids: Sequence[str]
    ) -> Mapping[str, list[ReadyJob]]:
        """Jobs that are leased under these claims, by claim, with the fences from before it."""

    def renew(
        self,
        connection: Connection,
        location_id: str,
        leases: Iterable[tuple[int, int]],
        *,
        now_ms: int,
    ) -> list[bool]:
        """Which of the leases (job, fence) held, and hold for another full length."""

    def find_held(self, connection: Connection, job_ids: Iterable[int]) -> Mapping[int, HeldJob]:
        """The jobs that are not done, by id."""

    def find_lost(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs whose lease has run out."""

    def find_expired(self, connection: Connection, *, now_ms: int, limit: int) -> list[HeldJob]:
        """Jobs that nobody claimed in time."""

    def requeue(self, connection: Connection, returns: Sequence[RequeuedJob]) -> None:
        """Put jobs back into the queue, and announce them."""

    def remove(self, connection: Connection, job_ids: Iterable[int]) -> None:
        """The jobs are done."""


def announce_jobs(connection: Connection, jobs: Iterable[tuple[str, int]]) -> None:
    """One notice per location, with its earliest job; of each job its location and due time."""
    earliest: dict[str, int] = defaultdict(lambda: 1 << 62)
    for location_id, due_ms in jobs:
        earliest[location_id] = min(earliest[location_id], due_ms)
    for location_id, due_ms in earliest.items():
        announce(connection, JobsDue(location_id, due_ms))
