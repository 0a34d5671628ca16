"""What an overview shows of checks, and which of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from contract.checks import CheckType
from service.results.model import RunStatus


class CheckState(StrEnum):
    """How a check stands, the worst first."""

    FAILING = "failing"
    DEGRADED = "degraded"
    MISSED = "missed"
    """It should have been looked at several times since somebody did."""
    UNKNOWN = "unknown"
    """No run has ended yet."""
    PASSING = "passing"
    PAUSED = "paused"


TROUBLE: Final = (CheckState.FAILING, CheckState.DEGRADED, CheckState.MISSED)
"""What an overview shows first, in this order."""


def find_worst(counts: Mapping[CheckState, int]) -> CheckState | None:
    """The worst state that any check has. None: there is no check."""
    return next((state for state in CheckState if counts.get(state)), None)


class Grouping(StrEnum):
    """By what checks may be put together."""

    GROUP = "group"
    TYPE = "type"
    STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which checks are shown; empty fields let all through."""

    search: str = ""
    """Part of the name or of a tag."""
    state: CheckState | None = None
    """None: any."""
    is_muted: bool = False
    """Only muted ones."""
    is_maintained: bool = False
    """Only those to which an open maintenance window applies; `any_of_tags` has its tags."""
    any_of_tags: tuple[str, ...] | None = None
    """One of them at least, own or of the group. None: whatever the tags."""
    kind: CheckType | None = None
    """None: any."""
    tags: tuple[str, ...] = ()
    """All of them, own or of the group."""
    location: str = ""
    """Slug of a location at which they run."""
    group_id: int | None = None
    """None: in any group, or in none."""
    grouping: Grouping | None = None
    """None: they are not put together."""

    @property
    def is_filter(self) -> bool:
        """Whether some checks are left out."""
        return bool(
            self.search
            or self.state
            or self.is_muted
            or self.is_maintained
            or self.kind
            or self.tags
            or self.location
            or self.group_id is not None
        )


class OverviewRow(NamedTuple):
    """A check in the list."""

    id: str
    name: str
    kind: CheckType
    state: CheckState
    since_ms: int | None
    """Since when it is in trouble. None: it is in none."""
    is_muted: bool
    group_id: int | None
    """None: it is in no group."""
    result_id: str | None
    """The newest result that is no pass. None: it passes."""
    runs_parallel: bool
    period_ms: int
    """Time between runs."""
    created_ms: int
    heading: str
    """Under which it stands: a group's id, a type or a state; empty without one."""


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many checks of an account stand how."""

    by_state: Mapping[CheckState, int]
    muted: int

    @property
    def total(self) -> int:
        """All checks."""
        return sum(self.by_state.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The runs of a check over a stretch of time."""

    marks: Sequence[RunStatus | None]
    """The worst end of each slot of time, the oldest first. None: nothing ended there."""
    runs: int = 0
    """Runs in which somebody looked at the target."""
    failed: int = 0
    missed: int | None = 0
    """Due times at which nobody looked. None: not counted, over more than a day of roll-ups."""
    p95_ms: float | None = None
    """The response time's 95th percentile. None: nothing was measured."""
    line: Sequence[float | None] = ()
    """The response time's mean in each of some buckets."""

    @property
    def availability(self) -> float | None:
        """The share of runs that did not fail. None: there were none."""
        return (self.runs - self.failed) / self.runs if self.runs else None


class QuietLocation(NamedTuple):
    """A location where checks should run, and no agent is connected."""

    slug: str
    name: str
    last_seen_ms: int | None
    """When an agent was last heard of. None: none ever was."""
