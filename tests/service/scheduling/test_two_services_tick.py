"""Two services that tick at once: each due job comes into being once."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from service.db.databases import open_database
from service.db.engine import Database
from service.scheduling.actions import plan
from service.scheduling.tick import Scheduler
from service.settings import PostgresUrl
from tests.builders.world import World, a_world
from tests.servers.postgresql import PostgresServer

CHECKS = 100_000
COPY_CHECK = f"""
INSERT INTO check_ SELECT (jsonb_populate_record(c, jsonb_build_object('id', 'copy-' || n))).*
FROM check_ c, generate_series(2, {CHECKS}) n
"""
COPY_PLACE = """
INSERT INTO check_location SELECT c.id, l.location_id, l.position
FROM check_ c, check_location l WHERE c.id <> l.check_id
"""
COPY_PLAN = """
INSERT INTO schedule SELECT c.id, s.period_ms, s.phase_ms, s.next_run_ms, s.turn
FROM check_ c, schedule s WHERE c.id <> s.check_id
"""
COUNTS = text("SELECT count(*), count(DISTINCT (check_id, scheduled_ms)) FROM job")


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_two_services_queue_each_of_100_000_due_runs_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    with postgres.database(template=postgres.template()) as url:
        async with a_world(tmp_path, postgresql_url=url) as world:
            check_id = await world.check()
            await world.change(lambda c, now: plan(c, check_id, now_ms=now))
            for statement in (COPY_CHECK, COPY_PLACE, COPY_PLAN, "ANALYZE"):
                await world.change(lambda c, _, sql=statement: c.exec_driver_sql(sql))
            other = open_database(PostgresUrl(url))
            ticked = await asyncio.gather(tick_all(world, world.database), tick_all(world, other))
            await other.close()
            assert sum(ticked) == CHECKS
            assert all(ticked)
            assert await world.rows(COUNTS) == [(CHECKS, CHECKS)]


async def tick_all(world: World, database: Database) -> int:
    """Tick until nothing is due any more; how many runs this service queued."""
    scheduler, queued = Scheduler(world.clock), 0
    while ticked := await scheduler.act(database):
        queued += ticked
    return queued
