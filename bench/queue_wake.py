"""Idle agents: each holds a long poll; then there is a job for everyone.

Arguments: the service's port, agents. Prints `waiting` once every poll is held, starts the clock
when a line comes in on standard input, and prints how many seconds later the last agent had its
job.
"""

import asyncio
import sys
import time

import uvloop
from queue_http import Door, a_claim, open_door

_AT_ONCE = 64
"""Hellos: each is a change of the database."""


async def _open(port: int, agents: int) -> list[Door]:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> Door:
        async with turns:
            return await open_door(port, f"idle-{number}")

    return await asyncio.gather(*(one(number) for number in range(agents)))


async def _wait(door: Door) -> float:
    """When the agent had its job."""
    answer = await door.post(
        "/agent/v1/jobs/claim", a_claim(f"idle-{time.time_ns()}", 1, wait_s=30)
    )
    if not answer["jobs"]:
        raise RuntimeError("An agent was sent home without a job.")
    return time.perf_counter()


async def hold(port: int, agents: int) -> float:
    """Seconds from the word to the last agent's job."""
    doors = await _open(port, agents)
    polls = [asyncio.create_task(_wait(door), name=door.agent_id) for door in doors]
    await asyncio.sleep(2)
    print("waiting", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began = time.perf_counter()
    return max(await asyncio.gather(*polls)) - began


if __name__ == "__main__":
    print(uvloop.run(hold(int(sys.argv[1]), int(sys.argv[2]))), flush=True)
