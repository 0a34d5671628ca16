"""Many light agents in one process: each waits for jobs, says that they passed, and waits again.

Arguments: the service's ports with commas between, agents. Prints `waiting` once every agent waits,
and a tally as JSON for each line on standard input; the last one ends it.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Sequence

import msgspec
import uvloop
from queue_agents import Job, a_result
from queue_http import Door, a_claim, open_door

_AT_ONCE = 64
"""Hellos: each is a change of the database."""
_SLOTS = 8
_WAIT_S = 30


class _LateJob(Job, rename="camel"):
    """A job that says how late it was handed out."""

    lag_seconds: float
    """Counted from when it was due."""


class _Claimed(msgspec.Struct):
    jobs: list[_LateJob]


class Tally(msgspec.Struct):
    """What came of all agents since the last one."""

    took_s: float = 0
    runs: int = 0
    refused: int = 0
    claims: int = 0
    """Those that were answered with jobs: each woke an agent."""
    empty_claims: int = 0
    broken: int = 0
    """Connections that ended, and were made anew."""
    lags_s: list[float] = msgspec.field(default_factory=list)


class Agents:
    """All of them; they share a tally."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(_Claimed).decode
        self._began = time.perf_counter()
        self._tally = Tally()

    def take_tally(self) -> Tally:
        """What there is, and begin anew."""
        now = time.perf_counter()
        taken, self._tally = self._tally, Tally()
        taken.took_s, self._began = now - self._began, now
        return taken

    async def run(self, number: int, *, on_hello: Callable[[], object]) -> None:
        """An agent; it waits a second before it connects again."""
        while True:
            async with self._turns:
                port = self._ports[number % len(self._ports)]
                door = await open_door(port, f"light-{number}")
            on_hello()
            try:
                await self.work(door)
            except (OSError, RuntimeError):
                self._tally.broken += 1
                await asyncio.sleep(1)
            finally:
                door.close()

    async def work(self, door: Door) -> None:
        """Claim and answer, until the connection ends."""
        number = 0
        while True:
            number += 1
            claim = self._encode(a_claim(f"{time.time_ns()}-{number}", _SLOTS, wait_s=_WAIT_S))
            jobs = self._decode(await door.post_raw("/agent/v1/jobs/claim", claim)).jobs
            if not jobs:
                self._tally.empty_claims += 1
                continue
            self._tally.claims += 1
            self._tally.lags_s += (job.lag_seconds for job in jobs)
            results = self._encode({"results": [a_result(job, door.agent_id) for job in jobs]})
            answer = msgspec.json.decode(await door.post_raw("/agent/v1/results", results))
            self._tally.runs += len(answer["accepted"])
            self._tally.refused += len(jobs) - len(answer["accepted"])


async def drive(ports: Sequence[int], count: int) -> None:
    """Let all agents work until standard input ends."""
    agents, waiting, hello = Agents(ports), asyncio.Event(), itertools.count(1)

    def note_hello() -> None:
        if next(hello) == count:
            waiting.set()

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(agents.run(number, on_hello=note_hello), name=f"light-{number}")
            for number in range(count)
        ]
        await waiting.wait()
        print("waiting", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(msgspec.json.encode(agents.take_tally()).decode(), flush=True)
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    uvloop.run(drive([int(port) for port in sys.argv[1].split(",")], int(sys.argv[2])))
