"""The results that `picket up` shows, polled from the API."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from contract.checks import CheckType
from picket.api_client import ApiRefusedError, ApiUnreachableError, KnownCheck, PublicApi

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


_BETWEEN_REQUESTS_S: Final = 0.12
"""500 requests a minute; the API allows 600."""
_LIMIT: Final = 20
"""Results per request: more than one check has between two looks, unless it was away for long."""
_AWAY_PAUSE_S: Final = 1.0
_ROUNDS_PER_LISTING: Final = 10
"""Checks that somebody sets up meanwhile are shown after so many rounds."""

OnResults = Callable[[list[NewResult]], None]


class ResultFeed:
    """Puts every result on the board once, and tells who wants to know."""

    def __init__(
        self, api: PublicApi, board: Board, on_results: OnResults, *, since: datetime
    ) -> None:
        self._api = api
        self._since = since
        self._board = board
        self._on_results = on_results
        self._checks: list[KnownCheck] = []
        self._untold: list[NewResult] = []
        """Seen, but another check may have an older one that was not."""

    async def follow(self) -> None:
        """Look for new results until cancelled.

        A service that is away for a moment is looked for again: its end is noticed elsewhere.
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

    def _is_of_earlier_start(self, result: dict[str, Any]) -> bool:
        """It ended before this start; one that was due before it, and ends only now, is news."""
        return datetime.fromisoformat(result["stoppedAt"]) < self._since

    async def _list_checks(self) -> None:
        self._checks = await self._api.checks()
        for check in self._checks:
            self._board.add_check(check.id, check.name, check.kind)
        for deleted in self._board.standings.keys() - {check.id for check in self._checks}:
            self._board.remove_check(deleted)

    async def _round(self) -> None:
        began_at = datetime.now(UTC)
        for check in tuple(self._checks):
            try:
                seen = await self._api.results(check.id, limit=_LIMIT)
            except ApiRefusedError as refused:
                if refused.status != HTTPStatus.NOT_FOUND:
                    raise
                self._checks.remove(check)
                self._board.remove_check(check.id)
                continue
            self._take(check, seen)
            await asyncio.sleep(_BETWEEN_REQUESTS_S)
        self._tell(until=began_at)
        if not self._checks:
            await asyncio.sleep(_AWAY_PAUSE_S)

    def _take(self, check: KnownCheck, seen: list[dict[str, Any]]) -> None:
        earlier = [each for each in seen if self._is_of_earlier_start(each)]
        ours = [each for each in seen if not self._is_of_earlier_start(each)]
        self._board.recall(read_result(each, check) for each in earlier)
        self._untold += self._board.take(read_result(each, check) for each in ours)

    def _tell(self, *, until: datetime | None) -> None:
        """In the order of their time, as far as that is certain. None: whatever there is."""
        ready = [each for each in self._untold if until is None or each.at <= until]
        self._untold = [each for each in self._untold if each not in ready]
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
    )


def trace_paths(fields: dict[str, Any]) -> list[str]:
    """Where the API has the traces of a result. Empty: it kept none."""
    seen = next(filter(None, (fields.get(name) for name in _WITH_TRACES)), None)
    return [] if seen is None else [str(path) for path in seen["playwrightTestTraces"] or ()]
