"""Measures pgqueuer: jobs that wait in the queue, worked off by one queue manager.

Arguments: the database's address, jobs, batch size, and `stored` if each job stores a result of the
size of ours; else a job does nothing. Prints the tally as JSON. The manager asks the database
directly.
"""

import json
import logging
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job
from pgqueuer.types import QueueExecutionMode

_TABLE = "CREATE TABLE IF NOT EXISTS stored_result (id bigint PRIMARY KEY, body jsonb NOT NULL)"
_STORE = "INSERT INTO stored_result (id, body) VALUES ($1, $2)"
_BODY = json.dumps({"status": "PASSED", "evidence": "x" * 560})


async def measure(address: str, jobs: int, batch: int, *, stores: bool) -> dict[str, float]:
    """One round, on a schema that is made when it is missing."""
    driver = AsyncpgDriver(await asyncpg.connect(address))
    queries = Queries(driver)
    if not await queries.schema_is_installed():
        await queries.install()
    await queries.enqueue(["check"] * jobs, [b"{}"] * jobs, [0] * jobs)
    queue = PgQueuer(driver)
    pool = await asyncpg.create_pool(address, min_size=8, max_size=8)
    await pool.execute(_TABLE)
    await pool.execute("VACUUM (ANALYZE)")
    await pool.execute("CHECKPOINT")
    done = 0

    @queue.entrypoint("check")
    async def check(job: Job) -> None:
        nonlocal done
        if stores:
            await pool.execute(_STORE, job.id, _BODY)
        done += 1

    began = time.perf_counter()
    await queue.qm.run(
        batch_size=batch, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1)
    )
    return {"done": done, "took_s": time.perf_counter() - began}


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    address, jobs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tally = uvloop.run(measure(address, jobs, batch, stores="stored" in sys.argv[4:]))
    print(json.dumps(tally))
