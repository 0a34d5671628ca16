"""Where the claims of one location wait; no SQL, no tasks."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from contract.checks import CheckType, Lane
from service.jobs.model import Claimant

Wants = tuple[frozenset[CheckType], frozenset[Lane]]
Jobs = Sequence[bytes]

MOST_IN_ROUND: Final = 64
"""Jobs, which take 2 to 5 ms together."""


@dataclass(slots=True, eq=False)
class Waiter:
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
class Counter:
    """The claims that wait at one location, and what is known about its queue."""

    waiters: dict[str, Waiter] = field(default_factory=dict)
    """By claim, in the order of arrival."""
    empty_for: set[Wants] = field(default_factory=set)
    """Wants for which nothing was there since the last notice."""
    is_dealing: bool = False
    _timer: asyncio.TimerHandle | None = None
    """None: no job was seen that waits for its time."""

    def arrive(self, waiter: Waiter) -> Waiter:
        """Stand in line. A waiter of the same claim has lost its connection: it goes."""
        if before := self.waiters.pop(waiter.claimant.claim_id, None):
            waiter.repeated |= before.may_be_dealt
            before.leave()
        self.waiters[waiter.claimant.claim_id] = waiter
        return waiter

    def depart(self, waiter: Waiter) -> None:
        """Leave the line."""
        if self.stands(waiter):
            del self.waiters[waiter.claimant.claim_id]

    def stands(self, waiter: Waiter) -> bool:
        """Whether no later waiter of the same claim has taken its place."""
        return self.waiters.get(waiter.claimant.claim_id) is waiter

    def is_hungry(self, waiter: Waiter) -> bool:
        """Whether there may be something for a claim."""
        if waiter.answer.done():
            return False
        return waiter.repeated or waiter.wants not in self.empty_for

    def hungry(self) -> list[Waiter]:
        """The first claims in line for which there may be something; few jobs' worth of them.

        That is enough: when one of them gets nothing, those behind it with equal wants starve too,
        and thousands of idle claims cost a round nothing.
        """
        first: list[Waiter] = []
        left = MOST_IN_ROUND
        for waiter in filter(self.is_hungry, self.waiters.values()):
            left -= max(1, waiter.slots)
            if first and left < 0:
                break
            first.append(waiter)
        return first

    def hand_over(self, waiters: Iterable[Waiter], hands: Iterable[Jobs]) -> None:
        """End a round. Where everyone of equal wants got something, there may be more."""
        served: set[Wants] = set()
        starved: set[Wants] = set()
        for waiter, jobs in zip(waiters, hands, strict=True):
            (served if jobs else starved).add(waiter.wants)
            waiter.end_round(jobs)
        self.empty_for -= served - starved

    def postpone(self, waiters: Iterable[Waiter]) -> None:
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
