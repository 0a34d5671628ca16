"""Dealing jobs to claims: one transaction for all claims that wait at a location."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType, Lane
from service.jobs.answers import render
from service.jobs.enclosures import enclosures, may_carry
from service.jobs.endings import end_unreadable
from service.jobs.engines import queue_of
from service.jobs.model import LEASE_MS, Claimant, JobPlace, ReadyJob
from service.jobs.opening import are_open, opened_jobs, opened_place, past_proxy
from service.jobs.queue import Deal, JobQueue, ReadyQuery
from service.vault.sealing import Vault

_MOST_AT_ONCE: Final = 1_000
"""Jobs per query, so that other changes get their turn."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """What became of a round of dealing."""

    jobs: Sequence[Sequence[bytes]]
    """Per claimant, in their order; each job as JSON."""
    next_due_ms: int | None
    """When another round makes sense without a new job. None: then only."""
    now_ms: int


@dataclass(frozen=True, slots=True)
class Table:
    """Where a round is dealt, and what opens what jobs carry."""

    location_id: str
    vault: Vault


def deal(
    connection: Connection, table: Table, claimants: Sequence[Claimant], *, now_ms: int
) -> Dealt:
    """Deal what is ready, first come, first served.

    Claimants that run the same check types are served together, by one query per lane.
    """
    queue = queue_of(connection)
    dealer = _Dealer(connection, queue, table, now_ms)
    hands = dealer.dealt_before(claimants)
    alike: dict[frozenset[CheckType], list[int]] = defaultdict(list)
    for place, one in enumerate(claimants):
        if not hands[place]:
            alike[one.check_types].append(place)
    more = False
    for check_types, places in alike.items():
        for lane in Lane:
            more |= dealer.serve(lane, check_types, [(claimants[p], hands[p]) for p in places])
    next_due_ms: int | None = None
    jobs = dealer.rendered(hands)
    if more or any(map(_is_cut, jobs, hands)):
        next_due_ms = now_ms
    elif not all(hands):
        next_due_ms = queue.next_due_ms(connection, table.location_id, now_ms=now_ms)
    return Dealt(jobs, next_due_ms, now_ms)


def _is_cut(jobs: Sequence[bytes], hand: Sequence[ReadyJob]) -> bool:
    """Runs of a hand have ended here, so that there may be others for it."""
    return len(jobs) < len(hand)


@dataclass(frozen=True, slots=True)
class _Dealer:
    connection: Connection
    queue: JobQueue
    table: Table
    now_ms: int

    def dealt_before(self, claimants: Sequence[Claimant]) -> list[list[ReadyJob]]:
        """What the same claims were dealt before answers were lost; those leases begin anew."""
        repeated = [one.claim_id for one in claimants if one.repeated]
        if not repeated:
            return [[] for _ in claimants]
        dealt = self.queue.dealt(self.connection, self.location_id, repeated)
        leases = [(job.id, job.fence + 1) for jobs in dealt.values() for job in jobs]
        self.queue.renew(self.connection, self.location_id, leases, now_ms=self.now_ms)
        return [dealt.get(one.claim_id, []) for one in claimants]

    def serve(
        self,
        lane: Lane,
        check_types: frozenset[CheckType],
        wanting: Iterable[tuple[Claimant, list[ReadyJob]]],
    ) -> bool:
        """Deal one lane's ready jobs into hands. True: the query's limit left some behind."""
        seats = [(who, hand, who.slots.get(lane, 0)) for who, hand in wanting]
        wanted = sum(slots for _, _, slots in seats)
        if not wanted or not check_types:
            return False
        limit = min(wanted, _MOST_AT_ONCE)
        query = ReadyQuery(self.location_id, lane, check_types, limit)
        ready = self.queue.ready(self.connection, query, now_ms=self.now_ms)
        jobs = iter(ready)
        deals: list[Deal] = []
        for who, hand, slots in seats:
            for job in islice(jobs, slots):
                hand.append(job)
                deals.append(self._deal(job, who))
        self.queue.deal(self.connection, deals)
        return len(ready) == limit < wanted

    def rendered(self, hands: Sequence[Sequence[ReadyJob]]) -> list[list[bytes]]:
        """What was dealt, as agents read it."""
        if not any(hands):
            return [[] for _ in hands]
        place, hands = self._opened(self.queue.place(self.connection, self.location_id), hands)
        write = partial(render, place=place, now_ms=self.now_ms)
        laden = [job for hand in hands for job in hand if may_carry(job, place)]
        if not laden:
            return [[write(job) for job in hand] for hand in hands]
        given = enclosures(self.connection, self.table.vault, place, laden)
        return [[write(job, enclosed=given.get(job.id)) for job in hand] for hand in hands]

    @property
    def location_id(self) -> str:
        """Where it is dealt."""
        return self.table.location_id

    def _opened(
        self, place: JobPlace, hands: Sequence[Sequence[ReadyJob]]
    ) -> tuple[JobPlace, Sequence[Sequence[ReadyJob]]]:
        """With what is sealed of them opened; runs of which it does not open end here."""
        if place.sealed_proxy_url is None and all(map(are_open, hands)):
            return place, hands
        vault = self.table.vault
        whole = opened_place(place, self.location_id, vault)
        possible = hands if whole else [past_proxy(hand) for hand in hands]
        found = [opened_jobs(hand, place.account_id, vault) for hand in possible]
        kept = {job.id for hand in found for job in hand}
        lost = [job.id for hand in hands for job in hand if job.id not in kept]
        end_unreadable(self.connection, lost, now_ms=self.now_ms)
        return whole or place, found

    def _deal(self, job: ReadyJob, who: Claimant) -> Deal:
        lease_ms = LEASE_MS[Lane(job.lane)]
        return Deal(job.id, who.agent_id, who.claim_id, self.now_ms, self.now_ms + lease_ms)
