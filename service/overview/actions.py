"""What pages ask about all checks of an account, within the caller's transaction."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import actions as analytics
from service.analytics.actions import AnyTally
from service.analytics.distribution import Aggregation, compute
from service.analytics.histogram import Histogram
from service.analytics.measures import RESPONSE_TIME
from service.analytics.windows import DAY_MS, HOUR_MS
from service.heartbeats import actions as heartbeats
from service.locations.views import CONNECTED_MS
from service.overview import store
from service.overview.model import (
    CheckState,
    OverviewRow,
    QuietLocation,
    Recent,
    StateCounts,
    Wanted,
)
from service.overview.rules import POINTS, empty_slots, find_slot_ms, mark_slots, summarize
from service.results import actions as results
from service.results.model import Ending, RunStatus

_FEW_RUNS: Final = ((HOUR_MS, math.inf), (6 * HOUR_MS, 400), (math.inf, 150))
"""For a check with more runs in a window up to so long, roll-ups are read for its whole hours."""
_FULL: Final = 0.9
"""With this share of the runs that it should have, an hour counts as full."""
_LATENCY: Final = "latencyAvg"
_NEWEST_RUNS: Final = 20
"""Among so many results of a check its locations are looked for."""


def count_states(connection: Connection, account_id: str, *, now_ms: int) -> StateCounts:
    """How the checks of an account stand."""
    return store.count_states(connection, account_id, now_ms=now_ms)


def find_state(
    connection: Connection, check_id: str, *, now_ms: int
) -> tuple[CheckState, int | None]:
    """How a check stands, and since when. None: nobody knows."""
    return store.find_state(connection, check_id, now_ms=now_ms)


def list_rows(
    connection: Connection,
    account_id: str,
    wanted: Wanted,
    *,
    now_ms: int,
    page: tuple[int, int],
) -> list[OverviewRow]:
    """Checks, what is in trouble first, then by name; the page is a limit and an offset."""
    return store.list_rows(connection, account_id, wanted, now_ms=now_ms, page=page)


def count_headings(
    connection: Connection, account_id: str, wanted: Wanted, *, now_ms: int
) -> Mapping[str, Mapping[CheckState, int]]:
    """How many of the shown checks stand how, by heading; one that is empty without grouping."""
    return store.count_headings(connection, account_id, wanted, now_ms=now_ms)


def list_tags(connection: Connection, account_id: str, *, most: int) -> list[str]:
    """The first tags of the account's checks and groups, in the order of the alphabet."""
    return store.list_tags(connection, account_id, most=most)


def find_tags(connection: Connection, check_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The own tags of checks, by check; one without any is left out."""
    return store.find_tags(connection, check_ids)


def list_quiet_locations(
    connection: Connection, account_id: str, *, now_ms: int
) -> list[QuietLocation]:
    """The locations where checks should run, and no agent is connected."""
    used = store.list_used_locations(connection, account_id)
    return [
        one for one in used if one.last_seen_ms is None or now_ms - one.last_seen_ms > CONNECTED_MS
    ]


def find_recent(
    connection: Connection,
    rows: Sequence[OverviewRow],
    places: Mapping[str, Sequence[str]],
    *,
    window: tuple[int, int],
) -> dict[str, Recent]:
    """What the runs of checks come to over a window, by check.

    `places`: the locations of each check.
    """
    most = next(
        (few_runs for length_ms, few_runs in _FEW_RUNS if window[1] - window[0] <= length_ms)
    )
    few: list[OverviewRow] = []
    many: list[OverviewRow] = []
    for row in rows:
        expected = _expect(row, len(places.get(row.id, ())), window=window)
        (few if expected <= most else many).append(row)
    found = results.list_endings(connection, [row.id for row in few], window=window)
    recent = {
        row.id: summarize(_correct(connection, row, found.get(row.id, ()), window), window=window)
        for row in few
    }
    return recent | _find_roughly(connection, many, places, window=window)


def find_failing_locations(connection: Connection, check_id: str) -> tuple[int, int]:
    """At how many locations the newest look was no pass, and at how many anybody looked lately."""
    newest: dict[str, RunStatus] = {}
    for run in results.list_newest_runs(connection, check_id, limit=_NEWEST_RUNS):
        if run.status.judges_target:
            newest.setdefault(run.location, run.status)
    return sum(one is not RunStatus.PASSED for one in newest.values()), len(newest)


def find_reasons(connection: Connection, rows: Iterable[OverviewRow]) -> Mapping[str, str]:
    """Why checks that fail or are degraded do so, by check, in the words of their newest result."""
    bad = {CheckState.FAILING, CheckState.DEGRADED}
    named = {row.id: row.result_id for row in rows if row.result_id and row.state in bad}
    return results.find_reasons(connection, named)


def _expect(row: OverviewRow, places: int, *, window: tuple[int, int]) -> int:
    """How many runs a check has in a stretch of time, by its settings and its age."""
    each = max(places, 1) if row.runs_parallel else 1
    length_ms = max(window[1] - max(window[0], row.created_ms), 0)
    return each * length_ms // max(row.period_ms, 1)


def _correct(
    connection: Connection, row: OverviewRow, endings: Sequence[Ending], window: tuple[int, int]
) -> Sequence[Ending]:
    """Without failures of a heartbeat that a late ping has disproved."""
    if row.kind is not CheckType.HEARTBEAT:
        return endings
    wrong = heartbeats.list_corrected(connection, row.id, window=window)
    return [one._replace(status=RunStatus.PASSED) if one.id in wrong else one for one in endings]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rolled:
    """What roll-ups tell of a check in the whole hours of a window."""

    whole: AnyTally
    """All of them together."""
    edges: Sequence[int]
    """Where buckets begin, and where the last one ends."""
    buckets: Sequence[AnyTally]
    partial: Mapping[int, Sequence[Ending]]
    """The runs of hours in which there were too few, by when these begin."""


def _find_roughly(
    connection: Connection,
    rows: Sequence[OverviewRow],
    places: Mapping[str, Sequence[str]],
    *,
    window: tuple[int, int],
) -> dict[str, Recent]:
    """What roll-ups tell of the whole hours of a window, and the runs of its first and last part.

    In a day each run that was no pass is known as well, and in more those that were degraded.
    """
    if not rows:
        return {}
    kinds = {row.id: row.kind for row in rows}
    hours = -(-window[0] // HOUR_MS) * HOUR_MS, window[1] // HOUR_MS * HOUR_MS
    edges = _edges(window, hours)
    buckets = analytics.tally_roll_ups(connection, kinds, edges, hours)
    ends = _list_ends(connection, list(kinds), window, hours)
    is_short = window[1] - window[0] <= DAY_MS
    bad: Mapping[str, Sequence[Ending]]
    partial: Mapping[str, Mapping[int, Sequence[Ending]]] = {}
    if is_short:
        partial = _list_partial(connection, rows, places, edges, buckets)
        whole = {check_id: [analytics.merge(some)] for check_id, some in buckets.items()}
        bad = results.list_endings(connection, list(kinds), window=window, with_passes=False)
    else:
        whole = analytics.tally_roll_ups(connection, kinds, hours, hours)
        bad = _find_degraded(connection, list(kinds), window)
    return {
        row.id: _merge(
            row,
            _Rolled(
                whole=whole[row.id][0],
                edges=edges,
                buckets=buckets[row.id],
                partial=partial.get(row.id, {}),
            ),
            _correct(connection, row, ends.get(row.id, ()), window),
            _correct(connection, row, bad.get(row.id, ()), window),
            window=window,
        )
        for row in rows
    }


def _list_partial(
    connection: Connection,
    rows: Sequence[OverviewRow],
    places: Mapping[str, Sequence[str]],
    edges: Sequence[int],
    buckets: Mapping[str, Sequence[AnyTally]],
) -> dict[str, dict[int, Sequence[Ending]]]:
    """The runs of hours in which a check had too few, by check and by when these begin."""
    found: dict[str, dict[int, Sequence[Ending]]] = {}
    for number, hour in enumerate(pairwise(edges)):
        some = []
        for row in rows:
            least = _FULL * _expect(row, len(places.get(row.id, ())), window=hour)
            if 0 < buckets[row.id][number].runs < least:
                some.append(row.id)
        endings = results.list_endings(connection, some, window=hour) if some else {}
        for check_id in some:
            looks = [one for one in endings.get(check_id, ()) if one.status.judges_target]
            found.setdefault(check_id, {})[hour[0]] = looks
    return found


def _list_ends(
    connection: Connection,
    check_ids: Sequence[str],
    window: tuple[int, int],
    hours: tuple[int, int],
) -> dict[str, list[Ending]]:
    """The runs before the first whole hour of a window and after its last one, by check."""
    found: dict[str, list[Ending]] = {}
    for part in ((window[0], hours[0]), (hours[1], window[1])):
        for check_id, endings in results.list_endings(connection, check_ids, window=part).items():
            looks = [one for one in endings if one.status.judges_target]
            found.setdefault(check_id, []).extend(looks)
    return found


def _find_degraded(
    connection: Connection, check_ids: Sequence[str], window: tuple[int, int]
) -> dict[str, list[Ending]]:
    """One degraded run for each slot that has any, by check."""
    step_ms = find_slot_ms(window)
    found = results.find_degraded(connection, check_ids, window=window, step_ms=step_ms)
    return {
        check_id: [Ending(at_ms, RunStatus.DEGRADED, "") for at_ms in times]
        for check_id, times in found.items()
    }


def _edges(window: tuple[int, int], hours: tuple[int, int]) -> list[int]:
    """Where buckets of whole hours begin and the last one ends: each is an hour, or a slot."""
    slot_ms = find_slot_ms(window)
    if slot_ms <= HOUR_MS:
        return list(range(hours[0], hours[1] + 1, HOUR_MS))
    nearest = (
        (at_ms + HOUR_MS // 2) // HOUR_MS * HOUR_MS
        for at_ms in range(window[0] + slot_ms, window[1], slot_ms)
    )
    inner = [at_ms for at_ms in nearest if hours[0] < at_ms < hours[1]]
    return [hours[0], *inner, hours[1]]


def _merge(
    row: OverviewRow,
    rolled: _Rolled,
    ends: Sequence[Ending],
    bad: Sequence[Ending],
    *,
    window: tuple[int, int],
) -> Recent:
    whole, is_short = rolled.whole, window[1] - window[0] <= DAY_MS
    marks = _mark_hours(row, rolled, window)
    for some in (ends, *rolled.partial.values()):
        marks = mark_slots(some, marks, window=window)
    failures = sum(one.status.has_failures for one in ends)
    return Recent(
        marks=mark_slots(bad, marks, window=window),
        runs=whole.runs + len(ends),
        failed=whole.runs - whole.successes + failures,
        # Passes are known by the hour, all else exactly; of more than a day that is not counted.
        missed=sum(one.due_times or 1 for one in bad if not one.status.judges_target)
        if is_short
        else None,
        p95_ms=_find_p95(whole, ends),
        line=_thin_out(_time(one, Aggregation.AVG) for one in rolled.buckets),
    )


def _mark_hours(
    row: OverviewRow, rolled: _Rolled, window: tuple[int, int]
) -> list[RunStatus | None]:
    """Slots by the hour in which their middle lies; those of partial hours are empty."""
    marks, slot_ms = empty_slots(window), find_slot_ms(window)
    edges, with_failures = rolled.edges, window[1] - window[0] > DAY_MS
    for place in range(len(marks)):
        middle_ms = window[0] + place * slot_ms + slot_ms // 2
        is_inside = edges[0] <= middle_ms < edges[-1]
        if not is_inside or middle_ms + slot_ms // 2 <= row.created_ms:
            continue
        number = bisect_right(edges, middle_ms) - 1
        if edges[number] not in rolled.partial:
            marks[place] = _mark(rolled.buckets[number], with_failures=with_failures)
    return marks


def _find_p95(tally: AnyTally, ends: Sequence[Ending]) -> float | None:
    numbers = tally.numbers.get(RESPONSE_TIME) or tally.numbers.get(_LATENCY) or Histogram()
    times = (one.response_time_ms for one in ends if one.response_time_ms is not None)
    numbers.merge(Histogram.of(times).pack())
    return compute(numbers, Aggregation.P95)


def _time(tally: AnyTally, aggregation: Aggregation) -> float | None:
    """Pings have a latency instead of a response time."""
    found = tally.compute(RESPONSE_TIME, aggregation)
    return tally.compute(_LATENCY, aggregation) if found is None else found


def _mark(tally: AnyTally, *, with_failures: bool) -> RunStatus | None:
    if with_failures and tally.successes < tally.runs:
        return RunStatus.FAILED
    return RunStatus.PASSED if tally.successes else None


def _thin_out(values: Iterable[float | None]) -> list[float | None]:
    """At most `POINTS`, each the mean of neighbours."""
    known = list(values)
    step = -(-len(known) // POINTS)
    parts = [known[start : start + step] for start in range(0, len(known), step)]
    return [_mean([one for one in part if one is not None]) for part in parts]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
