from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from service.results import store
from service.results.model import ResultFilter
from tests.builders.check_bodies import check_body
from tests.builders.engines import ON_SQLITE
from tests.builders.stored_results import START_MS, a_record, failed, passed, store_all
from tests.builders.world import World, a_result
from tests.servers.public_api import PublicApi

HUGE_BYTES = 4_000_000


def bytes_read() -> int:
    """What this process has read of files so far."""
    try:
        counts = Path("/proc/self/io").read_text()
    except PermissionError:
        pytest.skip("an agent has closed this process to its own user, in a test before this one")
    return int(counts.split("rchar: ")[1].split()[0])


@ON_SQLITE
async def test_a_list_reads_nothing_of_the_details_that_it_leaves_out(world: World) -> None:
    check_id = await world.check()
    for _ in range(4):
        await world.queue(check_id)
    await world.submit(*(a_result(job) for job in await world.claim()))
    huge = {"size": HUGE_BYTES}
    for statement in (
        "UPDATE run_final SET body = zeroblob(:size) WHERE run_id > 2",
        "UPDATE run_final SET body = NULL WHERE run_id <= 2",
        "INSERT INTO result_detail SELECT id, zeroblob(:size) FROM result WHERE run_id <= 2",
    ):
        await world.database.write(lambda c, one=statement: c.execute(text(one), huge))
    before = bytes_read()
    listed = await world.database.read(
        lambda c: store.of_check(c, check_id, ResultFilter(), limit=100, offset=0)
    )
    assert [one.is_cut for one in listed] == [True] * 4
    assert bytes_read() - before < HUGE_BYTES


async def test_failures_come_first_on_whatever_page_they_end(api: PublicApi) -> None:
    check = (await api.alice.post("/v1/checks/url", check_body("url"))).body
    place = api.alice.secrets.location_id
    runs = [
        a_record(
            check,
            location_id=place,
            outcome=failed() if number % 4 == 0 else passed(),
            started_ms=START_MS + number * 1_000,
        )
        for number in range(20)
    ]
    await store_all(api, runs)
    wanted = ResultFilter(failures_first=True)

    def pages(connection: Any) -> list[int]:
        found = []
        for offset in range(0, 24, 3):
            page = store.of_check(connection, check["id"], wanted, limit=3, offset=offset)
            found += [(one.started_ms - START_MS) // 1_000 for one in page]
        return found

    newest_first = range(19, -1, -1)
    in_order = sorted(newest_first, key=lambda number: number % 4 != 0)
    assert await api.database.read(pages) == in_order


@ON_SQLITE
async def test_no_run_is_sorted_where_failures_come_first(api: PublicApi) -> None:
    wanted = ResultFilter(failures_first=True, from_ms=0, to_ms=9)
    asked: list[Any] = []

    def explain(connection: Any) -> list[str]:
        event.listen(connection, "before_cursor_execute", lambda *some: asked.append(some[2:4]))
        store.of_check(connection, "some", wanted, limit=3, offset=0)
        queries = [one for one in asked if "LIMIT" in one[0]]
        return [
            str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all())
            for query, values in queries
        ]

    plans = await api.database.read(explain)

    assert len(plans) == 2
    assert all("PRIMARY KEY (check_id=? AND ts>? AND ts<?)" in one for one in plans)
    assert not any("B-TREE" in one for one in plans)
