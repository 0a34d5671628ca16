"""Sends results to the service in batches, until each is settled."""

import asyncio
from typing import Final

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import RequestRefusedError, ServiceError
from agent.api_client.retry import Backoff, Pace
from agent.outbox.results import DiskSpool, Waiting
from agent.telemetry.metrics import Metrics
from contract.agent_api import Limits

ENOUGH: Final = 64
"""This many waiting results are sent at once, without waiting for more."""
_PERSIST_EACH_S: Final = 1.0
"""While the service is away, new results go to disk this often."""

log = structlog.get_logger(__name__)


class ResultSender:
    """One request at a time: what arrives meanwhile makes the next batch."""

    def __init__(
        self,
        client: ServiceClient,
        spool: DiskSpool,
        *,
        metrics: Metrics,
        pace: Pace,
    ) -> None:
        self._client = client
        self._spool = spool
        self._metrics = metrics
        self._pace = pace
        self._backoff = Backoff(pace, client.outage)
        self._hurry = asyncio.Event()
        """Set while the agent drains: wait for nothing."""
        self._empty = asyncio.Event()
        """Set whenever nothing is left to deliver."""
        self._limits = Limits()

    async def run(self) -> None:
        """Deliver whatever arrives; runs until it is cancelled."""
        while True:
            await self._spool.arrived.wait()
            await self._linger()
            self._spool.arrived.clear()
            try:
                while await self._send_next():
                    self._backoff.reset()
                self._empty.set()
            except ServiceError as problem:
                await self._wait_out(problem)
                self._spool.arrived.set()

    def keep_to(self, limits: Limits) -> None:
        """What the service takes in one request, as it said at the last hello."""
        self._limits = limits

    async def flush(self, *, limit_s: float) -> None:
        """Deliver all there is while `run` goes on, or as much as the limit allows."""
        self._hurry.set()
        self._empty.clear()
        self._spool.arrived.set()
        try:
            await asyncio.wait_for(self._empty.wait(), limit_s)
        except TimeoutError:
            log.warning("results.left", results=self._spool.waiting())

    async def _linger(self) -> None:
        """Let a batch gather: a request costs as much as forty results."""
        if self._spool.waiting() < ENOUGH and not self._hurry.is_set():
            await asyncio.sleep(self._pace.linger_s)

    async def _send_next(self) -> bool:
        """Deliver one batch; whether there may be more."""
        batch = await self._spool.next_batch(
            most=self._limits.results, most_bytes=self._limits.results_bytes - 64
        )
        if not batch:
            return False
        try:
            await self._send(batch)
        except BaseException:
            self._spool.put_back(batch)
            raise
        await self._spool.delivered(batch)
        return True

    async def _send(self, batch: tuple[Waiting, ...]) -> None:
        try:
            answer = await self._client.submit([waiting.body for waiting in batch])
        except RequestRefusedError as problem:
            await self._send_in_halves(batch, problem)
            return
        for refused in answer.rejected:
            log.error("result.rejected", job_id=refused.job_id, because=refused.reason)
        if answer.rejected:
            self._metrics.results_dropped(len(answer.rejected))
        log.debug(
            "results.delivered", accepted=len(answer.accepted), duplicates=len(answer.duplicates)
        )

    async def _send_in_halves(
        self, batch: tuple[Waiting, ...], problem: RequestRefusedError
    ) -> None:
        """Find the results that the service cannot read, so that they hold up no others."""
        if len(batch) == 1:
            log.error("result.refused", job_id=batch[0].lease.job_id, because=str(problem))
            self._metrics.results_dropped(1)
            return
        middle = len(batch) // 2
        await self._send(batch[:middle])
        await self._send(batch[middle:])

    async def _wait_out(self, problem: ServiceError) -> None:
        """Wait before the next try, and keep on disk what comes in meanwhile."""
        wait_s = self._backoff.next_wait_s(problem)
        log.debug("results.not_delivered", because=str(problem), wait_s=round(wait_s, 1))
        waiting = asyncio.create_task(self._backoff.wait(problem, wait_s), name="delivery-wait")
        try:
            await self._spool.persist()
            while not waiting.done() and not self._hurry.is_set():
                await asyncio.wait({waiting}, timeout=_PERSIST_EACH_S)
                await self._spool.persist()
        finally:
            waiting.cancel()
        if self._hurry.is_set():
            await asyncio.sleep(min(wait_s, self._pace.first_s))
