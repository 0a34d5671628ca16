"""Events of heartbeats."""

from dataclasses import dataclass
from enum import StrEnum


class PingState(StrEnum):
    """How an event of a heartbeat stands to the time at which a ping was due."""

    EARLY = "EARLY"
    RECEIVED = "RECEIVED"
    GRACE = "GRACE"
    LATE = "LATE"
    """After the grace, but before anybody noticed."""
    FAILING = "FAILING"
    """No ping: the check was found failing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A ping, or that none came."""

    id: str
    state: PingState
    at_ms: int
    source: str
    user_agent: str
