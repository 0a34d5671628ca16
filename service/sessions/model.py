"""A session: the runs of one check that somebody asked for, and what became of them."""

from dataclasses import dataclass
from enum import StrEnum

from service.notices import SharedNotice


class SessionStatus(StrEnum):
    """How far a session is; the last four are final."""

    STARTED = "STARTED"
    PROGRESS = "PROGRESS"
    PROGRESS_FAILED = "PROGRESS_FAILED"
    PROGRESS_DEGRADED = "PROGRESS_DEGRADED"
    PASSED = "PASSED"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class SessionFinished(SharedNotice):
    """Notice: the session has reached its final state."""

    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestStarts:
    """Times in ms since 1970 before which a session started that may be late."""

    running_ms: int
    waiting_ms: int
    """The latest start of a late session that waits for its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as it is stored."""

    id: str
    check_id: str
    check_type: str
    name: str
    locations: tuple[str, ...]
    """Slugs."""
    status: SessionStatus
    """STARTED, then the worst of its runs so far; final once `stopped_ms` is set."""
    pending: int
    """Runs without a final result."""
    started_ms: int
    stopped_ms: int | None
    """None: it goes on."""
    refresh_cache: bool = False
    """Suites install their packages anew."""
    group_run: str | None = None
    """The run of a group that it is part of. None: of none."""
    turn: int | None = None
    """Its place in that run, as long as it waits for its turn. None: it does not wait."""
    is_test: bool = False
    """Whether its check is not stored: it alerts nobody and counts nowhere."""
