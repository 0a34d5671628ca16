"""What `picket up` has seen so far: every new result once, and where each check stands. Pure."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from contract.checks import CheckType

BAD: Final = frozenset({"FAILED", "TIMED_OUT"})
NOT_RUN: Final = frozenset({"MISSED", "ERROR"})
"""Nobody looked at the target; that is no fault of its own."""
_TREND: Final = 24
_KNOWN: Final = 200
_TIMES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """One result as the public API tells it."""

    id: str
    check_id: str
    check_name: str
    kind: CheckType
    status: str
    response_time_ms: float | None = None
    """None: nothing was measured."""
    cause: str = ""
    """Why it did not pass, or is degraded; empty when all is well."""
    at: datetime
    trace: str | None = None
    """Where the API has its trace. None: it kept none."""


@dataclass(slots=True)
class Standing:
    """Where one check stands."""

    name: str
    kind: CheckType
    last: NewResult | None = None
    """None: no result yet."""
    since: datetime | None = None
    """When it came to its present status. None: no result yet."""
    trend: deque[NewResult] = field(default_factory=lambda: deque(maxlen=_TREND))
    """The last results, oldest first."""
    known: deque[str] = field(default_factory=lambda: deque(maxlen=_KNOWN))
    """Ids of results that were seen already; more than one look at the API can show."""

    is_recalled: bool = False
    """The last result is of an earlier start."""

    def take(self, result: NewResult, *, is_recalled: bool = False) -> None:
        """The check has a newer result."""
        self.is_recalled = is_recalled
        if self.last is None or self.last.status != result.status:
            self.since = result.at
        self.known.append(result.id)
        self.last = result
        self.trend.append(result)


@dataclass(slots=True)
class Board:
    """All checks, and what came of them since this start; bounded, however long that is ago."""

    standings: dict[str, Standing] = field(default_factory=dict)
    """By check id, in the order in which they are shown."""
    counts: Counter[tuple[CheckType, str]] = field(default_factory=Counter)
    """Results by type and status."""
    times_ms: dict[CheckType, deque[float]] = field(default_factory=dict)
    """The last response times of each type."""

    def add_check(self, check_id: str, name: str, kind: CheckType) -> None:
        """Show this check, though it may have no result yet."""
        self.standings.setdefault(check_id, Standing(name, kind))

    def remove_check(self, check_id: str) -> None:
        """Somebody deleted the check; what came of it still counts."""
        self.standings.pop(check_id, None)

    def take(self, results: Iterable[NewResult]) -> list[NewResult]:
        """Add what is new, oldest first; gives back just that."""
        fresh = [each for each in results if each.id not in self.standings[each.check_id].known]
        fresh.sort(key=lambda each: each.at)
        for each in fresh:
            self._add(each)
        return fresh

    def recall(self, results: Iterable[NewResult]) -> None:
        """Show results of earlier starts, which nobody counts."""
        for result in sorted(results, key=lambda each: each.at):
            standing = self.standings[result.check_id]
            is_older = standing.last is not None and result.at <= standing.last.at
            if not is_older and result.id not in standing.known:
                standing.take(result, is_recalled=True)

    def _add(self, result: NewResult) -> None:
        self.standings[result.check_id].take(result)
        self.counts[result.kind, result.status] += 1
        if result.response_time_ms is not None:
            times_ms = self.times_ms.setdefault(result.kind, deque(maxlen=_TIMES))
            times_ms.append(result.response_time_ms)


def percentile(values: list[float], share: float) -> float | None:
    """The value that so large a share of the others does not exceed. None: there are none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
