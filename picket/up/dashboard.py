"""The results that `picket up` shows, polled from the API."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final

from contract.checks import CheckType
from picket.api_client import ApiRefusedError, ApiUnreachableError, KnownCheck, PublicApi

BAD: Final = frozenset({"FAILED", "TIMED_OUT"})
NOT_RUN: Final = frozenset({"MISSED", "ERROR"})
"""Statuses of runs that did not happen, which is not the target's fault."""
_TREND: Final = 24
_KNOWN: Final = 200
_TIMES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """A result as the public API reports it."""

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
    due_times: int = 1
    """How many runs it stands for: several that were missed in a row may share a result."""


@dataclass(slots=True)
class CheckState:
    """Where one check stands."""

    name: str
    kind: CheckType
    last: NewResult | None = None
    """None: no result yet."""
    since: datetime | None = None
    """Since when it has its current status. None: no result yet."""
    trend: deque[NewResult] = field(default_factory=lambda: deque(maxlen=_TREND))
    """The last results, oldest first."""
    known: deque[str] = field(default_factory=lambda: deque(maxlen=_KNOWN))
    """Ids of results that were added already; more than one request to the API returns."""

    is_earlier: bool = False
    """Whether the last result is from an earlier start."""

    def take(self, result: NewResult, *, is_earlier: bool = False) -> None:
        """The check has a newer result."""
        self.is_earlier = is_earlier
        if self.last is None or self.last.status != result.status:
            self.since = result.at
        self.known.append(result.id)
        self.last = result
        self.trend.append(result)


@dataclass(slots=True)
class Dashboard:
    """All checks and their results since this start, in bounded memory."""

    states: dict[str, CheckState] = field(default_factory=dict)
    """By check id, in the order in which they are shown."""
    counts: Counter[tuple[CheckType, str]] = field(default_factory=Counter)
    """Runs by type and status."""
    missed_before: Counter[CheckType] = field(default_factory=Counter)
    """Runs by type that were due before this start, and that this start recorded as missed."""
    times_ms: dict[CheckType, deque[float]] = field(default_factory=dict)
    """The last response times of each type."""

    def add_check(self, check_id: str, name: str, kind: CheckType) -> None:
        """Show this check, though it may have no result yet."""
        self.states.setdefault(check_id, CheckState(name, kind))

    def remove_check(self, check_id: str) -> None:
        """Somebody deleted the check; what came of it still counts."""
        self.states.pop(check_id, None)

    def take(self, results: Iterable[NewResult]) -> list[NewResult]:
        """Add what is new, oldest first; gives back just that."""
        fresh = [each for each in results if each.id not in self.states[each.check_id].known]
        fresh.sort(key=lambda each: each.at)
        for each in fresh:
            self._add(each)
        return fresh

    def add_earlier(self, results: Iterable[NewResult]) -> None:
        """Show results of earlier starts, which nobody counts."""
        for result in sorted(results, key=lambda each: each.at):
            state = self.states[result.check_id]
            is_older = state.last is not None and result.at <= state.last.at
            if not is_older and result.id not in state.known:
                state.take(result, is_earlier=True)

    def add_missed_before(self, results: Iterable[NewResult]) -> None:
        """Show and count runs that nobody did while Picket was stopped."""
        new = [each for each in results if each.id not in self.states[each.check_id].known]
        for result in sorted(new, key=lambda each: each.at):
            self.missed_before[result.kind] += result.due_times
            state = self.states[result.check_id]
            if state.last is None or result.at > state.last.at:
                state.take(result, is_earlier=True)
            else:
                state.known.append(result.id)

    def totals(self) -> Counter[tuple[CheckType, str]]:
        """Runs by type and status, with those that were missed before this start."""
        before = {(kind, "MISSED"): count for kind, count in self.missed_before.items()}
        return self.counts + Counter(before)

    def _add(self, result: NewResult) -> None:
        self.states[result.check_id].take(result)
        self.counts[result.kind, result.status] += result.due_times
        if result.response_time_ms is not None:
            times_ms = self.times_ms.setdefault(result.kind, deque(maxlen=_TIMES))
            times_ms.append(result.response_time_ms)


def percentile(values: list[float], share: float) -> float | None:
    """Return the percentile of the values; 0.5 is the median. None: there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


_BETWEEN_REQUESTS_S: Final = 0.12
"""The pause that keeps it to 500 requests a minute; the API allows 600."""
_LIMIT: Final = 20
"""Results per request, more than a check usually has between two polls."""
_FIRST_LIMIT: Final = 100
"""Results of the first request for a check, more than a start records as missed."""
_AWAY_PAUSE_S: Final = 1.0
_ROUNDS_PER_LISTING: Final = 10
"""After how many rounds the checks are listed again, which shows new ones."""


class _When(Enum):
    """When a result came about."""

    EARLIER = auto()
    """The run ended before this start."""
    MISSED_BEFORE = auto()
    """The run was due before this start, which recorded that nobody did it."""
    NOW = auto()
    """The run ended since this start."""


OnResults = Callable[[list[NewResult]], None]


class ResultPoller:
    """Polls the API, adds each new result to the dashboard once, and reports it."""

    def __init__(
        self, api: PublicApi, dashboard: Dashboard, on_results: OnResults, *, since: datetime
    ) -> None:
        self._api = api
        self._since = since
        self._dashboard = dashboard
        self._on_results = on_results
        self._checks: list[KnownCheck] = []
        self._pending: list[NewResult] = []
        """New results that are not reported yet, because another check may have an older one."""

    async def follow(self) -> None:
        """Poll for new results until cancelled.

        It retries while the service is unreachable; another task watches for its end.
        """
        try:
            while True:
                await self._look()
        finally:
            self._tell(until=None)

    async def _look(self) -> None:
        try:
            await self._list_checks()
            for _ in range(_ROUNDS_PER_LISTING):
                await self._round()
        except ApiUnreachableError:
            await asyncio.sleep(_AWAY_PAUSE_S)

    async def _list_checks(self) -> None:
        self._checks = await self._api.checks()
        for check in self._checks:
            self._dashboard.add_check(check.id, check.name, check.kind)
        for deleted in self._dashboard.states.keys() - {check.id for check in self._checks}:
            self._dashboard.remove_check(deleted)

    async def _round(self) -> None:
        began_at = datetime.now(UTC)
        for check in tuple(self._checks):
            try:
                seen = await self._api.results(check.id, limit=self._limit(check))
            except ApiRefusedError as refused:
                if refused.status != HTTPStatus.NOT_FOUND:
                    raise
                self._checks.remove(check)
                self._dashboard.remove_check(check.id)
                continue
            self._take(check, seen)
            await asyncio.sleep(_BETWEEN_REQUESTS_S)
        self._tell(until=began_at)
        if not self._checks:
            await asyncio.sleep(_AWAY_PAUSE_S)

    def _limit(self, check: KnownCheck) -> int:
        return _LIMIT if self._dashboard.states[check.id].known else _FIRST_LIMIT

    def _take(self, check: KnownCheck, seen: list[dict[str, Any]]) -> None:
        by_when: dict[_When, list[NewResult]] = {when: [] for when in _When}
        for each in seen:
            by_when[self._when(each)].append(read_result(each, check))
        self._dashboard.add_earlier(by_when[_When.EARLIER])
        self._dashboard.add_missed_before(by_when[_When.MISSED_BEFORE])
        self._pending += self._dashboard.take(by_when[_When.NOW])

    def _when(self, result: dict[str, Any]) -> "_When":
        due_at, ended_at, stored_at = (
            datetime.fromisoformat(result[name])
            for name in ("scheduledAt", "stoppedAt", "created_at")
        )
        if result["status"] == "MISSED" and due_at < self._since <= stored_at:
            return _When.MISSED_BEFORE
        return _When.EARLIER if ended_at < self._since else _When.NOW

    def _tell(self, *, until: datetime | None) -> None:
        """Report results up to this time, sorted, as later ones may be incomplete. None: all."""
        ready = [each for each in self._pending if until is None or each.at <= until]
        self._pending = [each for each in self._pending if each not in ready]
        if ready:
            self._on_results(sorted(ready, key=lambda each: each.at))


_WITH_TRACES: Final = ("browserCheckResult", "multiStepCheckResult", "playwrightCheckResult")


def read_result(fields: dict[str, Any], check: KnownCheck) -> NewResult:
    """The result, with the sentence that says why it did not pass, or is degraded."""
    return NewResult(
        id=str(fields["id"]),
        check_id=check.id,
        check_name=check.name,
        kind=check.kind,
        status=str(fields["status"]),
        response_time_ms=fields["responseTime"],
        cause=fields["error"] or fields["degradedBecause"] or "",
        at=datetime.fromisoformat(fields["stoppedAt"]),
        trace=next(iter(trace_paths(fields)), None),
        due_times=int(fields["dueTimes"]),
    )


def trace_paths(fields: dict[str, Any]) -> list[str]:
    """Where the API has the traces of a result. Empty: it kept none."""
    seen = next(filter(None, (fields.get(name) for name in _WITH_TRACES)), None)
    return [] if seen is None else [str(path) for path in seen["playwrightTestTraces"] or ()]
