"""Rolling up: what is marked, computed, and computed again."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from contract.result import Failure, FailureKind, Outcome, Status
from service.analytics import store
from service.analytics.marking import mark_times
from service.analytics.reading import Buckets, tally_exactly, tally_roughly
from service.analytics.store import DAY, HOUR, Mark
from service.analytics.tallies import ALL, Selection, Tally
from service.analytics.windows import DAY_MS, HOUR_MS
from service.analytics.worker import RollUpWorker, _store_days, _store_hours, analytics_of
from service.checks import actions as checks
from service.db.tables.analytics import hour_block, rollup, rollup_dirty
from service.db.tables.checks import heartbeat_correction
from service.db.tables.runs import result
from service.results.model import ResultType
from tests.builders.made_checks import made
from tests.builders.runs import (
    BEGIN_MS,
    MINUTE_MS,
    answered,
    roll_up_all,
    run_each_minute,
    store_outcomes,
)
from tests.builders.stored_results import passed
from tests.builders.stored_results import store as store_result
from tests.fakes.clock import FakeClock
from tests.servers.public_api import PublicApi

FAILED = Outcome(
    status=Status.FAILED,
    response_time_ms=70,
    failure=Failure(kind=FailureKind.CONNECT, message="refused"),
)


async def marks(api: PublicApi) -> list[tuple[int, int]]:
    def query(connection: Connection) -> list[tuple[int, int]]:
        rows = connection.execute(select(rollup_dirty.c.hours, rollup_dirty.c.start_ms))
        return sorted((row.hours, row.start_ms) for row in rows)

    return await api.database.read(query)


async def stored(api: PublicApi, check: dict[str, Any], hours: int = HOUR) -> list[int]:
    def query(connection: Connection) -> list[int]:
        found = select(rollup.c.start_ms).where(rollup.c.hours == hours)
        return list(connection.execute(found.order_by(rollup.c.start_ms)).scalars())

    return await api.database.read(query)


def _told(one: Tally[Any] | None) -> tuple[int, int, int, float | None]:
    if one is None:
        return 0, 0, 0, None
    return one.runs, one.successes, one.retries, one.numbers["responseTime"].total


async def exact_and_rough(
    api: PublicApi, check: dict[str, Any], edges: list[int]
) -> list[list[tuple[int, int, int, float | None]]]:
    """Runs, successes, retries and the sum of the times, by bucket, in both ways."""
    kinds = await api.database.read(lambda c: checks.find_types(c, [check["id"]]))
    kind = kinds[check["id"]]
    analytics = analytics_of(kind)
    assert analytics is not None
    selections = {kind: Selection(measures=analytics.stored)}
    buckets = Buckets(edges, (edges[0], edges[-1]))
    found = []
    for read in (tally_exactly, tally_roughly):
        tallies = await api.database.read(
            lambda c, read=read: read(c, kinds, buckets, selections)[check["id"]]
        )
        found.append([_told(one.get(ALL)) for one in tallies])
    return found


async def test_an_hour_is_marked_by_final_looks_only(api: PublicApi) -> None:
    check = await made(api.alice)
    await store_result(api, check, None, started_ms=BEGIN_MS)
    attempt = {"result_type": ResultType.ATTEMPT, "started_ms": BEGIN_MS}
    await store_result(api, check, FAILED, **attempt)
    assert await marks(api) == []
    await store_result(api, check, passed(), started_ms=BEGIN_MS + HOUR_MS - 1)
    await store_result(api, check, passed(), started_ms=BEGIN_MS + 5)
    await store_result(api, check, FAILED, started_ms=BEGIN_MS + HOUR_MS)
    assert await marks(api) == [(HOUR, BEGIN_MS), (HOUR, BEGIN_MS + HOUR_MS)]


async def test_an_hour_is_rolled_up_two_minutes_after_its_end(api: PublicApi) -> None:
    check = await made(api.alice)
    await store_result(api, check, passed(), started_ms=BEGIN_MS)
    clock = FakeClock(BEGIN_MS + HOUR_MS + 2 * MINUTE_MS - 1)
    await roll_up_all(api, clock=clock)
    assert await stored(api, check) == []
    clock.now += 1
    await roll_up_all(api, clock=clock)
    assert await stored(api, check) == [BEGIN_MS]
    assert await marks(api) == [(DAY, BEGIN_MS)]
    clock.now += DAY_MS
    await roll_up_all(api, clock=clock)
    assert await stored(api, check, DAY) == [BEGIN_MS]
    assert await marks(api) == []


async def test_a_late_result_has_its_hour_and_day_computed_again(api: PublicApi) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 50)
    await roll_up_all(api)
    edges = [BEGIN_MS, BEGIN_MS + DAY_MS]
    await store_result(api, check, passed(90), started_ms=BEGIN_MS + 7, attempt=2)
    expected = [(51, 51, 1, 590.0)]
    assert await exact_and_rough(api, check, edges) == [expected, expected]
    await roll_up_all(api)
    assert await marks(api) == []
    assert await exact_and_rough(api, check, edges) == [expected, expected]
    [body] = await api.database.read(
        lambda c: [
            one[2]
            for one in store.list_rollups(
                c, [check["id"]], hours=DAY, window=(BEGIN_MS, BEGIN_MS + 1)
            )
        ]
    )
    assert body


async def test_to_roll_up_again_changes_nothing(api: PublicApi) -> None:
    check = await made(api.alice)
    await store_outcomes(api, check, [answered(10), FAILED, answered(30, code=301)])
    await roll_up_all(api)

    async def rows() -> list[Any]:
        return await api.database.read(
            lambda c: [*c.execute(select(rollup)), *c.execute(select(hour_block))]
        )

    before = await rows()
    mark = Mark(check["id"], BEGIN_MS)
    await api.database.write(lambda c: store.add_mark(c, mark, hours=HOUR, due_ms=BEGIN_MS))
    await roll_up_all(api)
    assert await rows() == before


async def test_a_result_that_comes_while_its_hour_is_computed_keeps_the_mark(
    api: PublicApi,
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 3)
    worker = RollUpWorker(api.backend.clock)
    computed = await api.database.read(worker._compute_hours)
    await store_result(api, check, passed(90), started_ms=BEGIN_MS + 7)

    class Late(RollUpWorker):
        def _compute_hours(self, connection: Connection) -> Any:
            return computed

    await Late(api.backend.clock).act(api.database)
    assert await marks(api) == [(HOUR, BEGIN_MS)]
    assert await stored(api, check) == []
    await roll_up_all(api)
    expected = [(4, 4, 0, 120.0)]
    assert await exact_and_rough(api, check, [BEGIN_MS, BEGIN_MS + HOUR_MS]) == [expected] * 2


async def test_an_hour_that_is_stored_while_its_day_is_computed_keeps_the_mark(
    api: PublicApi,
) -> None:
    check = await made(api.alice)
    await run_each_minute(api, check, [10.0] * 3)
    worker = RollUpWorker(api.backend.clock)
    await worker.act(api.database)
    computed = await api.database.read(worker._compute_days)
    await store_result(api, check, passed(90), started_ms=BEGIN_MS + HOUR_MS)
    await worker.act(api.database)
    await api.database.write(partial(_store_days, computed=computed))
    assert await marks(api) == [(DAY, BEGIN_MS)]
    assert await stored(api, check, DAY) == []
    await roll_up_all(api)
    assert await marks(api) == []
    assert await stored(api, check, DAY) == [BEGIN_MS]


@pytest.mark.parametrize("interval_ms", [HOUR_MS, 5 * HOUR_MS, DAY_MS, 2 * DAY_MS, 7 * DAY_MS])
async def test_roll_ups_count_what_results_count(api: PublicApi, interval_ms: int) -> None:
    """Days that are rolled up, a day with a late result, and one that goes on."""
    check = await made(api.alice)
    times = [float(number % 37 + 1) for number in range(150)]
    for day in range(3):
        await run_each_minute(api, check, times, from_ms=BEGIN_MS + day * DAY_MS + 22 * HOUR_MS)
    await roll_up_all(api, clock=FakeClock(BEGIN_MS + 2 * DAY_MS + 23 * HOUR_MS + 3 * MINUTE_MS))
    await store_result(api, check, FAILED, started_ms=BEGIN_MS + DAY_MS + 22 * HOUR_MS + 5)
    first = BEGIN_MS // interval_ms
    last = -(-(BEGIN_MS + 4 * DAY_MS) // interval_ms)
    edges = [number * interval_ms for number in range(first, last + 1)]
    exact, rough = await exact_and_rough(api, check, edges)
    assert sum(one[0] for one in exact) == 451
    assert rough == exact


async def test_hours_of_a_deleted_check_are_marked_no_more(api: PublicApi) -> None:
    check = await made(api.alice)
    await store_result(api, check, passed(), started_ms=BEGIN_MS)
    assert (await api.alice.delete(f"/v1/checks/{check['id']}")).status == 204
    await roll_up_all(api)
    assert await marks(api) == []
    assert await stored(api, check) == []


async def test_a_damaged_body_spoils_no_hour(api: PublicApi) -> None:
    check = await made(api.alice)
    await store_result(api, check, passed(10), started_ms=BEGIN_MS, body=b"{no json")
    await store_result(api, check, passed(-1), started_ms=BEGIN_MS + 1)
    await store_result(api, check, passed(1e300), started_ms=BEGIN_MS + 2)
    await roll_up_all(api)
    expected = [(3, 3, 0, 10.0)]
    assert await exact_and_rough(api, check, [BEGIN_MS, BEGIN_MS + HOUR_MS]) == [expected] * 2


async def test_a_failure_that_a_late_ping_disproved_counts_no_more(api: PublicApi) -> None:
    job = await made(api.alice, "heartbeat")
    await store_outcomes(api, job, [FAILED, FAILED])
    await roll_up_all(api)
    path = f"/v1/analytics/heartbeat-checks/{job['id']}?metrics=availability&"
    path += f"from={BEGIN_MS / 1000}&to={(BEGIN_MS + HOUR_MS) / 1000}&aggregationInterval=60"
    [first, _] = await api.database.read(
        lambda c: list(c.execute(select(result.c.id, result.c.ts).order_by(result.c.ts)))
    )
    correction = {"check_id": job["id"], "result_id": first.id, "result_ms": first.ts}

    def correct(connection: Connection) -> None:
        connection.execute(insert(heartbeat_correction), correction)
        mark_times(connection, job["id"], [first.ts])

    await api.database.write(correct)
    for _ in range(2):
        [line] = (await api.alice.get(path)).body["series"]
        assert [row["availability"] for row in line["data"]] == [50.0]
        await roll_up_all(api)
    assert await marks(api) == []


async def test_a_correction_that_comes_while_its_hour_is_computed_keeps_the_mark(
    api: PublicApi,
) -> None:
    job = await made(api.alice, "heartbeat")
    await store_outcomes(api, job, [FAILED, FAILED])
    worker = RollUpWorker(api.backend.clock)
    computed = await api.database.read(worker._compute_hours)
    await api.database.write(lambda c: mark_times(c, job["id"], [BEGIN_MS]))
    await api.database.write(partial(_store_hours, computed=computed))
    assert await marks(api) == [(HOUR, BEGIN_MS)]
    await roll_up_all(api)
    assert await marks(api) == []
    assert await stored(api, job) == [BEGIN_MS]
