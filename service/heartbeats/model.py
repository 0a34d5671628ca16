"""Events of heartbeats."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class PingState(StrEnum):
    """How an event of a heartbeat stands to the time at which a ping was due."""

    EARLY = "EARLY"
    RECEIVED = "RECEIVED"
    GRACE = "GRACE"
    LATE = "LATE"
    """After the grace, but before anybody noticed."""
    FAILING = "FAILING"
    """No ping: the check was found failing."""


class TimerState(StrEnum):
    """How a heartbeat stands now."""

    NEVER_PINGED = "NEVER_PINGED"
    """No ping since it was created or activated; it neither passes nor fails, and has no runs."""
    RECEIVED = "RECEIVED"
    """No ping is due."""
    GRACE = "GRACE"
    LATE = "LATE"
    """After the grace, but before anybody noticed."""
    FAILING = "FAILING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A ping, or a missing ping."""

    id: str
    state: PingState
    at_ms: int
    source: str
    user_agent: str


_EARLY_BELOW: Final = 0.9
"""The share of the period before which a ping is early: the clock of a job that is on time may be
some per cent off."""


def judge_ping(
    since_last_s: float | None, *, period_s: float, grace_s: float, is_failing: bool
) -> PingState:
    """The state of a ping that came so long after the one before it.

    None: it is the first, and starts the timer. A ping to a failing check starts it anew.
    """
    if since_last_s is None or is_failing:
        return PingState.RECEIVED
    if since_last_s < period_s * _EARLY_BELOW:
        return PingState.EARLY
    if since_last_s <= period_s:
        return PingState.RECEIVED
    return PingState.GRACE if since_last_s <= period_s + grace_s else PingState.LATE
