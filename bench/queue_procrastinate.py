"""Measures procrastinate: jobs that wait in the queue, worked off and deleted by one worker.

Arguments: the database's address, jobs, jobs at once. Prints the tally as JSON. A job does
nothing, and no result is stored; the worker asks the database directly.
"""

import asyncio
import json
import logging
import sys
import time

import procrastinate
import psycopg


async def measure(address: str, jobs: int, at_once: int) -> dict[str, float]:
    """One round, on a schema that is made when it is missing."""
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(
            conninfo=address, min_size=at_once + 2, max_size=at_once + 2
        )
    )
    done = 0

    @app.task(name="check")
    async def check(number: int) -> None:  # noqa: ARG001 - as large as an ordinary job
        nonlocal done
        done += 1

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        await check.batch_defer_async(*({"number": number} for number in range(jobs)))
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")
        began = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=at_once, delete_jobs="always", install_signal_handlers=False
        )
        took_s = time.perf_counter() - began
    return {"done": done, "took_s": took_s}


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    tally = asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    print(json.dumps(tally))
