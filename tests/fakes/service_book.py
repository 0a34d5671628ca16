"""The fake service's memory: jobs, leases, fences and what agents did with them."""

import itertools
import time
from collections import deque
from dataclasses import dataclass, field

import msgspec

from contract.agent_api import (
    Claim,
    Rejected,
    Released,
    ReleaseReason,
    RenewAnswer,
    SubmissionAnswer,
)
from contract.checks import Lane, check_type, lane
from contract.job import Job, Lease
from contract.result import Result
from contract.wire import encode

MAX_DELIVERIES = 3


@dataclass(slots=True)
class Entry:
    """One job as the service knows it."""

    job_id: str
    lane: Lane
    job: Job | None
    """None: only raw bytes are known, because the job is malformed on purpose."""
    raw: bytes = b""
    fence: int = 0
    deliveries: int = 0
    leased_until: float | None = None
    """Monotonic. None: it is in the queue, or settled."""
    settled: bool = False

    def handed_out(self, *, lease_s: float) -> bytes:
        """The job as it goes over the wire under its newest fence."""
        if self.job is None:
            return self.raw.replace(b'"@fence"', str(self.fence).encode())
        return encode(msgspec.structs.replace(self.job, fence=self.fence, lease_s=lease_s))


@dataclass(slots=True)
class Book:
    """Jobs in their queue, under a lease, or settled. Knows nothing of HTTP."""

    lease_s: dict[Lane, float] = field(
        default_factory=lambda: {Lane.UPTIME: 60.0, Lane.MAIN: 300.0}
    )
    entries: dict[str, Entry] = field(default_factory=dict)
    queue: dict[Lane, deque[Entry]] = field(
        default_factory=lambda: {Lane.UPTIME: deque(), Lane.MAIN: deque()}
    )
    leased: dict[str, Entry] = field(default_factory=dict)
    results: dict[tuple[str, int], Result] = field(default_factory=dict)
    """The results that count, at most one per job."""
    late: list[Result] = field(default_factory=list)
    """Results under a stale fence."""
    duplicates: list[Result] = field(default_factory=list)
    """Results that came again."""
    rejected: list[Rejected] = field(default_factory=list)
    released: list[Released] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Jobs that three deliveries did not bring to an end."""
    to_cancel: set[str] = field(default_factory=set)
    refuse: dict[str, str] = field(default_factory=dict)
    """Job ids whose results are rejected, with the reason."""

    def offer(self, job: Job) -> None:
        """Put a job into its queue; fence and lease are set when it is claimed."""
        self._queue(Entry(job_id=job.job_id, lane=lane(job.spec), job=job))

    def offer_raw(self, raw: bytes, *, job_id: str, on: Lane = Lane.UPTIME) -> None:
        """Queue bytes that are handed out as they are, with `"@fence"` replaced."""
        self._queue(Entry(job_id=job_id, lane=on, job=None, raw=raw))

    def claim(self, claim: Claim) -> tuple[bytes, ...]:
        """Lease as many waiting jobs as the agent has room for."""
        now = time.monotonic()
        self.expire(now)
        return tuple(
            self._lease(entry, now)
            for on, free in claim.slots.items()
            for entry in self._take(claim, on, free)
        )

    def expire(self, now: float) -> None:
        """Put jobs whose lease ran out back into the queue."""
        gone = [e for e in self.leased.values() if (e.leased_until or 0) <= now]
        for entry in gone:
            self._requeue(entry)

    def renew(self, leases: tuple[Lease, ...]) -> RenewAnswer:
        """Extend the leases that still hold."""
        now = time.monotonic()
        self.expire(now)
        lost, cancel = [], []
        for lease in leases:
            entry = self.leased.get(lease.job_id)
            if entry is None or entry.fence != lease.fence:
                lost.append(lease)
            elif lease.job_id in self.to_cancel:
                cancel.append(lease)
            else:
                entry.leased_until = now + self.lease_s[entry.lane]
        return RenewAnswer(lost=tuple(lost), cancel=tuple(cancel))

    def release(self, jobs: tuple[Released, ...]) -> None:
        """Take jobs back; those that are malformed are not handed out again."""
        for released in jobs:
            self.released.append(released)
            entry = self.leased.get(released.job_id)
            if entry is None or entry.fence != released.fence:
                continue
            if released.reason in {ReleaseReason.MALFORMED, ReleaseReason.CANCELLED}:
                self._settle(entry)
            else:
                self._requeue(entry)

    def submit(self, results: tuple[Result, ...]) -> SubmissionAnswer:
        """Settle results: each stands in exactly one list of the answer."""
        accepted: list[Lease] = []
        known: list[Lease] = []
        rejected: list[Rejected] = []
        for result in results:
            if reason := self._refusal(result):
                rejected.append(Rejected(job_id=result.job_id, fence=result.fence, reason=reason))
            elif self._take_result(result):
                accepted.append(result.lease)
            else:
                known.append(result.lease)
        self.rejected += rejected
        return SubmissionAnswer(
            accepted=tuple(accepted), duplicates=tuple(known), rejected=tuple(rejected)
        )

    def waiting(self) -> int:
        """How many jobs are in a queue."""
        return sum(len(queue) for queue in self.queue.values())

    def _queue(self, entry: Entry) -> None:
        self.entries[entry.job_id] = entry
        self.queue[entry.lane].append(entry)

    def _take(self, claim: Claim, on: Lane, free: int) -> list[Entry]:
        queue = self.queue[on]
        kinds = set(claim.check_types)
        able = (e for e in queue if e.job is None or check_type(e.job.spec) in kinds)
        taken = list(itertools.islice(able, free))
        if len(taken) == len(queue):
            queue.clear()
            return taken
        for entry in taken:
            queue.remove(entry)
        return taken

    def _lease(self, entry: Entry, now: float) -> bytes:
        entry.fence += 1
        entry.deliveries += 1
        entry.leased_until = now + self.lease_s[entry.lane]
        self.leased[entry.job_id] = entry
        return entry.handed_out(lease_s=self.lease_s[entry.lane])

    def _requeue(self, entry: Entry) -> None:
        self.leased.pop(entry.job_id, None)
        entry.leased_until = None
        if entry.deliveries >= MAX_DELIVERIES:
            entry.settled = True
            self.missed.append(entry.job_id)
        else:
            self.queue[entry.lane].append(entry)

    def _settle(self, entry: Entry) -> None:
        self.leased.pop(entry.job_id, None)
        entry.leased_until = None
        entry.settled = True

    def _refusal(self, result: Result) -> str | None:
        if result.job_id not in self.entries:
            return "no such job"
        return self.refuse.get(result.job_id)

    def _take_result(self, result: Result) -> bool:
        entry = self.entries[result.job_id]
        if (result.job_id, result.fence) in self.results:
            self.duplicates.append(result)
            return False
        if entry.settled or entry.fence != result.fence:
            self.late.append(result)
            return False
        if entry.job_id not in self.leased and entry in self.queue[entry.lane]:
            self.queue[entry.lane].remove(entry)
        self.results[result.job_id, result.fence] = result
        self._settle(entry)
        return True
