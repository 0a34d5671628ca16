"""What features ask of analytics, within the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import store
from service.analytics.distribution import Aggregation
from service.analytics.histogram import Histogram
from service.analytics.measures import RESPONSE_TIME, Analytics, GroupBy, Metric
from service.analytics.reading import Buckets, can_be_exact, tally_exactly, tally_roughly
from service.analytics.store import COPY, DAY, HOUR, Due
from service.analytics.tallies import ALL, Group, Selection, Tally
from service.analytics.windows import DAY_MS, HOUR_MS, Span
from service.analytics.worker import analytics_of
from service.checks import actions as checks
from service.clickhouse.copies import ClickHouse
from service.clock import Clock

_LATENCY: Final = "latencyAvg"
_LOSS: Final = "packetLoss"
MOST_SUMMED: Final = 1_200_000
"""Numbers of many checks are exact up to so many results, which take a second; a week of a hundred
checks that run once a minute has fewer."""
_MOST_GROUPS: Final = 100
"""A split series has no more groups than that; those with the most runs are shown."""

AnyTally = Tally[Any]
HourToCopy = Due
"""An hour of a check that ClickHouse is to get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRequest:
    """A series of one check."""

    check_id: str
    kind: CheckType
    metrics: Sequence[Metric]
    buckets: Buckets
    group_by: GroupBy | None = None
    succeeded: bool | None = None
    """None: runs of either outcome."""
    states: frozenset[int] | None = None
    """States of a heartbeat. None: any."""
    is_exact: bool
    archive: ClickHouse | None = None
    """Where results are that were removed here. None: nowhere."""


@dataclass(frozen=True, slots=True)
class Series:
    """One of the lines of a chart."""

    group: Group
    tallies: Sequence[AnyTally]
    """One per bucket."""


def find_series(connection: Connection, request: SeriesRequest) -> list[Series]:
    """What was asked for, group by group; one series that is empty, where it is not split.

    Raises:
        ArchiveError: it has to be computed exactly, and the archive does not answer any more.
    """
    analytics = analytics_of(request.kind)
    if analytics is None or request.buckets.count < 1:
        return []
    wanted = {metric.measure.name for metric in request.metrics}
    selection = Selection(
        measures=tuple(one for one in analytics.stored if one.name in wanted),
        group_by=request.group_by,
        succeeded=request.succeeded,
        dimensions=request.states,
    )
    kinds, selections = {request.check_id: request.kind}, {request.kind: selection}
    found: Sequence[Mapping[Group, AnyTally]] = (
        tally_exactly(connection, kinds, request.buckets, selections, request.archive)
        if request.is_exact
        else tally_roughly(connection, kinds, request.buckets, selections)
    )[request.check_id]
    groups = [ALL] if request.group_by is None else _largest(found)
    return [Series(group, [one.get(group) or Tally() for one in found]) for group in groups]


def _largest(found: Iterable[Mapping[Group, AnyTally]]) -> list[Group]:
    """The groups with the most runs, in order."""
    runs: dict[Group, int] = {}
    for tallies in found:
        for group, tally in tallies.items():
            runs[group] = runs.get(group, 0) + tally.runs
    largest = sorted(runs, key=lambda group: -runs[group])[:_MOST_GROUPS]
    return sorted(largest, key=lambda group: (group.location, group.dimension, group.page))


Numbers = dict[str, float | None]


def summarize(
    connection: Connection,
    kinds: Mapping[str, CheckType],
    span: Span,
    archive: ClickHouse | None = None,
) -> dict[str, Numbers]:
    """Availability, response times, latency and packet loss of checks over a window, by check.

    A number that a type does not have is left out; None: there is no data.
    """
    known = {one: kind for one, kind in kinds.items() if analytics_of(kind) is not None}
    edges = [span[0], max(span)]
    found = tally(connection, known, edges, span, most_results=MOST_SUMMED, archive=archive)
    return {
        check_id: _summary(found[check_id][0], analytics_of(kind)) if check_id in found else {}
        for check_id, kind in kinds.items()
    }


def tally(  # noqa: PLR0913 - one question, asked in many ways
    connection: Connection,
    kinds: Mapping[str, CheckType],
    edges: Sequence[int],
    span: Span,
    *,
    most_results: int,
    archive: ClickHouse | None = None,
) -> dict[str, list[AnyTally]]:
    """What the runs of checks come to in each bucket.

    Where they have more than `most_results` results together, or results are gone, roll-ups are
    read.

    Raises:
        ArchiveError: the archive answered a moment ago, and does not any more.
    """
    if span[0] >= span[1]:
        return {check_id: [Tally() for _ in edges[1:]] for check_id in kinds}
    buckets = Buckets(edges, span)
    selections = {kind: _summed(analytics_of(kind)) for kind in set(kinds.values())}
    are_there = can_be_exact(connection, kinds, span, most=most_results, archive=archive)
    found: Mapping[str, Sequence[Mapping[Group, AnyTally]]] = (
        tally_exactly(connection, kinds, buckets, selections, archive)
        if are_there
        else tally_roughly(connection, kinds, buckets, selections)
    )
    return {
        check_id: [one.get(ALL) or Tally() for one in tallies]
        for check_id, tallies in found.items()
    }


def tally_roll_ups(
    connection: Connection, kinds: Mapping[str, CheckType], edges: Sequence[int], span: Span
) -> dict[str, list[Tally[Histogram]]]:
    """What the runs of checks come to in each bucket, each hour as a whole."""
    selections = {kind: _summed(analytics_of(kind)) for kind in set(kinds.values())}
    found = tally_roughly(connection, kinds, Buckets(edges, span), selections)
    return {
        check_id: [one.get(ALL) or Tally() for one in tallies]
        for check_id, tallies in found.items()
    }


def merge(tallies: Iterable[Tally[Histogram]]) -> Tally[Histogram]:
    """What tallies of roll-ups come to together."""
    whole: Tally[Histogram] = Tally()
    for one in tallies:
        whole.count(runs=one.runs, successes=one.successes, retries=one.retries)
        for name, numbers in one.numbers.items():
            whole.numbers.setdefault(name, Histogram()).merge(numbers.pack())
    return whole


def _summed(analytics: Analytics | None) -> Selection:
    names = {RESPONSE_TIME, _LATENCY, _LOSS}
    stored = analytics.stored if analytics else ()
    return Selection(measures=tuple(one for one in stored if one.name in names))


def _summary(counted: AnyTally, analytics: Analytics | None) -> Numbers:
    measures = {one.name for one in analytics.stored} if analytics else set()
    numbers: Numbers = {"availability": availability(counted)}
    for prefix, measure, aggregations in _SUMMED:
        if measure in measures:
            for one in aggregations:
                numbers[f"{prefix}_{one.value}"] = counted.compute(measure, one)
    return numbers


_SUMMED: Final = (
    (
        RESPONSE_TIME,
        RESPONSE_TIME,
        (Aggregation.AVG, Aggregation.P50, Aggregation.P95, Aggregation.P99),
    ),
    ("latency", _LATENCY, (Aggregation.AVG, Aggregation.P50, Aggregation.P95, Aggregation.P99)),
    (_LOSS, _LOSS, (Aggregation.AVG, Aggregation.P95, Aggregation.P99)),
)


def availability(counted: AnyTally) -> float | None:
    """The percentage of runs that passed or were degraded. None: there were none."""
    return 100 * counted.successes / counted.runs if counted.runs else None


def round_number(value: float | None) -> float | None:
    """A number as answers show it. None stays None."""
    return None if value is None else round(value, _DIGITS)


_DIGITS: Final = 6
"""Decimal places of numbers in answers."""


def list_metrics(kind: CheckType) -> Sequence[Metric]:
    """What can be asked for of a check type, by pages as well."""
    analytics = analytics_of(kind)
    return tuple(analytics.metrics.values()) if analytics else ()


def allow_removal(connection: Connection, check_id: str, *, before_ms: int) -> int:
    """Up to when results of a check may be removed: no hour that is not rolled up and copied.

    The caller names what it removed to `remove_blocks`, in the same transaction.
    """
    dirty_ms = None
    if check_id in checks.find_types(connection, [check_id]):
        dirty_ms = store.first_dirty(connection, check_id)
    return before_ms if dirty_ms is None else min(before_ms, dirty_ms)


def is_rolled_up(connection: Connection, *, before_ms: int) -> bool:
    """Whether no hour from before is still to be rolled up or copied, of any check."""
    return not store.has_dirty_before(connection, before_ms=before_ms)


def list_checks_with_blocks(connection: Connection) -> list[str]:
    """All checks with packed hours, deleted ones as well."""
    return list(store.list_checks_with_blocks(connection))


def remove_blocks(connection: Connection, check_id: str, *, until_ms: int) -> None:
    """Remove the packed hours of a check up to the one of this time, of which results are gone."""
    end_ms = until_ms - until_ms % HOUR_MS + HOUR_MS
    store.remove_blocks(connection, check_id, before_ms=end_ms)


def note_removal(connection: Connection, *, before_ms: int) -> None:
    """From now on nobody computes exactly what began before; it comes first."""
    store.move_horizon(connection, before_ms=before_ms)


def is_copying(connection: Connection) -> bool:
    """Whether hours are copied to ClickHouse, and all that were there at the beginning marked."""
    return store.find_copied_from(connection) not in {None, _FOREVER_MS}


def begin_copying(connection: Connection) -> None:
    """Have each hour copied that is rolled up from now on; nothing is trusted to be copied yet."""
    store.set_copied_from(connection, _FOREVER_MS)


def mark_copies(connection: Connection, *, check_ids: Sequence[str]) -> None:
    """Have all hours of checks copied whose results are still there."""
    store.mark_blocks(connection, check_ids)


def trust_copies(connection: Connection) -> None:
    """Whatever is removed from now on has been copied."""
    store.set_copied_from(connection, store.find_horizon(connection))


def end_copying(connection: Connection) -> None:
    """Copy nothing any more."""
    if store.find_copied_from(connection) is not None:
        store.set_copied_from(connection, None)
        store.remove_marks_of_length(connection, hours=COPY)


def count_copies(connection: Connection) -> int:
    """How many hours are to be copied."""
    return store.count_marks(connection, hours=COPY)


def has_copies_due(connection: Connection, *, clock: Clock) -> bool:
    """Whether there is an hour to copy that nobody else copies now."""
    by_ms = clock.now_ms(connection)
    return bool(store.list_due(connection, hours=COPY, by_ms=by_ms, most=1))


def claim_copies(
    connection: Connection, *, clock: Clock, lease_ms: int, most: int
) -> Sequence[HourToCopy]:
    """Some hours to copy, the oldest first; they are left to the caller for so long."""
    now_ms = clock.now_ms(connection)
    due = store.list_due(connection, hours=COPY, by_ms=now_ms, most=most)
    store.postpone(connection, due, hours=COPY, due_ms=now_ms + lease_ms)
    return due


def finish_copies(connection: Connection, *, due: Iterable[HourToCopy]) -> None:
    """These were copied as they were read; what was marked again meanwhile is copied again."""
    for one in due:
        store.remove_mark(connection, one, hours=COPY)


def next_check_before(
    connection: Connection, *, after_id: str, before_ms: int | None
) -> str | None:
    """The next check, in the order of ids, with roll-ups to remove. None: there is none.

    `before_ms`: as in `remove_rollups`.
    """
    for check_id in store.list_checks(connection, after_id=after_id):
        limit_ms = _limit_of(connection, check_id, before_ms)
        if limit_ms is not None and _first_of(connection, check_id) < limit_ms:
            return check_id
    return None


def remove_rollups(connection: Connection, check_id: str, *, before_ms: int | None) -> int:
    """Remove roll-ups of a check that began before, of a month at a time; how many went.

    Only whole days go: the hours of a day whose own roll-up is gone would not be found.
    All of a check that is gone. None: others are kept for ever.
    """
    limit_ms = _limit_of(connection, check_id, before_ms)
    if limit_ms is None:
        return 0
    if limit_ms == _FOREVER_MS:
        store.remove_marks(connection, check_id)
    end_ms = min(limit_ms, _first_of(connection, check_id) + _MONTH_MS)
    return sum(
        store.remove_rollups(connection, check_id, hours=hours, before_ms=end_ms)
        for hours in (HOUR, DAY)
    )


def _limit_of(connection: Connection, check_id: str, before_ms: int | None) -> int | None:
    is_known = check_id in checks.find_types(connection, [check_id])
    if not is_known:
        return _FOREVER_MS
    return None if before_ms is None else before_ms - before_ms % DAY_MS


def _first_of(connection: Connection, check_id: str) -> int:
    firsts = [store.first_rollup(connection, check_id, hours=hours) for hours in (HOUR, DAY)]
    return min((one for one in firsts if one is not None), default=_FOREVER_MS)


_FOREVER_MS: Final = 1 << 62
_MONTH_MS: Final = 30 * DAY_MS
