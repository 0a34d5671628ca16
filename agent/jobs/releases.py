"""Gives jobs back to the service, in batches, without making anyone wait."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import RequestRefusedError, ServiceError
from agent.api_client.retry import Backoff, Pace
from agent.telemetry.metrics import Metrics
from contract.agent_api import Released

MOST_WAITING: Final = 4096
"""More are forgotten, oldest first: their leases run out by themselves."""
_BATCH: Final = 256

log = structlog.get_logger(__name__)


class Releases:
    """Jobs on their way back; one whose lease has run out needs no giving back."""

    def __init__(
        self,
        client: ServiceClient,
        *,
        metrics: Metrics,
        pace: Pace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._backoff = Backoff(pace, client.outage)
        self._clock = clock
        self._waiting: deque[tuple[Released, float]] = deque(maxlen=MOST_WAITING)
        self._arrived = asyncio.Event()
        self._gone = asyncio.Event()
        self._gone.set()

    def put(self, released: Released, *, lease_s: float) -> None:
        """Give this job back soon, as long as its lease can hold."""
        self._metrics.job_released(released.reason)
        self._waiting.append((released, self._clock() + lease_s))
        self._gone.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Give back whatever arrives; runs until it is cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await asyncio.sleep(0)  # jobs that end in the same turn go back together
            while self._waiting:
                await self._send()
            self._gone.set()

    async def flush(self, *, limit_s: float) -> None:
        """Wait until all are given back, or as long as the limit says."""
        try:
            await asyncio.wait_for(self._gone.wait(), limit_s)
        except TimeoutError:
            log.warning("releases.left", jobs=len(self._waiting))

    async def _send(self) -> None:
        now = self._clock()
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        batch = [(released, good_until) for released, good_until in batch if good_until > now]
        if not batch:
            return
        try:
            await self._client.release([released for released, _ in batch])
        except RequestRefusedError as problem:
            log.exception("releases.refused", because=str(problem))
        except ServiceError as problem:
            self._waiting.extendleft(reversed(batch))
            await self._backoff.wait(problem, self._backoff.next_wait_s(problem))
        else:
            self._backoff.reset()
