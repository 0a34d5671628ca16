"""What the service records about a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from contract.job import RunSource
from contract.result import Result
from service.notices import GatheredNotice


class ResultType(StrEnum):
    """FINAL settles a run; an ATTEMPT is followed by another one."""

    FINAL = "FINAL"
    ATTEMPT = "ATTEMPT"


class RunStatus(StrEnum):
    """How a run ended; the last two say nothing about the target."""

    PASSED = "PASSED"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    MISSED = "MISSED"
    """Nobody ran it; the cause says why."""
    ERROR = "ERROR"
    """Agents tried, and failed by a fault of ours."""

    @property
    def judges_target(self) -> bool:
        """Whether somebody looked at the target."""
        return self not in _NO_LOOK

    @property
    def has_failures(self) -> bool:
        """The target failed its check."""
        return self in _FAILURES

    @property
    def has_errors(self) -> bool:
        """The service or its agents failed to look."""
        return not self.judges_target


_NO_LOOK: Final = frozenset({RunStatus.MISSED, RunStatus.ERROR})
_FAILURES: Final = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT})


class Cause(StrEnum):
    """Why a run ended without a look at the target."""

    NO_AGENT = "no_agent"
    QUEUE_EXPIRED = "queue_expired"
    AGENT_LOST = "agent_lost"
    PAUSED = "paused"
    OVERLOADED = "overloaded"
    AGENT_ERROR = "agent_error"
    UNREADABLE = "unreadable"
    SERVICE_DOWN = "service_down"


OF_NO_CLAIM: Final = 0
"""The fence of a result that no agent sent: what the last claim's agent sends later is news."""
Kind = tuple[ResultType, RunStatus, Cause | None]


@dataclass(frozen=True, slots=True)
class Stored:
    """Notice: results were stored."""

    kinds: tuple[Kind, ...]
    """One per result."""
    check_ids: tuple[str, ...]
    """The check of each."""


@dataclass(frozen=True, slots=True)
class RunsPassed(GatheredNotice):
    """Notice: checks, by id, have new results, and passed."""


@dataclass(frozen=True, slots=True)
class RunsNotPassed(GatheredNotice):
    """Notice: checks, by id, have new results, and some of these are none that passed."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A result on its way into the database; to make it as a dataclass would take 4 µs."""

    check_id: str
    run_id: int
    fence: int
    """The fence of the claim that sent it, or `OF_NO_CLAIM`."""
    session_id: str | None
    """None: the run belongs to no session."""
    location_id: str
    source: RunSource
    result_type: ResultType
    status: RunStatus
    cause: Cause | None = None
    """None: somebody looked at the target."""
    attempt: int
    response_time_ms: float | None = None
    """None: nothing was measured."""
    over_max_response_time: bool = False
    scheduled_ms: int
    started_ms: int
    stopped_ms: int
    body: bytes | None = None
    """The agent's result, JSON. None: no agent sent one."""
    due_times: int | None = None
    """How many due times it stands for, from `scheduled_ms` to `stopped_ms`. None: one."""


Recorded = tuple[str, Record]
"""A result with the id under which it was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """A result as it is stored."""

    id: str
    check_id: str
    run_id: int
    fence: int
    """The fence of the claim under which it ran; 0: nobody ran it."""
    session_id: str | None
    """None: the run belonged to no session."""
    location: str
    source: str
    result_type: ResultType
    status: RunStatus
    cause: Cause | None
    """None: somebody looked at the target."""
    attempt: int
    response_time_ms: float | None
    """None: nothing was measured."""
    over_max_response_time: bool
    scheduled_ms: int
    started_ms: int
    stopped_ms: int
    created_ms: int
    due_times: int | None = None
    """How many due times it stands for, from `scheduled_ms` to `stopped_ms`. None: one."""
    detail: Result | None = None
    """What the agent sent. None: nobody sent anything, or it was left out."""
    is_cut: bool = False
    """The detail was too long for a list, and left out."""


class FinalRun(NamedTuple):
    """How a run ended, without what its agent sent."""

    id: str
    """The id of its final result."""
    location: str
    status: RunStatus
    session_id: str | None
    """None: the run belonged to no session."""
    scheduled_ms: int
    started_ms: int
    created_ms: int
    """When the result was stored."""


class Removed(NamedTuple):
    """Results of a check that have been removed, the oldest ones."""

    ids: Sequence[str]
    last_ms: int
    """When the newest of them began; all that began before are gone."""


class Finished(NamedTuple):
    """A final result in which somebody looked at the target, as far as statistics need it."""

    id: str
    check_id: str
    started_ms: int
    location: str
    status: RunStatus
    attempt: int
    response_time_ms: float | None
    """None: nothing was measured."""
    body: bytes | None
    """What the agent sent, JSON. None: it is lost, or nobody asked for it."""


class Ending(NamedTuple):
    """How and when a run ended, as far as an overview needs it."""

    started_ms: int
    status: RunStatus
    location: str
    response_time_ms: float | None = None
    """None: nothing was measured."""
    due_times: int | None = None
    """How many due times it stands for, until `until_ms`. None: one."""
    until_ms: int | None = None
    """None: it stands for one due time."""
    id: str = ""


class Standing(NamedTuple):
    """What a check's newest final result says about the check's status."""

    status: RunStatus
    location: str
    run_id: int
    response_time_ms: float | None
    """None: nothing was measured."""
    created_ms: int
    days_to_expiry: float | None
    """Days until the certificate that was seen expires; negative once it has. None: none seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a check's newest final result measured."""

    created_ms: int
    response_time_ms: float | None
    """None: nothing was measured."""
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    """Durations of the phases that happened."""
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    packet_loss: float | None = None
    """In percent. None: the check sends no echo requests."""
    vitals_ms: Mapping[str, float] = field(default_factory=dict)
    """Web vitals of the first page."""
    layout_shift: float | None = None
    """None: no page reported it."""
    days_to_expiry: float | None = None
    """Days until the certificate that was seen expires; negative once it has. None: none seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """The shortest and longest response time of a check's final results, in ms."""

    shortest_ms: float
    longest_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilter:
    """Which results of a check a list shows."""

    from_ms: int | None = None
    """Inclusive. None: from the first one."""
    to_ms: int | None = None
    """Exclusive. None: to the last one."""
    location: str | None = None
    """None: any."""
    has_failures: bool | None = None
    """None: either."""
    statuses: frozenset[RunStatus] | None = None
    """None: any."""
    failures_first: bool = False
    """Whether those that failed come before all others."""
    result_type: ResultType | None = ResultType.FINAL
    """None: both."""
    after_id: str | None = None
    """Only what a list shows after this result. None: from the newest one on."""


def asset_path(check_id: str, result_id: str, name: str) -> str:
    """The path of one file, from the service's address."""
    return f"{assets_path(check_id, result_id)}/{quote(name)}"


def assets_path(check_id: str, result_id: str) -> str:
    """What the paths of all files of a check's result begin with."""
    return f"/v1/check-results/{check_id}/{result_id}/assets"
