"""A session: the runs of one check that somebody asked for, and what became of them.

A test session has several of them, each of a check that is not stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from service.notices import SharedNotice
from service.results.model import StoredResult


class SessionStatus(StrEnum):
    """How far a session is; the last five are final."""

    STARTED = "STARTED"
    PROGRESS = "PROGRESS"
    PROGRESS_FAILED = "PROGRESS_FAILED"
    PROGRESS_DEGRADED = "PROGRESS_DEGRADED"
    PASSED = "PASSED"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class SessionFinished(SharedNotice):
    """Notice: the session has reached its final state."""

    session_id: str
    """The id of a session of one check, or of a test session."""


class ProgressKind(StrEnum):
    """What happened to a run of a test session."""

    STARTED = "STARTED"
    """An agent has claimed it."""
    RESULT = "RESULT"
    """It has a result, of type FINAL or ATTEMPT."""
    ERROR = "ERROR"
    """It ended without a look at the target."""
    CANCELLED = "CANCELLED"
    """Somebody cancelled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgressed(SharedNotice):
    """Notice: something happened to a run of a test session whose client named a suite."""

    kind: ProgressKind
    account_id: str
    suite_id: str
    """What the client calls all runs that it waits for: `checkRunSuiteId`."""
    sequence_id: str
    """The session of the check."""
    run_id: str
    """What the client calls the run: `checkRunId`."""
    check_id: str
    """The check under which the result is stored."""
    result_id: str | None = None
    """None: nothing was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestStarts:
    """Times in ms since 1970 before which a session started that may be late."""

    running_ms: int
    waiting_ms: int
    """The latest start of a late session that waits for its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestMember:
    """What a session is in a test session."""

    test_session_id: str
    logical_id: str
    """What the client calls the check, or the id of the stored check."""
    run_id: str
    """What the client calls the run."""
    tested_check_id: str | None = None
    """The stored check of which a copy runs. None: there is none."""
    retry_strategy: Mapping[str, Any] | None = None
    """How failed runs are retried, as checks say it. None: they are final."""


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
    test: TestMember | None = None
    """What it is in its test session. None: it is in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A session whose runs a client follows one by one."""

    account_id: str
    suite_id: str
    run_id: str
    check_id: str


class TestStatus(StrEnum):
    """How far a test session is."""

    RUNNING = "RUNNING"
    PASSED = "PASSED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSession:
    """A test session as it is stored."""

    id: str
    account_id: str
    name: str
    status: TestStatus
    checks: int
    """How many checks it runs."""
    pending: int
    """How many of them have not ended."""
    failed: int
    """How many of them have ended without passing."""
    started_ms: int
    stopped_ms: int | None
    """None: it goes on."""
    is_recorded: bool
    """Whether lists show it."""
    suite_id: str | None
    """What the client calls all runs that it waits for. None: nobody waits for single runs."""
    metadata: Mapping[str, Any]
    """What the client says of the project, the repository and the environment."""
    streams_logs: bool = False
    """Whether the client prints the logs of runs that passed."""


@dataclass(frozen=True, slots=True)
class TestState:
    """A test session at one moment."""

    test: TestSession
    members: tuple[Session, ...]
    """The sessions of its checks."""
    results: tuple[StoredResult, ...]
    """Without what agents sent."""
    now_ms: int

    @property
    def is_over(self) -> bool:
        """Whether it has reached its final state."""
        return self.test.stopped_ms is not None
