"""What all loops know together of the service's absence: when it began, and that it is over."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from agent.api_client.errors import ServiceAwayError

_IN_A_ROW: Final = 2
"""How many failures without a success between them are an outage, whose end wakes every wait. A
call that alone fails among others that succeed keeps to its own waits."""

log = structlog.get_logger(__name__)


class Outage:
    """Told of each call's end by the client; one line at the start, one at the end.

    A service that cannot be reached is away for every call, and one that refuses our key or
    version refuses all of them. One that cannot serve a call now has two lines per kind of call.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._away_since: float | None = None
        """None: it could be reached last time."""
        self._failing_since: dict[str, float] = {}
        """The calls that it answered, but could not serve last time."""
        self._is_refused = False
        """Whether it did not take our key or version last time."""
        self._failures = 0
        """How many there were since the last success."""
        self._waits: set[asyncio.Future[None]] = set()
        self._on_end: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Outage({self._failures} failures, {len(self._waits)} waiting)"

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody waits for its end."""
        return bool(self._waits)

    def on_end(self, wake: Callable[[], None]) -> None:
        """Call this at the end of each outage."""
        self._on_end.append(wake)

    def failed(self, call: str, problem: ServiceAwayError) -> None:
        """Note that a call did not reach the service, or could not be served now."""
        self._failures += 1
        if self._away_since is not None:
            return
        if problem.is_unreachable:
            self._away_since = self._clock()
            log.warning("service.away", call=call, because=str(problem))
        elif call not in self._failing_since:
            self._failing_since[call] = self._clock()
            log.warning("service.failing", call=call, because=str(problem))

    def refused(self, call: str, because: str) -> None:
        """Note that the service does not take our key or version."""
        self._failures += 1
        if not self._is_refused:
            self._is_refused = True
            log.error("agent.refused", call=call, because=because)

    def answered(self, call: str) -> None:
        """Note that a call succeeded."""
        if (since := self._failing_since.pop(call, None)) is not None:
            log.info("service.recovered", call=call, after_s=round(self._clock() - since, 1))
        if self._away_since is not None:
            after_s = round(self._clock() - self._away_since, 1)
            log.info("service.back", after_s=after_s, failures=self._failures)
            self._away_since = None
        if self._is_refused:
            self._is_refused = False
            log.info("agent.accepted")
        if self._failures >= _IN_A_ROW:
            self._wake_all()
        self._failures = 0

    async def wait(self, seconds: float) -> None:
        """Wait so long, or until an outage ends."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waits.add(woken)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await woken
        finally:
            self._waits.discard(woken)

    def _wake_all(self) -> None:
        for woken in self._waits:
            if not woken.done():
                woken.set_result(None)
        for wake in self._on_end:
            wake()
