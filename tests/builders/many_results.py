"""A data folder with 10,000 checks and 1,000,000 results, as a service leaves it.

`python -m tests.builders.many_results FOLDER` makes one; `SERVICE_DATA_DIR=FOLDER` serves it. Rows
go into the tables in bulk. Hours are packed and rolled up as the service does it: there are only a
few patterns of hours, so that each is computed once.
"""

import argparse
import asyncio
import itertools
import json
import random
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import CheckType
from contract.evidence import Hop, HttpEvidence, SeenResponse, SentRequest
from contract.result import Failure, FailureKind, Outcome, Result, Status, Timings
from contract.wire import encode
from service.accounts.model import FirstSecrets
from service.analytics.hours import build, pack
from service.analytics.tallies import merge_rollups, pack_rollup, roll_up, unpack_rollup
from service.analytics.windows import DAY_MS, HOUR_MS, MINUTE_MS
from service.analytics.worker import analytics_of
from service.app import running
from service.checks import changes as checks
from service.checks.schemas import CheckWrite
from service.checks.types.api import ApiCheckWrite
from service.checks.types.tcp import TcpCheckWrite
from service.checks.types.url import UrlCheckWrite
from service.db.ids import new_ids
from service.db.sqlite import open_sqlite
from service.db.sqlite_group import driver
from service.results.model import Finished, RunStatus
from service.settings import Settings, read_settings
from service.vault.encryption import Scope, Vault

API_KEY: Final = "cu_manymanymanymanymanymanymanymanyma"
LOCATION_KEY: Final = "pl_manymanymanymanymanymanymanymanyma"
CHECKS: Final = 10_000
BUSY_EVERY: Final = 200
"""One check in so many runs each minute, and has a week of results."""
RUNS_PER_HOUR: Final = 2
"""How often the others run, for a day."""
_TEAMS: Final = ("team:basket", "team:search", "team:pay", "team:ship", "team:mail")
_STAGES: Final = ("production", "staging", "eu")
_PATTERNS: Final = 32
_KEPT_S: Final = 1_800
"""A folder that is older is made anew: its last day would be half empty."""
_DONE: Final = "many-results.json"
_SERVERS: Final = ("cart", "search", "login", "invoice", "mail", "media", "orders", "stock")
_FAILED: Final = 'JSON_BODY $.status should equal "ok", but it is "degraded".'
_SLOW: Final = "It took 3.1 s; above 3 s it is degraded."


@dataclass(frozen=True, slots=True)
class Many:
    """A folder that is filled."""

    folder: Path
    api_key: str
    busy_check_id: str
    """A check that passes, with a result a minute for a week."""
    failing_check_id: str
    """A check that fails, with a result a minute for a week."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A check that is to be."""

    id: str
    number: int
    kind: CheckType

    @property
    def is_busy(self) -> bool:
        return self.number % BUSY_EVERY == 0

    @property
    def status(self) -> RunStatus:
        """How its newest runs end."""
        if self.number % 250 == 0:
            return RunStatus.FAILED
        return RunStatus.DEGRADED if self.number % 180 == 0 else RunStatus.PASSED

    @property
    def is_activated(self) -> bool:
        return self.number % 50 != 3

    @property
    def is_muted(self) -> bool:
        return self.number % 100 == 7

    @property
    def name(self) -> str:
        return f"{_SERVERS[self.number % len(_SERVERS)]}-{self.number // 8:04} of the shop"


def many_results(folder: Path) -> Many:
    """The folder, made now unless it is there and young."""
    done = folder / _DONE
    if done.exists() and time.time() - done.stat().st_mtime < _KEPT_S:
        told = json.loads(done.read_bytes())
        return Many(folder, API_KEY, told["busy"], told["failing"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = asyncio.run(_make(folder))
    done.write_text(json.dumps({"busy": made.busy_check_id, "failing": made.failing_check_id}))
    return made


async def _make(folder: Path) -> Many:
    settings = _settings(folder)
    async with running(settings) as service:
        secrets = service.first_secrets
    assert secrets is not None
    database = open_sqlite(settings.database_file)
    now_ms = time.time_ns() // 1_000_000
    try:
        kinds = await database.write(lambda c: _make_models(c, secrets, now_ms))
        planned = _plan(now_ms)
        await database.write(lambda c: _copy_checks(c, kinds, planned, secrets, now_ms))
        ids = itertools.count(1_000_000)
        for start in range(0, len(planned), 500):
            some = planned[start : start + 500]
            await database.write(lambda c, some=some: _fill(c, some, ids, now_ms))
        await database.write(lambda c: driver(c).execute("ANALYZE"))
    finally:
        await database.close()
    busy = next(one for one in planned if one.is_busy and one.status is RunStatus.PASSED)
    failing = next(one for one in planned if one.is_busy and one.status is RunStatus.FAILED)
    return Many(folder, API_KEY, busy.id, failing.id)


def _settings(folder: Path) -> Settings:
    return read_settings(
        {
            "SERVICE_DATA_DIR": str(folder),
            "FIRST_API_KEY": API_KEY,
            "FIRST_LOCATION_KEY": LOCATION_KEY,
        }
    )


_BODIES: Final[dict[CheckType, type[CheckWrite]]] = {
    CheckType.URL: UrlCheckWrite,
    CheckType.API: ApiCheckWrite,
    CheckType.TCP: TcpCheckWrite,
}
_REQUESTS: Final[dict[CheckType, dict[str, Any]]] = {
    CheckType.URL: {"url": "https://shop.example/page"},
    CheckType.API: {"method": "GET", "url": "https://shop.example/orders"},
    CheckType.TCP: {"hostname": "shop.example", "port": 443},
}


def _make_models(
    connection: Connection, secrets: FirstSecrets, now_ms: int
) -> dict[CheckType, dict[str, dict[str, Any]]]:
    """One check of each type, made as every other way makes them: its rows, by table."""
    scope = Scope(secrets.account_id, now_ms - 40 * DAY_MS, Vault([bytes(32)]))
    found = {}
    for kind, body in _BODIES.items():
        fields = {
            "name": "Model",
            "privateLocations": ["default"],
            "request": _REQUESTS[kind],
        }
        made = checks.create(connection, scope, body.model_validate(fields), auto_assign=False)
        tables = ("check_", "check_location", "schedule")
        found[kind] = {table: _take(connection, table, made.id) for table in tables}
        checks.delete(connection, scope, made.id)
    return found


def _take(connection: Connection, table: str, check_id: str) -> dict[str, Any]:
    column = "id" if table == "check_" else "check_id"
    found = driver(connection).execute(f"SELECT * FROM {table} WHERE {column} = ?", (check_id,))
    names = [one[0] for one in found.description]
    return dict(zip(names, found.fetchone(), strict=True))


def _plan(now_ms: int) -> list[_Planned]:
    ids = new_ids(now_ms - 40 * DAY_MS + number for number in range(CHECKS))
    kinds = (CheckType.URL, CheckType.URL, CheckType.API, CheckType.TCP)
    return [_Planned(one, number, kinds[number % 4]) for number, one in enumerate(ids)]


def _copy_checks(
    connection: Connection,
    models: dict[CheckType, dict[str, dict[str, Any]]],
    planned: Sequence[_Planned],
    secrets: FirstSecrets,
    now_ms: int,
) -> None:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("check_location", "schedule")}
    own, tags = [], []
    for one in planned:
        model = models[one.kind]
        wanted = (_TEAMS[one.number % 5], _STAGES[one.number % 3])
        doc = json.loads(model["check_"]["doc"])
        doc |= {"name": one.name, "tags": list(wanted), "activated": one.is_activated}
        doc |= {"muted": one.is_muted, "frequency": 1 if one.is_busy else 30}
        changes = {"id": one.id, "name": one.name, "doc": json.dumps(doc), "muted": one.is_muted}
        changes |= {"activated": one.is_activated, "frequency": doc["frequency"]}
        own.append({**model["check_"], **changes})
        tags += [(one.id, tag) for tag in wanted]
        rows["check_location"].append({**model["check_location"], "check_id": one.id})
        if one.is_activated:
            period_ms = doc["frequency"] * MINUTE_MS
            when = {"period_ms": period_ms, "next_run_ms": now_ms + period_ms}
            rows["schedule"].append({**model["schedule"], "check_id": one.id, **when})
    _insert(connection, "check_", own)
    for table, some in rows.items():
        _insert(connection, table, some)
    driver(connection).executemany("INSERT INTO check_tag (check_id, tag) VALUES (?, ?)", tags)


def _insert(connection: Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(rows[0])
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)})"
    driver(connection).executemany(statement, (tuple(row.values()) for row in rows))


@dataclass(frozen=True, slots=True)
class _Hour:
    """A pattern of results in an hour, of one check type."""

    runs: Sequence[tuple[int, RunStatus, float, bytes]]
    """Offset from the hour, status, response time, body."""
    block: tuple[bytes, bytes]
    rolled: bytes


@cache
def _hour(kind: CheckType, runs: int, number: int, status: RunStatus) -> _Hour:
    """`status`: how all runs of the hour end; passed: nearly all of them."""
    chance = random.Random(f"{kind} {runs} {number}")
    made = []
    for place in range(runs):
        offset_ms = HOUR_MS * place // runs + 1_000 * (number % 20)
        took_ms = round(chance.lognormvariate(5, 0.4), 3)
        ends = status
        if status is RunStatus.PASSED and chance.random() < 0.004:
            ends = chance.choice([RunStatus.FAILED, RunStatus.DEGRADED])
        made.append((offset_ms, ends, took_ms, _body(kind, ends, took_ms)))
    analytics = analytics_of(kind)
    assert analytics is not None
    finals = (
        Finished("", "", offset_ms, "default", ends, 1, took_ms, body)
        for offset_ms, ends, took_ms, body in made
    )
    block = build(finals, analytics, hour_ms=0)
    return _Hour(made, pack(block), pack_rollup(roll_up(block, analytics.stored)))


def _body(kind: CheckType, status: RunStatus, took_ms: float) -> bytes:
    has_failed = status is RunStatus.FAILED
    outcome = Outcome(
        status=Status(status.value),
        failure=Failure(kind=FailureKind.ASSERTION, message=_FAILED) if has_failed else None,
        degraded_because=_SLOW if status is RunStatus.DEGRADED else None,
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
        evidence=None if kind is CheckType.TCP else _evidence(500 if has_failed else 200, took_ms),
    )
    return encode(
        Result(
            job_id="1",
            fence=1,
            run_id="1",
            check_id="",
            check_type=kind,
            agent_id="0123456789abcdef0123456789abcdef",
            started_at=datetime(2026, 11, 23, tzinfo=UTC),
            started_after_s=0.01,
            took_s=took_ms / 1000,
            outcome=outcome,
        )
    )


def _evidence(status_code: int, took_ms: float) -> HttpEvidence:
    url = "https://shop.example/page"
    return HttpEvidence(
        request=SentRequest(method="GET", url=url),
        response=SeenResponse(status_code=status_code, headers={"content-type": "text/html"}),
        hops=(Hop(url=url, status_code=status_code, remote_address="192.0.2.7", total_ms=took_ms),),
        remote_address="192.0.2.7",
    )


def _hours_of(one: _Planned, now_ms: int) -> Iterator[tuple[int, _Hour]]:
    """Each hour of a check, oldest first, with its pattern; those of a day rest on its number."""
    back = 7 * 24 if one.is_busy else 24
    runs = 60 if one.is_busy else RUNS_PER_HOUR
    current_ms = now_ms - now_ms % HOUR_MS
    for hours in range(back, -1, -1):
        hour_ms = current_ms - hours * HOUR_MS
        ends = one.status if hours < 2 else RunStatus.PASSED
        yield hour_ms, _hour(one.kind, runs, (one.number * 7 + hours) % _PATTERNS, ends)


_RESULT: Final = """
INSERT INTO result (check_id, ts, id, run_id, fence, session_id, location, source, result_type,
  status, cause, attempt, response_time_ms, over_max_response_time, scheduled_ms, stopped_ms,
  created_ms, due_times)
VALUES (?, ?, ?, ?, 1, NULL, 'default', 'SCHEDULER', 'FINAL', ?, NULL, 1, ?, 0, ?, ?, ?, NULL)
"""
_FINAL: Final = "INSERT INTO run_final (run_id, fence, result_ms, body) VALUES (?, 1, ?, ?)"
_STATE: Final = """
INSERT INTO check_state (check_id, status, since_ms, result_id, result_ms) VALUES (?, ?, ?, ?, ?)
"""
_LEVEL: Final = """
INSERT INTO alert_state (check_id, level, since_ms, began_ms, runs, recorded, told, noticed_ms,
  reminders, timer_ms, result_id, alert_id, incident_id, round_ms, open_round_ms)
VALUES (?, ?, ?, ?, 3, ?, 'PASSING', 0, 0, NULL, ?, NULL, NULL, NULL, NULL)
"""
_LEVELS: Final = {RunStatus.FAILED: "FAILING", RunStatus.DEGRADED: "DEGRADED"}
_BLOCK: Final = "INSERT INTO hour_block (check_id, hour_ms, head, rest) VALUES (?, ?, ?, ?)"
_ROLLUP: Final = "INSERT INTO rollup (check_id, hours, start_ms, body) VALUES (?, ?, ?, ?)"
_DIRTY: Final = "INSERT INTO rollup_dirty (check_id, hours, start_ms, due_ms) VALUES (?, ?, ?, ?)"


def _fill(
    connection: Connection, planned: Iterable[_Planned], run_ids: Iterator[int], now_ms: int
) -> None:
    """Results of some checks, with all that the service makes of them."""
    sqlite = driver(connection)
    current_ms = now_ms - now_ms % HOUR_MS
    for one in planned:
        hours = list(_hours_of(one, now_ms))
        runs = [
            (hour_ms + offset_ms, ends, took_ms, body)
            for hour_ms, hour in hours
            for offset_ms, ends, took_ms, body in hour.runs
            if hour_ms + offset_ms < now_ms - 500
        ]
        ids = new_ids(run[0] for run in runs)
        numbers = list(itertools.islice(run_ids, len(runs)))
        named = list(zip(ids, numbers, runs, strict=True))
        sqlite.executemany(
            _RESULT,
            (
                (one.id, ts, own_id, number, ends.value, took_ms, ts, ts + 100, ts + 120)
                for own_id, number, (ts, ends, took_ms, _) in named
            ),
        )
        sqlite.executemany(_FINAL, ((number, ts, body) for _, number, (ts, _, _, body) in named))
        _store_state(sqlite, one, named)
        over = [(hour_ms, hour) for hour_ms, hour in hours if hour_ms < current_ms]
        sqlite.executemany(_BLOCK, ((one.id, hour_ms, *hour.block) for hour_ms, hour in over))
        sqlite.executemany(_ROLLUP, ((one.id, 1, hour_ms, hour.rolled) for hour_ms, hour in over))
        days = _roll_up_days(over, today_ms=now_ms - now_ms % DAY_MS)
        sqlite.executemany(_ROLLUP, ((one.id, 24, day_ms, body) for day_ms, body in days))
        marks = [(one.id, 1, current_ms, current_ms + HOUR_MS)]
        today_ms = now_ms - now_ms % DAY_MS
        marks.append((one.id, 24, today_ms, today_ms + DAY_MS))
        sqlite.executemany(_DIRTY, marks)


def _store_state(sqlite: Any, one: _Planned, named: Sequence[tuple[str, int, Any]]) -> None:
    newest_id, _, (newest_ms, ends, _, _) = named[-1]
    began_ms = newest_ms
    for _, _, (ts, earlier, _, _) in reversed(named):
        if earlier is not ends:
            break
        began_ms = ts
    sqlite.execute(_STATE, (one.id, ends.value, began_ms, newest_id, newest_ms))
    if level := _LEVELS.get(ends):
        sqlite.execute(_LEVEL, (one.id, level, began_ms, began_ms, level, newest_id))


def _roll_up_days(
    hours: Sequence[tuple[int, _Hour]], *, today_ms: int
) -> Iterator[tuple[int, bytes]]:
    for day_ms, some in itertools.groupby(hours, key=lambda one: one[0] - one[0] % DAY_MS):
        if day_ms < today_ms:
            yield day_ms, _merge(tuple(hour.rolled for _, hour in some))


@cache
def _merge(rolled: tuple[bytes, ...]) -> bytes:
    return pack_rollup(merge_rollups(unpack_rollup(body) for body in rolled))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    began = time.monotonic()
    made = many_results(parser.parse_args().folder)
    print(  # noqa: T201 - for whoever measures
        f"{made.folder}: {time.monotonic() - began:.0f} s; API key {made.api_key}"
    )


if __name__ == "__main__":
    main()
