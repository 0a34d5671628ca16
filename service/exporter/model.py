"""What is exported of a check and of a location."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from contract.checks import CheckType


class CheckStatus(StrEnum):
    """How a check stands."""

    PASSING = "passing"
    DEGRADED = "degraded"
    FAILING = "failing"


class ResultStatus(StrEnum):
    """How a run ended."""

    PASSING = "passing"
    DEGRADED = "degraded"
    FAILING = "failing"
    MISSED = "missed"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckIdentity:
    """What tells a check from others."""

    id: str
    type: CheckType
    name: str
    activated: bool
    muted: bool
    group: str
    """The group's name; empty: it is in no group."""
    tags: Sequence[str]
    """Its own and its group's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSeries:
    """All that is exported of a check."""

    identity: CheckIdentity
    status: CheckStatus | None = None
    """None: no run has looked at the target yet."""
    results: Mapping[ResultStatus, int] = field(default_factory=dict)
    """How many final results there were since the service started."""
    response_time_ms: float | None = None
    """None: the newest result measured none."""
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    """Durations of the newest result's phases."""
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    packet_loss_ratio: float | None = None
    """From 0 to 1. None: the check sends no echo requests."""
    vitals_ms: Mapping[str, float] = field(default_factory=dict)
    """Web vitals of the newest result's first page."""
    layout_shift: float | None = None
    """Cumulative layout shift, without a unit. None: no page reported it."""
    expires_in_s: float | None = None
    """Until the certificate expires; negative once it has. None: none was seen."""
    last_ping_s: float | None = None
    """In seconds since 1970. None: it is no heartbeat, or was never pinged."""
    ping_interval_s: float | None = None
    """None: it is no heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationSeries:
    """All that is exported of a private location."""

    id: str
    name: str
    slug_name: str
    queue_size: int
    """Runs that could be claimed."""
    oldest_wait_ms: int
    """How long the oldest of them waits; 0: none does."""
    agents: int
    """Agents that are connected."""
