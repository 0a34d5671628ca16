"""Copies of results in ClickHouse: all of them, once, and for as long as the database's are gone.

ClickHouse's engine runs in the process of the test.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from sqlalchemy import Connection, func, select
from structlog.testing import capture_logs

from service.analytics import actions as analytics
from service.analytics.windows import DAY_MS, HOUR_MS
from service.clickhouse.copies import ClickHouse
from service.clickhouse.copying import CopyWorker
from service.clickhouse.model import ArchiveError, CopyState
from service.db.tables.runs import result
from service.http.dependencies import attach
from service.results.model import Finished
from service.retention.model import Kept
from service.retention.retention import Retention
from tests.builders.made_checks import made
from tests.builders.runs import (
    BEGIN_MS,
    FAILED_FAST,
    answered,
    query,
    roll_up_all,
    run_each_minute,
    store_outcomes,
)
from tests.builders.stored_results import passed, store
from tests.fakes.clock import FakeClock
from tests.servers.public_api import PublicApi

LATER_MS = BEGIN_MS + 40 * DAY_MS
DAY = (BEGIN_MS, BEGIN_MS + DAY_MS)
NOWHERE = "http://:secret@127.0.0.1:1/"


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[ClickHouse]:
    """An empty one."""
    opened = ClickHouse(f"chdb://{tmp_path}/clickhouse", days=0)
    yield opened
    opened.close()


class Worker(CopyWorker):
    """One on a clock that the test sets, with what it reported."""

    def __init__(self, clickhouse: ClickHouse, *, now_ms: int = LATER_MS) -> None:
        self.clock, self.now_s = FakeClock(now_ms), 0.0
        self.reports: list[CopyState] = []
        super().__init__(
            clickhouse, self.clock, monotonic=lambda: self.now_s, report=self.reports.append
        )


async def copy_all(api: PublicApi, clickhouse: ClickHouse) -> Worker:
    worker = Worker(clickhouse)
    while await worker.act(api.database):
        pass
    return worker


async def sweep(api: PublicApi) -> int:
    """Remove the results of more than 30 days ago."""
    kept = Kept(results=30, rollups=0, files=0, late_results=0, alerts=0)
    return await Retention(FakeClock(LATER_MS), kept, api.backend.artifacts).sweep(api.database)


async def count_results(api: PublicApi) -> int:
    def read(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(result)).scalar_one()

    return await api.database.read(read)


async def series(api: PublicApi, check: dict[str, Any], **given: str | float) -> dict[str, Any]:
    """A series by way of the API."""
    asked = query(**{"interval": 60, "metrics": "responseTime_p50,availability", **given})
    answer = await api.alice.get(f"/v1/analytics/url-monitors/{check['id']}?{asked}")
    assert answer.status == 200
    found: dict[str, Any] = answer.body
    return found


def read_from(api: PublicApi, archive: ClickHouse | None) -> None:
    attach(api.app, replace(api.backend, archive=archive))


def copied(clickhouse: ClickHouse, *checks: dict[str, Any]) -> list[float | None]:
    """The response times that are in ClickHouse."""
    ids = [check["id"] for check in checks]
    finals = list(clickhouse.list_finals(ids, window=DAY, with_bodies=True))
    assert clickhouse.count_finals(ids, window=DAY) == len(finals)
    assert all(one.body for one in finals)
    return [one.response_time_ms for one in finals]


async def test_an_hour_is_copied_once_it_is_rolled_up_and_again_after_a_late_result(
    api: PublicApi, clickhouse: ClickHouse
) -> None:
    check = await made(api.alice)
    worker = await copy_all(api, clickhouse)
    await run_each_minute(api, check, [10.0, 20.0])
    assert await worker.act(api.database) == 0
    assert copied(clickhouse, check) == []
    await roll_up_all(api)
    assert await worker.act(api.database) == 1
    assert copied(clickhouse, check) == [10.0, 20.0]
    await store(api, check, passed(15), started_ms=BEGIN_MS + 7)
    await roll_up_all(api)
    assert await worker.act(api.database) == 1
    assert copied(clickhouse, check) == [10.0, 15.0, 20.0]
    assert await worker.act(api.database) == 0
    assert worker.reports[-1] == CopyState(is_up=True, hours_waiting=0)


async def test_what_is_there_when_copying_begins_is_copied(
    api: PublicApi, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    check, other = await made(api.alice), await made(api.alice)
    for one in (check, other):
        await run_each_minute(api, one, [10.0] * 61)
    await roll_up_all(api)
    worker = await copy_all(api, clickhouse)
    assert len(copied(clickhouse, check, other)) == 122
    assert sum(one.rows for one in worker.reports) == 122
    # It is empty again: another server, or somebody has dropped the table.
    clickhouse._writer.command("DROP TABLE picket_result")
    await copy_all(api, clickhouse)
    assert len(copied(clickhouse, check, other)) == 122


async def test_results_stay_until_clickhouse_is_back(
    api: PublicApi, clickhouse: ClickHouse
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 120)
    await roll_up_all(api)
    worker = Worker(ClickHouse(NOWHERE, days=0))
    with capture_logs() as logs:
        for _ in range(3):
            assert await worker.act(api.database) == 0
            worker.now_s += 1_000
    [line] = logs
    assert line["reason"].startswith("Results are not copied to ClickHouse: it cannot be reached.")
    assert worker.reports[-1] == CopyState(is_up=False, hours_waiting=2)
    assert await sweep(api) == 0
    assert await count_results(api) == 120
    await copy_all(api, clickhouse)
    assert await sweep(api) > 0
    assert await count_results(api) == 0
    assert copied(clickhouse, check) == [10.0] * 120


async def test_once_nothing_is_copied_any_more_results_go(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    await Worker(ClickHouse(NOWHERE, days=0)).act(api.database)
    assert await sweep(api) == 0
    await api.database.write(analytics.end_copying)
    assert await sweep(api) > 0
    assert await count_results(api) == 0


async def test_a_series_over_removed_results_is_exact(
    api: PublicApi, clickhouse: ClickHouse
) -> None:
    check = await made(api.alice)
    outcomes = [answered(number + 0.5, code=200 + number % 2) for number in range(150)]
    await store_outcomes(api, check, [*outcomes, FAILED_FAST])
    await run_each_minute(api, check, [70.0] * 60, from_ms=LATER_MS - HOUR_MS)
    await roll_up_all(api)
    wanted: list[dict[str, Any]] = [
        {"hours": 5, "metrics": "responseTime_p95,firstByte_avg,availability,retries"},
        {"hours": 3, "group": "statusCode"},
        {"hours": 2.5, "interval": 7},
        {"hours": 40 * 24, "interval": 1440},
    ]
    before = [await series(api, check, **one) for one in wanted]
    await copy_all(api, clickhouse)
    assert await sweep(api) > 0
    assert await count_results(api) == 60
    read_from(api, clickhouse)
    assert [await series(api, check, **one) for one in wanted] == before
    assert {one["source"] for one in before} == {"results"}
    read_from(api, ClickHouse(NOWHERE, days=0))
    assert (await series(api, check, hours=5))["source"] == "rollups"
    read_from(api, None)
    assert (await series(api, check, hours=5))["source"] == "rollups"


class Breaking(ClickHouse):
    """It breaks between two questions."""

    def list_finals(self, *_given: Any, **_named: Any) -> Iterator[Finished]:
        raise ArchiveError("it cannot be reached")


async def test_a_series_is_refused_where_clickhouse_breaks_under_it(
    api: PublicApi, clickhouse: ClickHouse
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    await copy_all(api, clickhouse)
    await sweep(api)
    read_from(api, Breaking(clickhouse._url, days=0))
    asked = query(interval=60, metrics="availability")
    answer = await api.alice.get(f"/v1/analytics/url-monitors/{check['id']}?{asked}")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (516, "it refused the user or the password"),
        (81, "there is no such database"),
        (241, "it refused with its error 241"),
    ],
)
async def test_what_clickhouse_refuses_is_said_without_the_password(code: int, reason: str) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        text = f"Code: {code}. DB::Exception: no 'hunter2' here"
        return web.Response(status=500, text=text)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    async with TestServer(app) as server:
        clickhouse = ClickHouse(f"http://picket:hunter2@127.0.0.1:{server.port}/picket", days=0)
        with pytest.raises(ArchiveError) as caught:
            await asyncio.to_thread(clickhouse.has_table)
    assert caught.value.reason == reason
    assert clickhouse.is_away


async def test_copies_are_kept_as_long_as_the_setting_says(clickhouse: ClickHouse) -> None:
    for days, expected in ((400, True), (30, True), (0, False)):
        clickhouse._days = days
        clickhouse.create_table()
        [(definition,)] = clickhouse._writer.query("SHOW CREATE TABLE picket_result").result_rows
        assert (f"toIntervalDay({days})" in definition) is expected
        assert ("TTL" in definition) is expected


async def test_a_report_reads_removed_results(api: PublicApi, clickhouse: ClickHouse) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [float(number) for number in range(60)])
    await roll_up_all(api)
    path = f"/v1/reporting?from={BEGIN_MS // 1000}&to={BEGIN_MS // 1000 + 1800}"
    before = (await api.alice.get(path)).body
    assert before[0]["aggregate"]["avg"] == 14.5
    await copy_all(api, clickhouse)
    await sweep(api)
    assert (await api.alice.get(path)).body != before
    read_from(api, clickhouse)
    assert (await api.alice.get(path)).body == before


async def test_what_went_before_copying_began_is_read_from_roll_ups(
    api: PublicApi, clickhouse: ClickHouse
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    assert await sweep(api) > 0
    await copy_all(api, clickhouse)
    read_from(api, clickhouse)
    found = await series(api, check)
    assert found["source"] == "rollups"
    assert found["series"][0]["data"][0]["responseTime_p50"] is not None


async def test_two_services_copy_nothing_twice(api: PublicApi, clickhouse: ClickHouse) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    first, second = Worker(clickhouse), Worker(clickhouse)
    assert await first.act(api.database) == 1
    assert await second.act(api.database) == 0
    # A crash between the insert and the commit: another service copies the hour again.
    await api.database.write(
        lambda connection: analytics.mark_copies(connection, check_ids=[check["id"]])
    )
    assert await second.act(api.database) == 1
    assert copied(clickhouse, check) == [10.0] * 60


async def test_an_hour_that_changes_while_it_is_copied_is_copied_again(
    api: PublicApi, clickhouse: ClickHouse
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 60)
    await roll_up_all(api)
    worker = await copy_all(api, ClickHouse(NOWHERE, days=0))
    due = await api.database.write(
        lambda c: analytics.claim_copies(c, clock=worker.clock, lease_ms=0, most=9)
    )
    await store(api, check, passed(15), started_ms=BEGIN_MS + 7)
    await roll_up_all(api)
    await api.database.write(lambda c: analytics.finish_copies(c, due=due))
    await copy_all(api, clickhouse)
    assert len(copied(clickhouse, check)) == 61
