"""Claims that wait until there is a job."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import structlog
from sqlalchemy import Connection

from contract.agent_api import ReleaseReason
from contract.checks import CheckType, Lane
from contract.job import JobHead
from contract.wire import decode
from service.clock import Clock
from service.db.engine import Database, DatabaseBusyError
from service.jobs import store
from service.jobs.claims import AssignedJobs, ClaimScope, assign_jobs
from service.jobs.model import LEASE_MS, Claimant, JobsDue, job_number
from service.jobs.settle import Release, release
from service.locations.model import LocationKeyEnded
from service.vault.encryption import Vault

Wants = tuple[frozenset[CheckType], frozenset[Lane]]
Jobs = Sequence[bytes]

MOST_IN_ROUND: Final = 64
"""Jobs, which take 2 to 5 ms together."""


@dataclass(slots=True, eq=False)
class PendingClaim:
    """A claim that waits."""

    claimant: Claimant
    answer: "asyncio.Future[Jobs]"
    repeated: bool
    """It may have been dealt jobs before whose answer was lost; until a round has looked."""
    in_round: bool = False
    """A transaction that may deal it jobs is under way."""
    leaving: bool = False
    """Its time is over."""
    refused: bool = False
    """Its key has ended: it gets nothing any more."""
    wants: Wants = field(init=False)
    """Claims with equal wants starve alike."""
    slots: int = field(init=False)
    """Of all lanes."""

    def __post_init__(self) -> None:
        self.slots = sum(self.claimant.slots.values())
        lanes = frozenset(lane for lane, slots in self.claimant.slots.items() if slots)
        self.wants = self.claimant.check_types, lanes

    @property
    def may_be_dealt(self) -> bool:
        """Whether jobs may be leased to it already, or be about to."""
        return self.repeated or self.in_round or self.answer.done()

    def begin_round(self) -> Claimant:
        """The claim as the round's transaction reads it."""
        self.in_round = True
        return self.claimant._replace(repeated=self.repeated)

    def end_round(self, jobs: Jobs) -> None:
        """Go with what was dealt; stay when it is nothing and there is time left."""
        self.in_round = self.repeated = False
        if (jobs or self.leaving) and not self.answer.done():
            self.answer.set_result(jobs)

    def settle_in(self) -> None:
        """The first moments are over: end the wait for an answer, and begin another one."""
        if not self.answer.done():
            before, self.answer = self.answer, self.answer.get_loop().create_future()
            before.set_result(())

    def leave(self) -> Awaitable[Jobs]:
        """The answer: at once, unless a round is under way."""
        self.leaving = True
        if not self.in_round and not self.answer.done():
            self.answer.set_result(())
        return self.answer


@dataclass(slots=True, eq=False)
class LocationWaiters:
    """The claims that wait at one location, and what is known about its queue."""

    waiters: dict[str, PendingClaim] = field(default_factory=dict)
    """By claim, in the order of arrival."""
    empty_for: set[Wants] = field(default_factory=set)
    """Wants for which nothing was there since the last notice."""
    is_dealing: bool = False
    _timer: asyncio.TimerHandle | None = None
    """None: no job was seen that waits for its time."""

    def arrive(self, waiter: PendingClaim) -> PendingClaim:
        """Stand in line. A waiter of the same claim has lost its connection: it goes."""
        if before := self.waiters.pop(waiter.claimant.claim_id, None):
            waiter.repeated |= before.may_be_dealt
            before.leave()
        self.waiters[waiter.claimant.claim_id] = waiter
        return waiter

    def depart(self, waiter: PendingClaim) -> None:
        """Leave the line."""
        if self.stands(waiter):
            del self.waiters[waiter.claimant.claim_id]

    def stands(self, waiter: PendingClaim) -> bool:
        """Whether no later waiter of the same claim has taken its place."""
        return self.waiters.get(waiter.claimant.claim_id) is waiter

    def is_hungry(self, waiter: PendingClaim) -> bool:
        """Whether there may be something for a claim."""
        if waiter.answer.done():
            return False
        return waiter.repeated or waiter.wants not in self.empty_for

    def hungry(self) -> list[PendingClaim]:
        """The first claims in line for which there may be something; few jobs' worth of them.

        That is enough: when one of them gets nothing, those behind it with equal wants starve too,
        and thousands of idle claims cost a round nothing.
        """
        first: list[PendingClaim] = []
        left = MOST_IN_ROUND
        for waiter in filter(self.is_hungry, self.waiters.values()):
            left -= max(1, waiter.slots)
            if first and left < 0:
                break
            first.append(waiter)
        return first

    def hand_over(self, waiters: Iterable[PendingClaim], hands: Iterable[Jobs]) -> None:
        """End a round. Where everyone of equal wants got something, there may be more."""
        served: set[Wants] = set()
        starved: set[Wants] = set()
        for waiter, jobs in zip(waiters, hands, strict=True):
            (served if jobs else starved).add(waiter.wants)
            waiter.end_round(jobs)
        self.empty_for -= served - starved

    def postpone(self, waiters: Iterable[PendingClaim]) -> None:
        """End a round that could not take place."""
        for waiter in waiters:
            repeated = waiter.repeated
            waiter.end_round(())
            waiter.repeated = repeated
            self.empty_for.discard(waiter.wants)

    def fail(self, problem: Exception) -> None:
        """End a round by a fault of ours."""
        for waiter in self.waiters.values():
            waiter.in_round = False
            if not waiter.answer.done():
                waiter.answer.set_exception(problem)

    def set_timer(self, timer: asyncio.TimerHandle) -> None:
        """Replace the timer of the next job that turns due by itself."""
        if self._timer:
            self._timer.cancel()
        self._timer = timer

    def refuse(self) -> None:
        """Send everyone home to show their keys again."""
        for waiter in self.waiters.values():
            waiter.refused = True
            waiter.leave()

    def close(self) -> None:
        """Send everyone home."""
        if self._timer:
            self._timer.cancel()
        for waiter in self.waiters.values():
            waiter.leave()


log = structlog.get_logger()

_BUSY_PAUSE_S: Final = 0.5
_AT_ONCE_S: Final = 0.05
"""A claim that is answered by then does not wait, and nobody watches its connection."""


class Caller(Protocol):
    """Whoever sent a claim."""

    def is_gone(self) -> bool:
        """Whether they have hung up, as far as is known by now."""

    async def gone(self) -> None:
        """Returns when they have hung up."""


class ClaimQueue:
    """Deals jobs to the claims that wait, in rounds: one transaction per location at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        vault: Vault,
        leased_before: Iterable[tuple[str, str]],
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._loop = asyncio.get_running_loop()
        self._counters: dict[str, LocationWaiters] = {}
        self._rounds: set[asyncio.Task[None]] = set()
        self._dealt_until: dict[tuple[str, str], float] = {}
        """By location and claim."""
        self._leased_before = set(leased_before)
        """The like, of what was dealt before this process began, until they are asked for."""
        self._closed = False
        database.listen(JobsDue, self._on_jobs_due)
        database.listen(LocationKeyEnded, self._on_key_ended)

    @property
    def is_closed(self) -> bool:
        """Whether claims are sent home at once."""
        return self._closed

    async def claim(
        self, location_id: str, claimant: Claimant, *, wait_s: float, caller: Caller | None = None
    ) -> Sequence[bytes]:
        """Jobs as JSON, as soon as there are some; none when time is over or the desk closes.

        No caller: nobody can hang up. What a round dealt to somebody who is gone, or whose key has
        ended meanwhile, goes back into the queue at once.
        """
        if self._closed:
            return ()
        counter = self._counters.setdefault(location_id, LocationWaiters())
        waiter = self._arrive(location_id, counter, claimant)
        try:
            await self._served(waiter, wait_s, caller)
            # A round that is under way may have dealt to this claim already: see it through.
            jobs = await waiter.leave()
            if not jobs or not counter.stands(waiter) or _is_read(waiter, caller):
                return jobs
            await self._take_back(location_id, jobs)
            return ()
        finally:
            counter.depart(waiter)

    async def _served(self, waiter: PendingClaim, wait_s: float, caller: Caller | None) -> None:
        """Returns once the claim is answered, its time is over, or its caller is gone."""
        # One timer and no task: most claims are answered by the round that begins with them.
        timer = self._loop.call_later(min(wait_s, _AT_ONCE_S), waiter.settle_in)
        try:
            await waiter.answer
        finally:
            timer.cancel()
        left_s = wait_s - _AT_ONCE_S
        if left_s <= 0 or waiter.answer.done():
            return
        ends: set[asyncio.Future[Any]] = {waiter.answer}
        if caller is not None:
            ends.add(asyncio.create_task(caller.gone(), name="claim.connection"))
        try:
            await asyncio.wait(ends, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for watch in ends - {waiter.answer}:
                watch.cancel()

    def _arrive(
        self, location_id: str, counter: LocationWaiters, claimant: Claimant
    ) -> PendingClaim:
        repeated = self._may_be_repeated((location_id, claimant.claim_id))
        waiter = counter.arrive(PendingClaim(claimant, self._loop.create_future(), repeated))
        if counter.is_hungry(waiter):
            self._deal_soon(location_id, counter)
        return waiter

    async def _take_back(self, location_id: str, jobs: Sequence[bytes]) -> None:
        """Before any later round: changes are made in the order in which they are asked for."""
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
        """Send every waiting claim home without jobs; rounds under way are finished."""
        self._closed = True
        for counter in self._counters.values():
            counter.close()
        if self._rounds:
            await asyncio.wait(self._rounds)

    def waiting_agents(self) -> set[tuple[str, str]]:
        """Who waits now: (location, agent)."""
        return {
            (location_id, waiter.claimant.agent_id)
            for location_id, counter in self._counters.items()
            for waiter in counter.waiters.values()
        }

    def _may_be_repeated(self, claim: tuple[str, str]) -> bool:
        self._forget_old_claims(self._loop.time())
        return claim in self._dealt_until or claim in self._leased_before

    def _forget_old_claims(self, now: float) -> None:
        while self._dealt_until:
            oldest = next(iter(self._dealt_until))
            if self._dealt_until[oldest] > now:
                return
            del self._dealt_until[oldest]

    def _on_jobs_due(self, notice: JobsDue) -> None:
        if counter := self._counters.get(notice.location_id):
            counter.empty_for.clear()
            self._deal_soon(notice.location_id, counter)

    def _on_key_ended(self, notice: LocationKeyEnded) -> None:
        if counter := self._counters.get(notice.location_id):
            counter.refuse()

    def _deal_soon(self, location_id: str, counter: LocationWaiters) -> None:
        if counter.is_dealing or self._closed:
            return
        counter.is_dealing = True
        task = self._loop.create_task(self._deal(location_id, counter), name=f"deal:{location_id}")
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _deal(self, location_id: str, counter: LocationWaiters) -> None:
        try:
            while (waiters := counter.hungry()) and not self._closed:
                await self._round(location_id, counter, waiters)
        except Exception as problem:
            # A round's own task: a fault of ours must reach the claims, or they wait for ever.
            log.exception("claims.round_failed", location_id=location_id)
            counter.fail(problem)
        finally:
            counter.is_dealing = False

    async def _round(
        self, location_id: str, counter: LocationWaiters, waiters: Sequence[PendingClaim]
    ) -> None:
        claimants = [waiter.begin_round() for waiter in waiters]
        # Marked before the look, so that a notice in between takes the mark away again.
        counter.empty_for |= {waiter.wants for waiter in waiters}

        def change(connection: Connection) -> AssignedJobs:
            now_ms = self._clock.now_ms(connection)
            table = ClaimScope(location_id, self._vault)
            return assign_jobs(connection, table, claimants, now_ms=now_ms)

        self._remember(location_id, waiters)
        try:
            dealt = await self._database.write(change, brief=_is_brief(waiters, claimants))
        except DatabaseBusyError as problem:
            log.warning("claims.postponed", claims=len(waiters), reason=str(problem))
            await asyncio.sleep(_BUSY_PAUSE_S)
            counter.postpone(waiters)
            return
        for waiter, jobs in zip(waiters, dealt.jobs, strict=True):
            if not jobs:
                self._dealt_until.pop((location_id, waiter.claimant.claim_id), None)
        counter.hand_over(waiters, dealt.jobs)
        self._plan_round(location_id, counter, dealt)

    def _remember(self, location_id: str, waiters: Iterable[PendingClaim]) -> None:
        now = self._loop.time()
        for waiter in waiters:
            lane = Lane.MAIN if waiter.claimant.slots.get(Lane.MAIN) else Lane.UPTIME
            claim = location_id, waiter.claimant.claim_id
            self._dealt_until[claim] = now + LEASE_MS[lane] / 1000
            self._leased_before.discard(claim)

    def _plan_round(self, location_id: str, counter: LocationWaiters, dealt: AssignedJobs) -> None:
        """Look again when the next job turns due by itself: a retry that waits for its time."""
        if dealt.next_due_ms is None:
            return
        delay_s = max(0, dealt.next_due_ms - dealt.now_ms) / 1000
        counter.set_timer(
            self._loop.call_later(
                delay_s, self._on_jobs_due, JobsDue(location_id, dealt.next_due_ms)
            )
        )


async def open_desk(database: Database, clock: Clock, vault: Vault) -> ClaimQueue:
    """A desk that knows what was dealt before this process began, before the first claim comes."""
    return ClaimQueue(database, clock, vault, await database.read(store.claims))


def _is_read(waiter: PendingClaim, caller: Caller | None) -> bool:
    """Whether there is somebody whom an answer still reaches."""
    return not waiter.refused and (caller is None or not caller.is_gone())


def _is_brief(waiters: Sequence[PendingClaim], claimants: Sequence[Claimant]) -> bool:
    """Whoever repeats a claim has all leases looked through, which is long where there are many."""
    if any(one.repeated for one in claimants):
        return False
    return sum(one.slots for one in waiters) <= MOST_IN_ROUND
