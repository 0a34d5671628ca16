"""How long to wait before the service is asked again."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.api_client.errors import ServiceAwayError, ServiceError
from agent.api_client.outage import Outage

LONGEST_RETRY_AFTER_S: Final = 600.0
"""A service that asks for more is asked again after this all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The agent's waits towards the service; shorter in tests."""

    first_s: float = 1.0
    """The bound of the first wait after a failure; it doubles with every further failure."""
    cap_s: float = 10.0
    """The highest bound while the service is away."""
    refused_cap_s: float = 60.0
    """The highest bound after a refusal, which does not pass by itself."""
    claim_wait_s: float = 30.0
    """How long a claim may wait for work."""
    linger_s: float = 0.02
    """How long results, and free slots of a busy agent, are collected into one request."""
    flush_s: float = 10.0
    """How long a stopping agent tries to deliver what is left."""
    recheck_s: float = 60.0
    """When a type that failed its boot check gets another; it doubles with each, up to an hour."""


class Backoff:
    """Full jitter: a random wait below a bound that doubles, so that agents do not march in step.

    `Retry-After` comes before the random wait: all agents got the same. The first answer that the
    agent gets after an outage ends every random wait.
    """

    def __init__(
        self, pace: Pace, outage: Outage, *, chance: Callable[[], float] = random.random
    ) -> None:
        self._pace = pace
        self._outage = outage
        self._chance = chance
        self._failures = 0

    @property
    def has_failed(self) -> bool:
        """Whether the last try failed."""
        return self._failures > 0

    def reset(self) -> None:
        """Start from the beginning after the next failure."""
        self._failures = 0

    def next_wait_s(self, problem: ServiceError) -> float:
        """The seconds to wait after this failure, at most."""
        is_away = isinstance(problem, ServiceAwayError)
        cap_s = self._pace.cap_s if is_away else self._pace.refused_cap_s
        bound_s = min(cap_s, self._pace.first_s * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return asked_wait_s(problem) + self._chance() * bound_s

    async def wait(self, problem: ServiceError, wait_s: float) -> None:
        """Wait before the next try: so long, or until an outage is over.

        What the service asked for is waited out.
        """
        asked_s = min(asked_wait_s(problem), wait_s)
        if asked_s:
            await asyncio.sleep(asked_s)
        await self._outage.wait(wait_s - asked_s)


def asked_wait_s(problem: Exception) -> float:
    """How long the service asked to be left alone."""
    asked_s = (problem.retry_after_s or 0.0) if isinstance(problem, ServiceAwayError) else 0.0
    return min(asked_s, LONGEST_RETRY_AFTER_S)
