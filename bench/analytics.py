"""Series and summaries over a million results: from packed hours, from roll-ups, and by plain SQL.

The last line is for machines: `analytics raw_ms=… rollup_ms=… summary_ms=… peer_ms=… ratio=…`. See
README.md beside this file.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from account_fill import PEPPER
from sqlalchemy import Connection

from contract.checks import CheckType
from contract.evidence import HttpEvidence, SeenResponse, SentRequest
from contract.job import RunSource
from contract.result import Outcome, Result, Status, Timings
from contract.wire import encode
from service.accounts.actions import first_start, require_pepper
from service.accounts.keys import Pepper
from service.analytics import actions, store
from service.analytics.actions import SeriesRequest
from service.analytics.reading import Buckets
from service.analytics.windows import DAY_MS, HOUR_MS, MINUTE_MS, Grid
from service.analytics.worker import RollUpWorker, analytics_of
from service.checks import changes as checks
from service.checks.types.url import UrlCheckWrite
from service.clock import Clock
from service.db.engine import Database
from service.db.migrate import migrate
from service.db.sqlite import open_sqlite
from service.db.sqlite_group import driver
from service.results.model import Record, ResultType, RunStatus
from service.results.recording import record
from service.vault.encryption import Scope, Vault

DAYS: Final = 30
CHECKS: Final = 25
MORE_CHECKS: Final = 75
"""With results of the last day only: the summary is about a hundred checks."""
METRICS: Final = ("responseTime_p50", "responseTime_p95", "responseTime_p99")
_GROUP: Final = 5_000


@dataclass(frozen=True, slots=True)
class Filled:
    """The database that is measured."""

    check_ids: list[str]
    end_ms: int


class At(Clock):
    """A clock that stands still."""

    def __init__(self, at_ms: int) -> None:
        self._at_ms = at_ms

    def now_ms(self, _connection: Connection) -> int:
        """The time."""
        return self._at_ms


async def fill(database: Database, *, rows: int) -> Filled:
    """Checks with one result a minute, in the order in which they would have come in."""
    end_ms = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS + 10 * HOUR_MS + 20 * MINUTE_MS
    await database.write(migrate)
    ids, location_id = await database.write(lambda c: _begin(c, end_ms))
    minutes = rows // CHECKS
    runs = _records(ids, location_id, end_ms=end_ms, minutes=minutes)
    while some := list(islice(runs, _GROUP)):
        await database.write(lambda c, some=some: record(c, some, now_ms=end_ms))
    return Filled(ids, end_ms)


def _begin(connection: Connection, now_ms: int) -> tuple[list[str], str]:
    pepper = Pepper(PEPPER.encode())
    require_pepper(connection, pepper)
    secrets = first_start(connection, pepper, now_ms=now_ms)
    if secrets is None:
        raise RuntimeError("The database is not fresh.")
    scope = Scope(secrets.account_id, now_ms, Vault([bytes(32)]))
    made = []
    for number in range(CHECKS + MORE_CHECKS):
        page = {"url": f"https://shop.example/page/{number}"}
        body = {"name": f"Page {number}", "privateLocations": ["default"], "request": page}
        check = UrlCheckWrite.model_validate(body)
        made.append(checks.create(connection, scope, check, auto_assign=False).id)
    return made, secrets.location_id


def _records(ids: list[str], location_id: str, *, end_ms: int, minutes: int) -> Iterator[Record]:
    chance, run_ids = random.Random(20), count(1_000_000)
    for minute in range(minutes, 0, -1):
        some = ids if minute * MINUTE_MS <= DAY_MS else ids[:CHECKS]
        for number, check_id in enumerate(some):
            start_ms = end_ms - minute * MINUTE_MS + number * 101
            yield _record(check_id, location_id, next(run_ids), start_ms, chance)


def _record(
    check_id: str, location_id: str, run_id: int, start_ms: int, chance: random.Random
) -> Record:
    took_ms = round(chance.lognormvariate(5, 0.4), 3)
    has_failed = chance.random() < 0.01
    outcome = Outcome(
        status=Status.FAILED if has_failed else Status.PASSED,
        response_time_ms=took_ms,
        timings=Timings(
            wait=0.1,
            dns=0.5,
            tcp=took_ms / 20,
            tls=took_ms / 10,
            first_byte=took_ms / 2,
            download=took_ms / 4,
            total=took_ms,
        ),
        evidence=HttpEvidence(
            request=SentRequest(method="GET", url="https://shop.example/page"),
            response=SeenResponse(status_code=500 if has_failed else 200),
        ),
    )
    seen = Result(
        job_id=str(run_id),
        fence=1,
        run_id=str(run_id),
        check_id=check_id,
        check_type=CheckType.URL,
        agent_id="0123456789abcdef0123456789abcdef",
        started_at=_STARTED,
        started_after_s=0.01,
        took_s=took_ms / 1000,
        outcome=outcome,
    )
    return Record(
        check_id=check_id,
        run_id=run_id,
        fence=1,
        session_id=None,
        location_id=location_id,
        source=RunSource.SCHEDULER,
        result_type=ResultType.FINAL,
        status=RunStatus(outcome.status),
        attempt=1,
        response_time_ms=took_ms,
        scheduled_ms=start_ms,
        started_ms=start_ms,
        stopped_ms=start_ms + 100,
        body=encode(seen),
    )


_STARTED: Final = datetime.fromisoformat("2026-11-23T00:00:00+00:00")


async def roll_up(database: Database, end_ms: int) -> int:
    """Roll up all hours and days that are over; how many."""
    worker, done = RollUpWorker(At(end_ms)), 0
    while some := await worker.act(database):
        done += some
    return done


def request_of(filled: Filled, *, is_exact: bool) -> SeriesRequest:
    """A month of a check in hours."""
    kind = CheckType.URL
    span = (filled.end_ms - DAYS * DAY_MS, filled.end_ms)
    grid = Grid(span, HOUR_MS)
    analytics = analytics_of(kind)
    if analytics is None:
        raise RuntimeError("URL monitors have no metrics.")
    return SeriesRequest(
        check_id=filled.check_ids[7],
        kind=kind,
        metrics=[analytics.metrics[name] for name in METRICS],
        buckets=Buckets(grid.edges(0, grid.count), span),
        is_exact=is_exact,
    )


def series(connection: Connection, request: SeriesRequest) -> list[list[float | None]]:
    """The numbers of a series, by bucket."""
    [line] = actions.find_series(connection, request)
    return [[tally.value_of(one) for one in request.metrics] for tally in line.tallies]


def summary(connection: Connection, filled: Filled) -> dict[str, Any]:
    """Numbers of a hundred checks over a day."""
    kinds = dict.fromkeys(filled.check_ids, CheckType.URL)
    return actions.summarize(connection, kinds, (filled.end_ms - DAY_MS, filled.end_ms))


_ROWS: Final = """
SELECT ts, response_time_ms FROM result
WHERE check_id = ? AND ts >= ? AND ts < ? AND result_type = 'FINAL'
  AND status NOT IN ('MISSED', 'ERROR') AND response_time_ms IS NOT NULL ORDER BY ts
"""


def by_numpy(connection: Connection, request: SeriesRequest) -> list[list[float | None]]:
    """The same series by one SELECT over the results and NumPy."""
    sqlite = driver(connection)
    rows = sqlite.execute(_ROWS, (request.check_id, *request.buckets.window)).fetchall()
    table = np.array(rows)
    cuts = np.searchsorted(table[:, 0], request.buckets.edges[1:-1])
    return [
        [float(one) for one in np.percentile(part, (50, 95, 99))] if len(part) else [None] * 3
        for part in np.split(table[:, 1], cuts)
    ]


async def measure(
    database: Database, query: Callable[[Connection], Any], times: int
) -> tuple[float, float]:
    """Medians in ms: by the clock, and of the reader's own CPU time."""

    def timed(connection: Connection) -> float:
        began = time.thread_time()
        query(connection)
        return (time.thread_time() - began) * 1000

    took, worked = [], []
    for _ in range(times):
        began = time.perf_counter()
        worked.append(await database.read(timed))
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), statistics.median(worked)


def show(name: str, took: tuple[float, float], remark: str) -> float:
    """Print a row; its median by the clock."""
    print(f"{name:24} median {took[0]:7.1f} ms   cpu {took[1]:7.1f} ms   {remark}", flush=True)
    return took[0]


async def run(options: argparse.Namespace, file: Path) -> None:
    """Fill a database and measure."""
    database = open_sqlite(file)
    began = time.perf_counter()
    filled = await fill(database, rows=options.rows)
    print(f"filled       {time.perf_counter() - began:6.0f} s")
    began = time.perf_counter()
    hours = await roll_up(database, filled.end_ms)
    took_s = time.perf_counter() - began
    print(
        f"rolled up    {took_s:6.0f} s, {hours} hours and days, {1000 * took_s / hours:.2f} ms each"
    )
    exact, rough = request_of(filled, is_exact=True), request_of(filled, is_exact=False)
    times = options.times
    took = await measure(database, lambda c: by_numpy(c, exact), times)
    peer_ms = show("plain SQL and NumPy", took, "30 days, hourly, p50 p95 p99, from results")
    took = await measure(database, lambda c: series(c, exact), times)
    raw_ms = show("exact series", took, "the same numbers, from packed hours")
    await _hold_equal(database, exact)
    took = await measure(database, lambda c: summary(c, filled), times)
    summary_ms = show("summary", took, "100 checks, 24 hours, exact")
    await database.write(lambda c: store.move_horizon(c, before_ms=filled.end_ms))
    took = await measure(database, lambda c: series(c, rough), times)
    rollup_ms = show("series of roll-ups", took, "the same within 1 %")
    await database.close()
    print(
        f"analytics raw_ms={raw_ms:.1f} rollup_ms={rollup_ms:.1f} summary_ms={summary_ms:.1f}"
        f" peer_ms={peer_ms:.1f} ratio={peer_ms / raw_ms:.1f}"
    )


async def _hold_equal(database: Database, request: SeriesRequest) -> None:
    """Stop unless both ways give the same numbers."""
    ours = await database.read(lambda c: series(c, request))
    theirs = await database.read(lambda c: by_numpy(c, request))
    for one, other in zip(ours, theirs, strict=True):
        if not np.allclose(np.array(one, float), np.array(other, float), equal_nan=True):
            sys.exit(f"The numbers differ: {one} and {other}.")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_080_000, help="results of 25 checks")
    parser.add_argument("--times", type=int, default=21)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(parser.parse_args(), Path(folder) / "picket.db"))


if __name__ == "__main__":
    main()
