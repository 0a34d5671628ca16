"""Keeps the leases of running jobs, and stops the runs whose lease is gone."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import ServiceError
from agent.api_client.retry import asked_wait_s
from agent.jobs.running import Run
from agent.telemetry.metrics import Metrics
from contract.agent_api import RenewAnswer
from contract.job import Job, Lease

_RETRIES_PER_THIRD: Final = 4
"""A third of the lease, divided by this, is the wait before a failed renewal is tried again."""
_LONGEST_SLEEP_S: Final = 600.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Held:
    run: Run | None
    """None: it is over, and its result waits for its files."""
    lease_s: float
    good_at: float
    """When the lease was last known to be good, monotonic."""

    def renew_at(self) -> float:
        return self.good_at + self.lease_s / 3

    def gone_at(self) -> float:
        """Only the service's word ends the lease of a run that is over."""
        return math.inf if self.run is None else self.good_at + self.lease_s


class Leases:
    """All leases of this agent, renewed in one call at each third of their length."""

    def __init__(
        self,
        client: ServiceClient,
        *,
        metrics: Metrics,
        undelivered: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`undelivered`: how many results of runs that hold no lease any more are still here."""
        self._client = client
        self._metrics = metrics
        self._undelivered = undelivered
        self._clock = clock
        self._held: dict[Lease, _Held] = {}
        self._retry_at = 0.0
        """Not before this after a failure, unless an outage ends."""
        self._asked_until = 0.0
        """Not before this, because the service asked for it."""
        self._wake_at = math.inf
        """When the next renewal is planned."""
        self._sooner = asyncio.Event()
        """Something has to be renewed before that."""
        client.outage.on_end(self._retry_now)

    def hold(self, run: Run, *, claimed_at: float) -> None:
        """Renew this run's lease until it is dropped."""
        self._hold(run.job.lease, _Held(run, run.job.lease_s, claimed_at))

    def drop(self, job: Job) -> None:
        """The job does not run any more."""
        if (held := self._held.get(job.lease)) is not None and held.run is not None:
            del self._held[job.lease]

    def hold_for_upload(self, lease: Lease, *, lease_s: float) -> None:
        """The run is over, by whichever agent: renew its lease until it is let go."""
        if (held := self._held.get(lease)) is not None:
            held.run = None
        else:  # an earlier process held it, nobody knows since when
            self._hold(lease, _Held(None, lease_s, self._clock() - lease_s / 3))

    def drop_uploaded(self, lease: Lease) -> None:
        """The result is on its way."""
        self._held.pop(lease, None)

    def _hold(self, lease: Lease, held: _Held) -> None:
        self._held[lease] = held
        if held.renew_at() < self._wake_at:
            self._sooner.set()

    async def confirm(self, job: Job) -> bool:
        """Renew one lease now; whether it is good. Raises ServiceError when nobody knows."""
        asked_at = self._clock()
        answer = await self._client.renew([job.lease])
        self._apply([job.lease], answer, good_at=asked_at)
        return job.lease not in (*answer.lost, *answer.cancel)

    async def keep(self) -> None:
        """Renew for as long as the agent lives; runs until it is cancelled."""
        while True:
            await self._wait_until_due()
            if self._next_renewal_at() <= self._clock():
                await self.renew_all()
            self._end_expired()

    async def renew_all(self) -> None:
        """Renew every lease once, and end the runs whose lease surely ran out."""
        leases = tuple(self._held)
        if leases:
            await self._renew(leases)
        self._end_expired()

    async def _renew(self, leases: Sequence[Lease]) -> None:
        shortest_s = min(held.lease_s for held in self._held.values())
        asked_at = self._clock()  # the service may have counted from then on
        try:
            async with asyncio.timeout(max(shortest_s / 3, 0.1)):
                # The service would give a job away whose result is still on its way to it.
                is_complete = not self._undelivered()
                answer = await self._client.renew(leases, is_complete=is_complete)
        except (ServiceError, TimeoutError) as problem:
            asked_s = asked_wait_s(problem)
            self._retry_at = self._next_try_at(asked_s, shortest_s=shortest_s)
            self._asked_until = self._clock() + asked_s
            self._metrics.renew_failed()
            log.debug("leases.renewal_failed", leases=len(leases), because=str(problem))
            return
        self._apply(leases, answer, good_at=asked_at)

    def _retry_now(self) -> None:
        self._retry_at = min(self._retry_at, self._asked_until)
        self._sooner.set()

    def _next_try_at(self, asked_s: float, *, shortest_s: float) -> float:
        """The next try: when the service asked for it, yet once before the first lease runs out."""
        step_s = shortest_s / 3 / _RETRIES_PER_THIRD
        now = self._clock()
        # While nobody answered, every run may have ended.
        gone_at = min((held.gone_at() for held in self._held.values()), default=math.inf)
        return min(now + asked_s + step_s, max(gone_at - step_s, now + step_s))

    def _apply(self, leases: Iterable[Lease], answer: RenewAnswer, *, good_at: float) -> None:
        for lease in leases:
            if (held := self._held.get(lease)) is not None:
                held.good_at = good_at
        for lease in answer.lost:
            self._lose(lease, "lease.lost")
        for lease in answer.cancel:
            if (held := self._held.pop(lease, None)) is not None:
                log.info("lease.cancelled", job_id=lease.job_id)
                if held.run is not None:
                    held.run.cancel()

    def _end_expired(self) -> None:
        now = self._clock()
        for lease in [lease for lease, held in self._held.items() if held.gone_at() <= now]:
            self._lose(lease, "lease.ran_out")

    def _lose(self, lease: Lease, event: str) -> None:
        if (held := self._held.pop(lease, None)) is not None:
            log.warning(event, job_id=lease.job_id, fence=lease.fence)
            if held.run is not None:
                held.run.lose()

    async def _wait_until_due(self) -> None:
        while (wait_s := self._next_due_at() - self._clock()) > 0:
            self._wake_at = self._clock() + wait_s
            self._sooner.clear()
            # wait_for of Python 3.11 forgets that it was cancelled when the event comes with it.
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, _LONGEST_SLEEP_S)):
                    await self._sooner.wait()

    def _next_due_at(self) -> float:
        """When there is something to do: a renewal, or a run whose lease has run out by then."""
        gone_at = min((held.gone_at() for held in self._held.values()), default=math.inf)
        return min(self._next_renewal_at(), gone_at)

    def _next_renewal_at(self) -> float:
        due_at = min((held.renew_at() for held in self._held.values()), default=math.inf)
        return max(due_at, self._retry_at)
