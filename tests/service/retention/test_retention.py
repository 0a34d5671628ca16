"""What is kept long enough goes, and never an hour that is not rolled up."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Table, func, insert, select, text

from service.clock import Clock
from service.db.ids import new_id, new_ids
from service.db.partitions import days
from service.db.tables.alerting import check_alert, location_alert
from service.db.tables.analytics import hour_block, rollup, rollup_dirty
from service.db.tables.checks import heartbeat_correction
from service.db.tables.runs import late_result, result, result_detail, run_final
from service.object_store.folder import FolderStore
from service.results.assets import RunFile
from service.results.model import ResultType
from service.retention.model import Kept
from service.retention.retention import GROUP, Retention, _remove_results
from service.sessions import actions as sessions
from service.sessions.model import Session, SessionStatus
from service.sessions.store import _OLD, insert_sessions
from tests.builders.engines import ON_POSTGRESQL, ON_SQLITE
from tests.builders.made_checks import made
from tests.builders.runs import BEGIN_MS, FAILED_FAST, query, roll_up_all, run_each_minute
from tests.builders.stored_results import passed, store
from tests.fakes.clock import FakeClock
from tests.servers.public_api import PublicApi

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
FOREVER = Kept(results=0, rollups=0, files=0, late_results=0, alerts=0)


async def counts(api: PublicApi, *tables: Table) -> list[int]:
    def read(connection: Connection) -> list[int]:
        queries = (select(func.count()).select_from(one) for one in tables)
        return [connection.execute(one).scalar_one() for one in queries]

    return await api.database.read(read)


async def sums(api: PublicApi, check: dict[str, Any], *, hours: int) -> list[float]:
    """The response times of each hour, added up from roll-ups."""
    asked = query(hours=hours, interval=60, metrics="responseTime_sum")
    body = (await api.alice.get(f"/v1/analytics/url-monitors/{check['id']}?{asked}")).body
    assert body["source"] == "rollups"
    return [row["responseTime_sum"] for row in body["series"][0]["data"]]


async def sweep(api: PublicApi, now_ms: int, **kept: int) -> int:
    clock = FakeClock(now_ms)
    retention = Retention(clock, Kept(**kept), api.backend.artifacts)
    return await retention.sweep(api.database)


async def test_old_results_go_with_their_details_once_their_hours_are_rolled_up(
    api: PublicApi,
) -> None:
    check = await made(api.alice)
    minutes = 60 + GROUP  # more than one transaction removes
    await run_each_minute(api, check, [10.0] * minutes)
    tried = {"result_type": ResultType.ATTEMPT, "started_ms": BEGIN_MS}
    await store(api, check, FAILED_FAST, **tried)
    await store(api, check, None, started_ms=BEGIN_MS + 1)
    now_ms = BEGIN_MS + 30 * DAY_MS + 4 * HOUR_MS + 59 * 60_000
    tables = (result, run_final, result_detail)
    all_there = [minutes + 2, minutes + 1, 1]
    assert await sweep(api, now_ms) == 0
    assert await counts(api, *tables) == all_there
    await roll_up_all(api)
    assert await sweep(api, now_ms) == 242
    assert await counts(api, *tables, hour_block) == [20, 20, 0, 1]
    path = f"/v1/analytics/url-monitors/{check['id']}?metrics=responseTime_sum,availability"
    series = (
        await api.alice.get(f"{path}&from={BEGIN_MS / 1000}&to={BEGIN_MS / 1000 + 18000}")
    ).body
    assert series["source"] == "rollups"
    sums = [row["responseTime_sum"] for row in series["series"][0]["data"]]
    assert sums == [600.0, 600.0, 600.0, 600.0, 200.0]


async def test_no_hour_goes_that_has_changed_since_it_was_rolled_up(api: PublicApi) -> None:
    check, other = await made(api.alice), await made(api.alice)
    for one in (check, other):
        await run_each_minute(api, one, [10.0] * 180)
    await roll_up_all(api)
    await store(api, check, FAILED_FAST, started_ms=BEGIN_MS + HOUR_MS + 5)
    now_ms = BEGIN_MS + 40 * DAY_MS
    assert await sweep(api, now_ms) == 60 + 180
    await roll_up_all(api)
    assert await sweep(api, now_ms) == 121
    assert await counts(api, result, hour_block, rollup_dirty) == [0, 0, 0]
    assert await counts(api, rollup) == [8]


async def test_a_result_that_comes_after_its_hour_has_gone_replaces_no_roll_up(
    api: PublicApi,
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    now_ms = BEGIN_MS + 40 * DAY_MS
    await sweep(api, now_ms)
    await store(api, check, FAILED_FAST, started_ms=BEGIN_MS + 5)
    await roll_up_all(api)
    await sweep(api, now_ms)
    path = f"/v1/analytics/url-monitors/{check['id']}?metrics=responseTime_sum"
    series = (
        await api.alice.get(f"{path}&from={BEGIN_MS / 1000}&to={BEGIN_MS / 1000 + 3600}")
    ).body
    assert series["series"][0]["data"][0]["responseTime_sum"] == 600.0
    assert await counts(api, result, rollup_dirty) == [0, 0]


@ON_POSTGRESQL
async def test_a_day_goes_as_a_whole_once_all_of_it_is_rolled_up(api: PublicApi) -> None:
    check, paused = await made(api.alice), await made(api.alice)
    now_ms = await api.database.read(Clock().now_ms)
    first_ms = (now_ms // DAY_MS - 35) * DAY_MS
    await api.database.write(
        lambda c: days.create_past(c, range(first_ms, first_ms + 35 * DAY_MS, DAY_MS))
    )
    for number in (0, 1, 2, 6):
        noon_ms = first_ms + number * DAY_MS + 12 * HOUR_MS
        await run_each_minute(api, check, [10.0] * 3, from_ms=noon_ms)
        await store(api, check, FAILED_FAST, result_type=ResultType.ATTEMPT, started_ms=noon_ms + 1)
    await roll_up_all(api)
    await store(api, paused, FAILED_FAST, started_ms=first_ms + 2 * DAY_MS)
    kept = {"rollups": 0, "late_results": 0, "alerts": 0}
    await sweep(api, now_ms, **kept)
    rows = (result, run_final, result_detail, hour_block)
    assert await counts(api, *rows) == [9, 7, 2, 2], "the third day has an hour that changed"
    assert (await api.database.read(days.list_days))[0].from_ms == first_ms + 2 * DAY_MS
    await roll_up_all(api)
    await sweep(api, now_ms, **kept)
    assert await counts(api, *rows) == [4, 3, 1, 1]
    assert (await api.database.read(days.list_days))[0].from_ms == first_ms + 5 * DAY_MS


async def test_a_correction_goes_with_its_result(api: PublicApi) -> None:
    check = await made(api.alice, "heartbeat")
    for day in (0, 5):
        await store(api, check, FAILED_FAST, started_ms=BEGIN_MS + day * DAY_MS)

    def correct(connection: Connection) -> None:
        for row in connection.execute(select(result.c.id, result.c.ts)).all():
            one = {"check_id": check["id"], "result_id": row.id, "result_ms": row.ts}
            connection.execute(insert(heartbeat_correction), one)

    await api.database.write(correct)
    await roll_up_all(api)
    for day, left in ((31, 1), (36, 0)):
        await sweep(api, BEGIN_MS + day * DAY_MS, rollups=0)
        assert await counts(api, result, heartbeat_correction) == [left, left]


async def test_roll_ups_go_in_their_own_time(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await run_each_minute(api, check, [10.0] * 60, from_ms=BEGIN_MS + 50 * DAY_MS)
    await roll_up_all(api)
    assert await counts(api, rollup) == [4]
    now_ms = BEGIN_MS + 101 * DAY_MS
    assert await sweep(api, now_ms, results=0, rollups=0) == 0
    assert await sweep(api, now_ms, results=0, rollups=100) == 2
    assert await counts(api, rollup) == [2]


async def test_a_day_keeps_its_roll_ups_until_all_of_it_is_old(api: PublicApi) -> None:
    check = await made(api.alice)
    for hour in (1, 23):
        await run_each_minute(api, check, [10.0] * 60, from_ms=BEGIN_MS + hour * HOUR_MS)
    await roll_up_all(api)
    kept = {"results": 0, "rollups": 100}
    now_ms = BEGIN_MS + 100 * DAY_MS + 12 * HOUR_MS
    assert await sweep(api, now_ms, **kept) == 0
    assert await counts(api, rollup) == [3]
    assert await sweep(api, now_ms + 12 * HOUR_MS, **kept) == 3


async def test_what_a_deleted_check_left_goes(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    await run_each_minute(api, check, [10.0], from_ms=BEGIN_MS + HOUR_MS)
    assert (await api.alice.delete(f"/v1/checks/{check['id']}")).status == 204
    now_ms = BEGIN_MS + 20 * DAY_MS
    await sweep(api, now_ms)
    assert await counts(api, rollup, rollup_dirty, result) == [0, 0, 61]
    await sweep(api, now_ms + 11 * DAY_MS)
    assert await counts(api, result, run_final, hour_block) == [0, 0, 0]


async def test_a_transaction_removes_no_more_blocks_than_its_results_lie_in(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 180)
    await roll_up_all(api)
    monkeypatch.setattr("service.retention.retention.GROUP", 61)
    remove = partial(_remove_results, check_id=check["id"], before_ms=BEGIN_MS + 3 * HOUR_MS)
    assert await api.database.write(remove) == 61
    # The hour of which one result is gone, too: nobody may take its block for all of it.
    assert await counts(api, result, hour_block) == [119, 1]
    assert await api.database.write(remove) == 61
    assert await counts(api, result, hour_block) == [58, 0]


async def test_where_no_late_result_is_old_nothing_is_written(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_change: object) -> None:
        pytest.fail("A write transaction was begun.")

    monkeypatch.setattr(api.database, "write", refuse)
    assert await sweep(api, BEGIN_MS, results=0, rollups=0, alerts=0) == 0


@ON_SQLITE
async def test_old_late_results_are_found_by_an_index(api: PublicApi) -> None:
    query = "EXPLAIN QUERY PLAN SELECT 1 FROM late_result WHERE received_ms < 5 LIMIT 1"
    plan = await api.database.read(lambda c: str(c.execute(text(query)).all()))
    assert "ix_late_result_received_ms" in plan


async def test_late_results_go_after_a_week(api: PublicApi) -> None:
    def late(run_id: int, received_ms: int) -> dict[str, Any]:
        names = {"check_id": "c", "agent_id": "a", "body": b"{}", "fence": 1}
        return {**names, "run_id": run_id, "received_ms": received_ms}

    rows = [late(number, BEGIN_MS) for number in range(GROUP + 1)]
    rows.append(late(9_999, BEGIN_MS + DAY_MS))
    await api.database.write(lambda c: c.execute(insert(late_result), rows))
    now_ms = BEGIN_MS + 7 * DAY_MS + 1
    assert await sweep(api, now_ms, late_results=0) == 0
    assert await sweep(api, now_ms) == GROUP + 1
    assert await counts(api, late_result) == [1]


def a_session(session_id: str, **fields: Any) -> Session:
    values: dict[str, Any] = {
        "check_id": "c",
        "check_type": "URL",
        "name": "Shop",
        "locations": ("cellar",),
        "status": SessionStatus.PASSED,
        "pending": 0,
        "started_ms": BEGIN_MS,
        "stopped_ms": BEGIN_MS + 5,
    }
    return Session(id=session_id, **{**values, **fields})


async def put_sessions(api: PublicApi, *rows: Session) -> None:
    account_id = api.alice.secrets.account_id
    await api.database.write(lambda c: insert_sessions(c, rows, account_id=account_id))


async def test_sessions_go_when_results_of_their_time_do(api: PublicApi) -> None:
    ids = new_ids([BEGIN_MS] * (GROUP + 1))
    await put_sessions(api, *map(a_session, ids))
    later = new_id(BEGIN_MS + DAY_MS)
    await put_sessions(
        api, a_session(later, started_ms=BEGIN_MS + DAY_MS, stopped_ms=BEGIN_MS + DAY_MS)
    )
    now_ms = BEGIN_MS + 30 * DAY_MS + 5
    assert await sweep(api, now_ms) == 0
    assert await sweep(api, now_ms + 1, results=0) == 0
    assert await sweep(api, now_ms + 1) == GROUP + 1
    assert (await api.alice.get(f"/v1/check-sessions/{ids[0]}")).status == 404
    assert (await api.alice.get(f"/v1/check-sessions/{later}")).status == 200


async def test_a_session_that_nobody_saw_end_goes_by_its_start(api: PublicApi) -> None:
    still_open = {"status": SessionStatus.STARTED, "pending": 1, "stopped_ms": None}
    await put_sessions(api, a_session(new_id(BEGIN_MS), **still_open))
    now_ms = BEGIN_MS + 30 * DAY_MS
    assert await sweep(api, now_ms) == 0
    assert await sweep(api, now_ms + 1) == 1


async def test_a_session_that_holds_up_others_ends_before_it_goes(api: PublicApi) -> None:
    still_open = {"status": SessionStatus.STARTED, "pending": 1, "stopped_ms": None}
    first = a_session(new_id(BEGIN_MS), **still_open, group_run="run")
    waiting = a_session(new_id(BEGIN_MS), **still_open, group_run="run", turn=1)
    await put_sessions(api, first, waiting)
    end_ms = BEGIN_MS + 30 * DAY_MS + 1
    assert await sweep(api, end_ms) == 0
    assert await api.database.write(partial(sessions.end_overdue_of_groups, now_ms=end_ms)) == 2
    assert await sweep(api, end_ms + 30 * DAY_MS) == 0
    assert await sweep(api, end_ms + 30 * DAY_MS + 1) == 2


@ON_SQLITE
async def test_old_sessions_are_found_by_their_ids(api: PublicApi) -> None:
    def explain(connection: Connection) -> str:
        query = _OLD.limit(1).params(least_id="a", before_ms=5)
        sql = query.compile(connection, compile_kwargs={"literal_binds": True})
        return str(connection.execute(text(f"EXPLAIN QUERY PLAN {sql}")).all())

    plan = await api.database.read(explain)
    assert "(id<?)" in plan
    assert "TEMP B-TREE" not in plan


async def test_alerts_go_after_thirteen_months(api: PublicApi) -> None:
    check = await made(api.alice)
    now_ms = await api.database.read(api.backend.clock.now_ms)
    for number, outcome in enumerate((passed(), FAILED_FAST, passed())):
        await store(api, check, outcome, started_ms=now_ms - (3 - number) * 60_000)
    place = {
        "id": new_id(now_ms),
        "account_id": api.alice.secrets.account_id,
        "location": "cellar",
        "location_name": "Cellar",
        "is_recovery": False,
        "since_ms": now_ms,
        "created_ms": now_ms,
        "check_count": 0,
        "check_names": [],
    }
    await api.database.write(lambda c: c.execute(insert(location_alert), place))
    assert await counts(api, check_alert, location_alert) == [2, 1]
    kept = {"results": 0, "rollups": 0}
    assert await sweep(api, now_ms + 395 * DAY_MS, **kept) == 0
    assert await sweep(api, now_ms + 397 * DAY_MS, **kept) == 3
    assert await counts(api, check_alert, location_alert) == [0, 0]


def a_file(folder: Path, run_id: int, *, age_days: float, now_ms: int) -> Path:
    place = RunFile(location_id="somewhere", run_id=run_id, fence=1, name="trace.zip")
    path = folder / place.key
    path.parent.mkdir(parents=True)
    path.write_bytes(b"trace")
    at_s = now_ms / 1000 - age_days * 86_400
    os.utime(path.parents[1], (at_s, at_s))
    return path


@pytest.mark.parametrize(("days", "gone"), [(30, 1), (5, 2), (0, 0)])
async def test_files_of_runs_go_by_their_age(api: PublicApi, days: int, gone: int) -> None:
    now_ms = BEGIN_MS + 90 * DAY_MS
    assert isinstance(api.backend.artifacts, FolderStore)
    folder = api.backend.artifacts.folder
    ages = (31, 29, 1)
    files = [a_file(folder, number, age_days=age, now_ms=now_ms) for number, age in enumerate(ages)]
    (folder / "stray").write_bytes(b"no folder of a location")
    assert await sweep(api, now_ms, files=days) == gone
    assert [path.exists() for path in files] == [age < (days or 99) for age in ages]


async def test_for_ever_is_for_ever(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 3)
    await roll_up_all(api)
    retention = Retention(FakeClock(BEGIN_MS * 2), FOREVER, api.backend.artifacts)
    assert await retention.sweep(api.database) == 0
    assert await counts(api, result) == [3]
