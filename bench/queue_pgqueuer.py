"""Measures pgqueuer: jobs that wait in the queue, worked off by one queue manager.

Arguments: the database's address, jobs, batch size. Prints the tally as JSON. A job does nothing,
and no result is stored; the manager asks the database directly.
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


async def measure(address: str, jobs: int, batch: int) -> dict[str, float]:
    """One round, on a schema that is made when it is missing."""
    driver = AsyncpgDriver(await asyncpg.connect(address))
    queries = Queries(driver)
    if not await queries.schema_is_installed():
        await queries.install()
    await queries.enqueue(["check"] * jobs, [b"{}"] * jobs, [0] * jobs)
    queue = PgQueuer(driver)
    done = 0

    @queue.entrypoint("check")
    async def check(_job: Job) -> None:
        nonlocal done
        done += 1

    began = time.perf_counter()
    await queue.qm.run(
        batch_size=batch, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1)
    )
    return {"done": done, "took_s": time.perf_counter() - began}


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    tally = uvloop.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    print(json.dumps(tally))
