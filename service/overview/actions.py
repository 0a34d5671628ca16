"""What pages ask about all checks of an account, within the caller's transaction."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.analytics import actions as analytics
from service.analytics.actions import AnyTally
from service.analytics.distribution import Aggregation
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
from service.overview.rules import MOST_MARKS, POINTS, mark_buckets, summarize
from service.results import actions as results
from service.results.model import Ending, RunStatus

_FEW_RUNS: Final = 150
"""For a check with more in longer than an hour, roll-ups are read."""
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
    expected = {row.id: _expect(row, len(places.get(row.id, ())), window=window) for row in rows}
    # Roll-ups know whole hours only.
    most = math.inf if window[1] - window[0] <= HOUR_MS else _FEW_RUNS
    few = [row for row in rows if expected[row.id] <= most]
    many = [row for row in rows if expected[row.id] > most]
    found = results.list_endings(connection, [row.id for row in few], window=window)
    recent = {
        row.id: summarize(
            _correct(connection, row, found.get(row.id, ()), window),
            window=window,
            expected=expected[row.id],
        )
        for row in few
    }
    return recent | _find_roughly(connection, many, window=window)


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


def _find_roughly(
    connection: Connection, rows: Sequence[OverviewRow], *, window: tuple[int, int]
) -> dict[str, Recent]:
    """What roll-ups of hours and days tell; of a day also each run that was no pass.

    Roll-ups do not know which runs were degraded: of more than a day they are looked for.
    """
    if not rows:
        return {}
    kinds = {row.id: row.kind for row in rows}
    edges = _edges(window)
    buckets = analytics.tally_roll_ups(connection, kinds, edges, window)
    is_short = window[1] - window[0] <= DAY_MS
    if is_short:
        whole = {check_id: [analytics.merge(some)] for check_id, some in buckets.items()}
    else:
        whole = analytics.tally_roll_ups(connection, kinds, window, window)
    bad: Mapping[str, Sequence[Ending]]
    if is_short:
        bad = results.list_endings(connection, list(kinds), window=window, with_passes=False)
    else:
        bad = _find_degraded(connection, list(kinds), edges)
    return {
        row.id: _merge(
            whole[row.id][0],
            buckets[row.id],
            _correct(connection, row, bad.get(row.id, ()), window),
            window=window if is_short else (edges[0], edges[-1]),
        )
        for row in rows
    }


def _find_degraded(
    connection: Connection, check_ids: Sequence[str], edges: Sequence[int]
) -> dict[str, list[Ending]]:
    """One degraded run for each bucket that has any, by check."""
    window, step_ms = (edges[0], edges[-1]), edges[1] - edges[0]
    found = results.find_degraded(connection, check_ids, window=window, step_ms=step_ms)
    return {
        check_id: [Ending(at_ms, RunStatus.DEGRADED, "") for at_ms in times]
        for check_id, times in found.items()
    }


def _edges(window: tuple[int, int]) -> list[int]:
    """Where buckets begin and the last one ends: whole hours, at most `MOST_MARKS` of them."""
    hours = -(-(window[1] - window[0]) // HOUR_MS)
    step_ms = -(-hours // MOST_MARKS) * HOUR_MS
    first_ms = window[0] - window[0] % step_ms
    return list(range(first_ms, window[1] + step_ms, step_ms))


def _merge(
    whole: AnyTally,
    buckets: Sequence[AnyTally],
    bad: Sequence[Ending],
    *,
    window: tuple[int, int],
) -> Recent:
    times = [_time(one, Aggregation.AVG) for one in buckets]
    is_short = window[1] - window[0] <= DAY_MS
    marks: list[RunStatus | None] = [_mark(one, with_failures=not is_short) for one in buckets]
    missed = None
    if is_short:
        # Passes are known by the hour, all else exactly.
        marks = [marks[place * len(marks) // MOST_MARKS] for place in range(MOST_MARKS)]
        missed = sum(one.due_times or 1 for one in bad if not one.status.judges_target)
    return Recent(
        marks=mark_buckets(bad, marks, window=window),
        runs=whole.runs,
        failed=whole.runs - whole.successes,
        missed=missed,
        p95_ms=_time(whole, Aggregation.P95),
        line=_thin_out(times),
    )


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
