"""Where claims begin to search, and that no job is passed over."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, text

from contract.checks import CheckType, Lane
from service.db.engine import Line
from service.db.postgresql_faults import driver
from service.jobs.claims import ClaimScope, assign_jobs
from service.jobs.postgresql import READY, READY_WANTED
from service.jobs.ready_floors import RESCAN_MS, ReadyFloors, ReadyKey
from service.sessions.model import Session, SessionStatus
from service.sessions.store import insert_sessions
from tests.builders.engines import ON_POSTGRESQL
from tests.builders.world import UPTIME_TYPES, World, a_claimant

URLS: ReadyKey = (Lane.UPTIME, frozenset({CheckType.URL}), 1)
PINGS: ReadyKey = (Lane.UPTIME, frozenset({CheckType.ICMP}), 1)


def test_a_search_begins_where_the_one_before_found_the_first_job() -> None:
    floors = ReadyFloors()
    assert floors.begin(URLS, now_ms=1_000) == (0, 0)
    floors.end(URLS, (700, 4))
    assert floors.begin(URLS, now_ms=1_001) == (700, 4)
    assert floors.begin(PINGS, now_ms=1_001) == (0, 0)


def test_a_job_that_comes_is_in_the_next_search_of_every_kind() -> None:
    floors = ReadyFloors()
    for key in (URLS, PINGS):
        floors.begin(key, now_ms=1_000)
        floors.end(key, (700, 4))
    floors.announce(650)
    floors.announce(300)
    assert floors.begin(URLS, now_ms=1_001) == (300, 0)
    assert floors.begin(PINGS, now_ms=1_001) == (300, 0)


def test_a_job_that_comes_during_a_search_is_in_the_next_one() -> None:
    floors = ReadyFloors()
    floors.begin(URLS, now_ms=1_000)
    floors.announce(300)
    floors.end(URLS, (1_000, 0))
    assert floors.begin(URLS, now_ms=1_001) == (300, 0)


def test_announcements_that_no_search_takes_are_not_gathered() -> None:
    floors = ReadyFloors()
    for due_ms in range(1_000, 2_000):
        floors.announce(due_ms)
    assert len(floors._announced) == 1  # on SQLite nothing searches by floors


def test_all_is_searched_now_and_then() -> None:
    floors = ReadyFloors()
    floors.begin(URLS, now_ms=1_000)
    floors.end(URLS, (700, 4))
    assert floors.begin(URLS, now_ms=999 + RESCAN_MS) == (700, 4)
    assert floors.begin(URLS, now_ms=1_000 + RESCAN_MS) == (0, 0)


def test_all_is_searched_when_the_clock_was_set_back() -> None:
    floors = ReadyFloors()
    floors.begin(URLS, now_ms=9_000_000)
    floors.end(URLS, (9_000_000, 0))
    assert floors.begin(URLS, now_ms=1_000_000) == (0, 0)


@contextmanager
def held_transaction(address: str) -> Iterator[None]:
    """Somebody who still sees all rows that are deleted meanwhile."""
    with psycopg.connect(address) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM job")
        yield


@ON_POSTGRESQL
async def test_claims_pass_no_rows_of_finished_jobs_while_a_transaction_is_held(
    world: World, postgresql_url: str
) -> None:
    check_id = await world.check()
    scope = ClaimScope(world.location_id, world.vault)
    with held_transaction(postgresql_url):
        for number in range(30):
            await asyncio.gather(*(world.queue(check_id) for _ in range(50)))
            claimant = a_claimant(f"claim-{number}", slots={Lane.UPTIME: 50})
            assigned = await world.change(
                lambda c, now, who=claimant: assign_jobs(c, scope, [who], now_ms=now)  # type: ignore[misc]
            )
            assert len(assigned.jobs[0]) == 50
        await world.queue(check_id)
        key = (Lane.UPTIME, UPTIME_TYPES, 0)
        floor = scope.floors.begin(key, now_ms=world.clock.now_ms(None))  # type: ignore[arg-type]
        with_floor, without = [
            await world.change(lambda c, now, f=one: _count_blocks(c, world, f, now))  # type: ignore[misc]
            for one in (floor, (0, 0))
        ]
    assert floor > (0, 0)
    assert with_floor < without / 2


def _count_blocks(connection: Connection, world: World, floor: tuple[int, int], now_ms: int) -> int:
    """How many blocks a search reads."""
    types = [one.value for one in UPTIME_TYPES]
    asked = (world.location_id, Lane.UPTIME.value, 0, *floor, now_ms, types, 50)
    # Of a table this small the planner may read all rows and sort them, if autovacuum analyzed it.
    driver(connection).execute("SET LOCAL enable_sort = off")
    explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + READY
    row: Any = driver(connection).execute(explain, asked).fetchone()  # type: ignore[call-overload]
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@ON_POSTGRESQL
async def test_a_claim_of_runs_that_somebody_waits_for_reads_no_other_sessions(
    world: World,
) -> None:
    check_id = await world.check()
    await asyncio.gather(*(world.queue(check_id) for _ in range(50)))
    ended = [
        Session(
            id=f"s{number:05}",
            check_id=check_id,
            check_type=CheckType.URL,
            name="Home",
            locations=("default",),
            status=SessionStatus.PASSED,
            pending=0,
            started_ms=1,
            stopped_ms=2,
            refresh_cache=False,
        )
        for number in range(5_000)
    ]

    def explain(connection: Connection, now_ms: int) -> str:
        insert_sessions(connection, ended, account_id=world.account_id)
        connection.execute(text("ANALYZE"))
        types = [one.value for one in UPTIME_TYPES]
        asked = (world.location_id, Lane.UPTIME.value, 0, 0, 0, now_ms, types, 50)
        rows = driver(connection).execute(f"EXPLAIN {READY_WANTED}", asked)  # type: ignore[call-overload]
        return "\n".join(row[0] for row in rows)

    plan = await world.change(explain)

    assert "Seq Scan on session" not in plan, plan


@ON_POSTGRESQL
async def test_a_claim_searches_by_the_index_however_short_the_queue_was_when_it_was_analyzed(
    world: World, postgresql_url: str
) -> None:
    """A plan that sorts would be kept, and sort all of a queue that has become long."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE job")
    types = [one.value for one in UPTIME_TYPES]
    asked = (world.location_id, Lane.UPTIME.value, 0, 0, 0, 1, types, 50)

    def explain(connection: Connection, statement: str) -> str:
        rows = driver(connection).execute(f"EXPLAIN {statement}".encode(), asked)
        return "\n".join(row[0] for row in rows)

    for statement in (READY, READY_WANTED):
        plan = await world.database.write(
            lambda c, one=statement: explain(c, one),  # type: ignore[misc]
            brief=Line.CLAIMS,
        )
        assert "ix_job_ready" in plan
