"""Long polls: claims that wait for work cost no SQL until a job is due at their location."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import structlog
from sqlalchemy import Connection

from contract.agent_api import ReleaseReason
from contract.checks import Lane
from contract.job import JobHead
from contract.wire import decode
from service.clock import Clock
from service.db.engine import Database, DatabaseBusyError
from service.jobs import store
from service.jobs.claims import Dealt, Table, deal
from service.jobs.counter import MOST_IN_ROUND, Counter, Waiter
from service.jobs.endings import GivenBack, release
from service.jobs.model import LEASE_MS, Claimant, JobsDue, job_number
from service.locations.model import LocationKeyEnded
from service.vault.sealing import Vault

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


class ClaimDesk:
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
        self._counters: dict[str, Counter] = {}
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
        counter = self._counters.setdefault(location_id, Counter())
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

    async def _served(self, waiter: Waiter, wait_s: float, caller: Caller | None) -> None:
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

    def _arrive(self, location_id: str, counter: Counter, claimant: Claimant) -> Waiter:
        repeated = self._may_be_repeated((location_id, claimant.claim_id))
        waiter = counter.arrive(Waiter(claimant, self._loop.create_future(), repeated))
        if counter.is_hungry(waiter):
            self._deal_soon(location_id, counter)
        return waiter

    async def _take_back(self, location_id: str, jobs: Sequence[bytes]) -> None:
        """Before any later round: changes are made in the order in which they are asked for."""
        heads = [decode(job, JobHead) for job in jobs]
        given = [
            GivenBack(job_number(head.job_id), head.fence, ReleaseReason.DRAINING) for head in heads
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

    def _deal_soon(self, location_id: str, counter: Counter) -> None:
        if counter.is_dealing or self._closed:
            return
        counter.is_dealing = True
        task = self._loop.create_task(self._deal(location_id, counter), name=f"deal:{location_id}")
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _deal(self, location_id: str, counter: Counter) -> None:
        try:
            while (waiters := counter.hungry()) and not self._closed:
                await self._round(location_id, counter, waiters)
        except Exception as problem:
            # A round's own task: a fault of ours must reach the claims, or they wait for ever.
            log.exception("claims.round_failed", location_id=location_id)
            counter.fail(problem)
        finally:
            counter.is_dealing = False

    async def _round(self, location_id: str, counter: Counter, waiters: Sequence[Waiter]) -> None:
        claimants = [waiter.begin_round() for waiter in waiters]
        # Marked before the look, so that a notice in between takes the mark away again.
        counter.empty_for |= {waiter.wants for waiter in waiters}

        def change(connection: Connection) -> Dealt:
            now_ms = self._clock.now_ms(connection)
            table = Table(location_id, self._vault)
            return deal(connection, table, claimants, now_ms=now_ms)

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

    def _remember(self, location_id: str, waiters: Iterable[Waiter]) -> None:
        now = self._loop.time()
        for waiter in waiters:
            lane = Lane.MAIN if waiter.claimant.slots.get(Lane.MAIN) else Lane.UPTIME
            claim = location_id, waiter.claimant.claim_id
            self._dealt_until[claim] = now + LEASE_MS[lane] / 1000
            self._leased_before.discard(claim)

    def _plan_round(self, location_id: str, counter: Counter, dealt: Dealt) -> None:
        """Look again when the next job turns due by itself: a retry that waits for its time."""
        if dealt.next_due_ms is None:
            return
        delay_s = max(0, dealt.next_due_ms - dealt.now_ms) / 1000
        counter.set_timer(
            self._loop.call_later(
                delay_s, self._on_jobs_due, JobsDue(location_id, dealt.next_due_ms)
            )
        )


async def open_desk(database: Database, clock: Clock, vault: Vault) -> ClaimDesk:
    """A desk that knows what was dealt before this process began, before the first claim comes."""
    return ClaimDesk(database, clock, vault, await database.read(store.claims))


def _is_read(waiter: Waiter, caller: Caller | None) -> bool:
    """Whether there is somebody whom an answer still reaches."""
    return not waiter.refused and (caller is None or not caller.is_gone())


def _is_brief(waiters: Sequence[Waiter], claimants: Sequence[Claimant]) -> bool:
    """Whoever repeats a claim has all leases looked through, which is long where there are many."""
    if any(one.repeated for one in claimants):
        return False
    return sum(one.slots for one in waiters) <= MOST_IN_ROUND
