"""Claims that wait until there is a job."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from sqlalchemy import Connection
from starlette.types import Receive

from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.job import JobHead
from contract.wire import decode
from service.clock import Clock, GapWatch
from service.db.engine import (
    Database,
    DatabaseBusyError,
    DatabaseFullError,
    DatabaseUnsureError,
    Line,
    NoticesLost,
)
from service.jobs import store
from service.jobs.claims import AssignedJobs, ClaimScope, assign_jobs
from service.jobs.model import LEASE_MS, Claimant, JobsDue, job_number
from service.jobs.ready_floors import ReadyFloors
from service.jobs.settle import Release, release
from service.jobs.unrelayed_pings import PingReports
from service.locations.model import LocationKeyEnded
from service.vault.encryption import Vault

JobFilter = tuple[frozenset[CheckType], frozenset[Lane]]
"""The check types and lanes for which a claim has free slots."""
Jobs = Sequence[bytes]

MOST_IN_ROUND: Final = 64
"""How many jobs a round assigns at most; together they take 2 to 5 ms."""


@dataclass(slots=True, eq=False)
class PendingClaim:
    """A claim that waits."""

    claimant: Claimant
    answer: "asyncio.Future[Jobs]"
    repeated: bool
    """The claim may have got jobs whose answer was lost; false once a round has looked."""
    in_round: bool = False
    """A transaction that may assign jobs to the claim is under way."""
    leaving: bool = False
    """The claim's waiting time is over."""
    refused: bool = False
    """The claim's key has ended, so it gets no jobs."""
    job_filter: JobFilter = field(init=False)
    """Where one claim gets no job, others with an equal filter get none either."""
    slots: int = field(init=False)
    """How many slots are free in all lanes together."""

    def __post_init__(self) -> None:
        self.slots = sum(self.claimant.slots.values())
        lanes = frozenset(lane for lane, slots in self.claimant.slots.items() if slots)
        self.job_filter = self.claimant.check_types, lanes

    @property
    def may_have_jobs(self) -> bool:
        """Whether jobs may be leased to the claim already, or in the round that is under way."""
        return self.repeated or self.in_round or self.answer.done()

    def begin_round(self) -> Claimant:
        """The claim as the round's transaction reads it."""
        self.in_round = True
        return self.claimant._replace(repeated=self.repeated)

    def end_round(self, jobs: Jobs) -> None:
        """Answer with the jobs; without any, keep waiting while there is time left."""
        self.in_round = self.repeated = False
        if (jobs or self.leaving) and not self.answer.done():
            self.answer.set_result(jobs)

    def start_long_wait(self) -> None:
        """End the short first wait without an answer, so that the watched, long one begins."""
        if not self.answer.done():
            before, self.answer = self.answer, self.answer.get_loop().create_future()
            before.set_result(())

    def leave(self) -> Awaitable[Jobs]:
        """Stop waiting; the answer comes at once unless a round is under way."""
        self.leaving = True
        if not self.in_round and not self.answer.done():
            self.answer.set_result(())
        return self.answer


@dataclass(slots=True, eq=False)
class LocationWaiters:
    """The claims that wait at one location, and what is known about its queue."""

    waiters: dict[str, PendingClaim] = field(default_factory=dict)
    """By claim, in the order of arrival."""
    empty_for: set[JobFilter | tuple[JobFilter, str]] = field(default_factory=set)
    """Filters for which nothing was there since the last notice; with an agent, nothing for it."""
    reports: PingReports = field(default_factory=PingReports)
    floors: ReadyFloors = field(default_factory=ReadyFloors)
    is_assigning: bool = False
    _timer: asyncio.TimerHandle | None = None
    """Runs the next round by itself when a job turns due. None: no job waits for its time."""

    def add(self, waiter: PendingClaim) -> PendingClaim:
        """Add a claim. An earlier waiter of the same claim has lost its connection and leaves."""
        if before := self.waiters.pop(waiter.claimant.claim_id, None):
            waiter.repeated |= before.may_have_jobs
            before.leave()
        self.waiters[waiter.claimant.claim_id] = waiter
        return waiter

    def remove(self, waiter: PendingClaim) -> None:
        """Remove a claim unless a later waiter of it has taken its place."""
        if self.is_current(waiter):
            del self.waiters[waiter.claimant.claim_id]

    def is_current(self, waiter: PendingClaim) -> bool:
        """Whether this is the newest waiter of its claim."""
        return self.waiters.get(waiter.claimant.claim_id) is waiter

    def may_get_jobs(self, waiter: PendingClaim) -> bool:
        """Whether the next round may have jobs for the claim."""
        if waiter.answer.done():
            return False
        if waiter.repeated:
            return True
        mine = waiter.job_filter, waiter.claimant.agent_id
        return waiter.job_filter not in self.empty_for and mine not in self.empty_for

    def next_in_line(self) -> list[PendingClaim]:
        """The first claims that may get jobs, with at most `MOST_IN_ROUND` slots together.

        That is enough: when one of them gets nothing, claims behind it with an equal
        filter get nothing either, and thousands of idle claims cost a round nothing.
        """
        first: list[PendingClaim] = []
        left = MOST_IN_ROUND
        for waiter in filter(self.may_get_jobs, self.waiters.values()):
            left -= max(1, waiter.slots)
            if first and left < 0:
                break
            first.append(waiter)
        return first

    def end_round(
        self,
        waiters: Sequence[PendingClaim],
        jobs_by_waiter: Sequence[Jobs],
        *,
        has_held_back: bool = False,
    ) -> None:
        """End a round. If every claim with a filter got jobs, there may be more for it.

        `has_held_back`: others may get jobs that were there and not for these agents.
        """
        served: set[JobFilter] = set()
        starved: set[JobFilter] = set()
        starved_agents: set[tuple[JobFilter, str]] = set()
        for waiter, jobs in zip(waiters, jobs_by_waiter, strict=True):
            (served if jobs else starved).add(waiter.job_filter)
            if not jobs:
                starved_agents.add((waiter.job_filter, waiter.claimant.agent_id))
            waiter.end_round(jobs)
        self.empty_for -= served - starved
        if has_held_back:
            self.empty_for -= starved
            self.empty_for |= starved_agents

    def postpone(self, waiters: Iterable[PendingClaim], *, may_have_jobs: bool) -> None:
        """End a round that the busy database prevented; the next one looks again.

        `may_have_jobs`: nobody knows whether the round was stored, so the next one finds out.
        """
        for waiter in waiters:
            repeated = waiter.repeated or may_have_jobs
            waiter.end_round(())
            waiter.repeated = repeated
            self.empty_for.discard(waiter.job_filter)

    def fail(self, problem: Exception) -> None:
        """End a round that raised an error; every claim raises it."""
        for waiter in self.waiters.values():
            waiter.in_round = False
            if not waiter.answer.done():
                waiter.answer.set_exception(problem)

    def ask_for_reports(self, needed_ms: int, now_ms: int) -> None:
        """Answer, without jobs, the claims of agents that may hold pings from before `needed_ms`.

        They claim again at once, and say then what they hold.
        """
        relayed = self.reports.relayed_until_ms(now_ms)
        for waiter in self.waiters.values():
            # A repeated claim may have got jobs, which only a round finds out.
            if not waiter.repeated and relayed.get(waiter.claimant.agent_id, 0) < needed_ms:
                waiter.leave()

    def set_timer(self, timer: asyncio.TimerHandle) -> None:
        """Set the timer of the next round, unless an earlier one is to come."""
        before, now = self._timer, asyncio.get_running_loop().time()
        if before is not None and now < before.when() <= timer.when():
            timer.cancel()
            return
        if before is not None:
            before.cancel()
        self._timer = timer

    def refuse_all(self) -> None:
        """Answer every claim without jobs, because a key of the location has ended."""
        for waiter in self.waiters.values():
            waiter.refused = True
            waiter.leave()

    def close(self) -> None:
        """Answer every claim without jobs, because the service stops."""
        if self._timer:
            self._timer.cancel()
        for waiter in self.waiters.values():
            waiter.leave()


log = structlog.get_logger()

_BUSY_PAUSE_S: Final = 0.5
_AT_ONCE_S: Final = 0.05
"""A claim that is answered within this time never has its connection watched."""


class Caller:
    """The client that sent a claim, once the claim's body has been read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    def is_gone(self) -> bool:
        """Whether the client has disconnected by now.

        One step of the wait for it, without a timer and without a turn of the event loop: either
        would cost a sixth of the CPU time of a claim and its result (`sqlite_b1`).
        """
        step = self.wait_for_disconnect().__await__()
        try:
            next(step)
        except StopIteration:
            return True
        finally:
            step.close()
        return False

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class ClaimQueue:
    """Assigns jobs to waiting claims in rounds: one transaction per location at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        vault: Vault,
        watch: GapWatch,
        leased_before: Iterable[tuple[str, str]],
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._locations: dict[str, LocationWaiters] = {}
        self._rounds: set[asyncio.Task[None]] = set()
        self._assigned_until: dict[tuple[str, str], float] = {}
        """When the leases of each (location, claim) have run out, by the loop's clock."""
        self._leased_before = set(leased_before)
        """(location, claim) of leases from before this process, until the claim is repeated."""
        self._closed = False
        database.listen(JobsDue, self._on_jobs_due)
        database.listen(LocationKeyEnded, self._on_key_ended)
        database.listen(NoticesLost, self._on_notices_lost)

    @property
    def is_closed(self) -> bool:
        """Whether claims are answered at once, without jobs."""
        return self._closed

    async def claim(
        self, location_id: str, claimant: Claimant, *, wait_s: float, caller: Caller | None = None
    ) -> Sequence[bytes]:
        """Jobs as JSON, as soon as there are any; none when time is over or the queue closes.

        Jobs assigned to a client that has disconnected, or whose key has ended meanwhile, go back
        into the queue at once. Without a `caller` the client counts as connected.
        """
        if self._closed:
            return ()
        location = self._locations.setdefault(location_id, LocationWaiters())
        location.reports.note(claimant.agent_id, claimant.oldest_ping_s)
        waiter = self._enqueue(location_id, location, claimant)
        try:
            await self._wait(waiter, wait_s, caller)
            # A round that is under way may have assigned jobs to this claim: wait for its end.
            jobs = await waiter.leave()
            if not jobs or not location.is_current(waiter) or _reaches_caller(waiter, caller):
                return jobs
            await self._release(location_id, jobs)
            return ()
        finally:
            location.remove(waiter)

    async def _wait(self, waiter: PendingClaim, wait_s: float, caller: Caller | None) -> None:
        """Return once the claim is answered, its time is over, or its client has disconnected."""
        # One timer and no task: most claims are answered by the round that begins with them.
        timer = self._loop.call_later(min(wait_s, _AT_ONCE_S), waiter.start_long_wait)
        try:
            await waiter.answer
        finally:
            timer.cancel()
        left_s = wait_s - _AT_ONCE_S
        if left_s <= 0 or waiter.answer.done():
            return
        ends: set[asyncio.Future[Any]] = {waiter.answer}
        if caller is not None:
            ends.add(asyncio.create_task(caller.wait_for_disconnect(), name="claim.connection"))
        try:
            await asyncio.wait(ends, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for watch in ends - {waiter.answer}:
                watch.cancel()

    def _enqueue(
        self, location_id: str, location: LocationWaiters, claimant: Claimant
    ) -> PendingClaim:
        repeated = self._may_be_repeated((location_id, claimant.claim_id))
        waiter = location.add(PendingClaim(claimant, self._loop.create_future(), repeated))
        if location.may_get_jobs(waiter):
            self._start_rounds(location_id, location)
        return waiter

    async def _release(self, location_id: str, jobs: Sequence[bytes]) -> None:
        """Requeue jobs that reached nobody, before any later round: changes keep their order."""
        heads = [decode(job, JobHead) for job in jobs]
        given = [
            Release(job_number(head.job_id), head.fence, ReleaseReason.DRAINING) for head in heads
        ]

        def change(connection: Connection) -> None:
            now_ms = self._clock.now_ms(connection)
            release(connection, given, location_id=location_id, now_ms=now_ms)

        log.info("claims.taken_back", location_id=location_id, jobs=len(jobs))
        await self._database.write(change)

    async def close(self) -> None:
        """Answer every waiting claim without jobs; rounds under way are finished."""
        self._closed = True
        for location in self._locations.values():
            location.close()
        if self._rounds:
            await asyncio.wait(self._rounds)

    def waiting_agents(self) -> set[tuple[str, str]]:
        """The agents that wait now, as (location, agent)."""
        return {
            (location_id, waiter.claimant.agent_id)
            for location_id, location in self._locations.items()
            for waiter in location.waiters.values()
        }

    def _may_be_repeated(self, claim: tuple[str, str]) -> bool:
        self._forget_old_claims(self._loop.time())
        return claim in self._assigned_until or claim in self._leased_before

    def _forget_old_claims(self, now: float) -> None:
        while self._assigned_until:
            oldest = next(iter(self._assigned_until))
            if self._assigned_until[oldest] > now:
                return
            del self._assigned_until[oldest]

    def _on_jobs_due(self, notice: JobsDue) -> None:
        if location := self._locations.get(notice.location_id):
            location.empty_for.clear()
            location.floors.announce(notice.due_ms)
            self._start_rounds(notice.location_id, location)

    def _on_notices_lost(self, _: NoticesLost) -> None:
        for location_id, location in self._locations.items():
            location.floors.announce(0)
            if location.waiters:
                location.empty_for.clear()
                self._start_rounds(location_id, location)

    def _on_key_ended(self, notice: LocationKeyEnded) -> None:
        if location := self._locations.get(notice.location_id):
            location.refuse_all()

    def _start_rounds(self, location_id: str, location: LocationWaiters) -> None:
        if location.is_assigning or self._closed:
            return
        location.is_assigning = True
        task = self._loop.create_task(
            self._run_rounds(location_id, location), name=f"assign:{location_id}"
        )
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _run_rounds(self, location_id: str, location: LocationWaiters) -> None:
        try:
            while (waiters := location.next_in_line()) and not self._closed:
                await self._round(location_id, location, waiters)
        except Exception as problem:
            # A round's own task: the claims must raise our fault, or they wait until they time out.
            log.exception("claims.round_failed", location_id=location_id)
            location.fail(problem)
        finally:
            location.is_assigning = False

    async def _round(
        self, location_id: str, location: LocationWaiters, waiters: Sequence[PendingClaim]
    ) -> None:
        claimants = [waiter.begin_round() for waiter in waiters]
        # Marked before the look, so that a notice in between takes the mark away again.
        location.empty_for |= {waiter.job_filter for waiter in waiters}

        def change(connection: Connection) -> AssignedJobs:
            now_ms = self._clock.now_ms(connection)
            gap = self._watch.last_gap(now_ms)
            scope = ClaimScope(location_id, self._vault, location.reports, location.floors, gap)
            return assign_jobs(connection, scope, claimants, now_ms=now_ms)

        self._remember(location_id, waiters)
        try:
            line = Line.CLAIMS if _is_brief(waiters, claimants) else None
            result = await self._database.write(change, brief=line)
        except DatabaseBusyError as problem:
            if not isinstance(problem, DatabaseFullError):
                log.warning("claims.postponed", claims=len(waiters), reason=str(problem))
            await asyncio.sleep(_BUSY_PAUSE_S)
            is_unsure = isinstance(problem, DatabaseUnsureError)
            location.postpone(waiters, may_have_jobs=is_unsure)
            return
        for waiter, jobs in zip(waiters, result.jobs, strict=True):
            if not jobs:
                self._assigned_until.pop((location_id, waiter.claimant.claim_id), None)
        location.end_round(waiters, result.jobs, has_held_back=result.has_held_back)
        if result.pings_needed_ms:
            location.ask_for_reports(result.pings_needed_ms, result.now_ms)
        self._plan_round(location_id, location, result)

    def _remember(self, location_id: str, waiters: Iterable[PendingClaim]) -> None:
        now = self._loop.time()
        for waiter in waiters:
            lane = Lane.MAIN if waiter.claimant.slots.get(Lane.MAIN) else Lane.UPTIME
            claim = location_id, waiter.claimant.claim_id
            self._assigned_until[claim] = now + LEASE_MS[lane] / 1000
            self._leased_before.discard(claim)

    def _plan_round(
        self, location_id: str, location: LocationWaiters, result: AssignedJobs
    ) -> None:
        """Plan a round for when the next job turns due, such as a retry that waits for its time."""
        if result.next_due_ms is None:
            return
        delay_s = max(0, result.next_due_ms - result.now_ms) / 1000
        location.set_timer(
            self._loop.call_later(
                delay_s, self._on_jobs_due, JobsDue(location_id, result.next_due_ms)
            )
        )


async def open_claim_queue(
    database: Database, clock: Clock, vault: Vault, watch: GapWatch
) -> ClaimQueue:
    """Open the queue with the claims to which jobs were leased before this process began."""
    return ClaimQueue(database, clock, vault, watch, await database.read(store.find_claims))


def _reaches_caller(waiter: PendingClaim, caller: Caller | None) -> bool:
    """Whether the claim's key is valid and its client still connected."""
    return not waiter.refused and (caller is None or not caller.is_gone())


def _is_brief(waiters: Sequence[PendingClaim], claimants: Sequence[Claimant]) -> bool:
    """Whether a round is quick: a repeated claim searches all leases, which may be many."""
    if any(one.repeated for one in claimants):
        return False
    return sum(one.slots for one in waiters) <= MOST_IN_ROUND
