"""Agents without runners: each claims a batch, says that all of it passed, and claims again.

Arguments: the service's ports with commas between, agents, jobs per claim, seconds. Prints the
tally as JSON.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

import msgspec
import uvloop
from queue_http import Door, a_claim, open_door


class Job(msgspec.Struct, rename="camel"):
    """As much of a job as its result repeats."""

    job_id: str
    fence: int
    run_id: str
    check_id: str
    attempt: int


class _Claimed(msgspec.Struct):
    jobs: list[Job]


class Tally(msgspec.Struct):
    """What came of a round."""

    done: int = 0
    refused: int = 0
    took_s: float = 0


_OUTCOME = msgspec.Raw(
    b'{"status":"PASSED","responseTimeMs":12.5,"timings":{"wait":0.1,"dns":1.2,"tcp":2.3,'
    b'"firstByte":8.1,"download":0.8,"total":12.5},"evidence":{"kind":"http","request":{"method":'
    b'"GET","url":"http://127.0.0.1:9/"},"response":{"statusCode":200,"statusText":"OK",'
    b'"httpVersion":"1.1","headers":{"content-type":"text/html","content-length":"612"},'
    b'"bodyBytes":612},"hops":[],"remoteAddress":"127.0.0.1"}}'
)


def a_result(job: Job, agent_id: str) -> dict[str, object]:
    """What an agent sends when a run passed."""
    return {
        "jobId": job.job_id,
        "fence": job.fence,
        "runId": job.run_id,
        "checkId": job.check_id,
        "checkType": "URL",
        "agentId": agent_id,
        "attempt": job.attempt,
        "startedAt": "2026-11-21T12:00:00Z",
        "startedAfterSeconds": 0.001,
        "tookSeconds": 0.0125,
        "outcome": _OUTCOME,
    }


async def work(door: Door, batch: int, ends_at: float, tally: Tally) -> None:
    """One agent's share of the round."""
    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(_Claimed).decode
    number = 0
    while time.perf_counter() < ends_at:
        number += 1
        claim = encode(a_claim(f"{time.time_ns()}-{number}", batch, wait_s=10))
        jobs = decode(await door.post_raw("/agent/v1/jobs/claim", claim)).jobs
        if not jobs:
            raise RuntimeError("The queue is empty: the round was too long for what was in it.")
        results = encode({"results": [a_result(job, door.agent_id) for job in jobs]})
        answer = msgspec.json.decode(await door.post_raw("/agent/v1/results", results))
        accepted = len(answer["accepted"])
        tally.done += accepted
        tally.refused += len(jobs) - accepted


async def drive(ports: Sequence[int], agents: int, batch: int, for_s: float) -> Tally:
    """The whole round; agents are spread over the ports."""
    doors = [
        await open_door(ports[number % len(ports)], f"agent-{number}") for number in range(agents)
    ]
    tally = Tally()
    began = time.perf_counter()
    await asyncio.gather(*(work(door, batch, began + for_s, tally) for door in doors))
    tally.took_s = time.perf_counter() - began
    for door in doors:
        door.close()
    return tally


if __name__ == "__main__":
    ports = [int(port) for port in sys.argv[1].split(",")]
    agents, batch = map(int, sys.argv[2:4])
    found = uvloop.run(drive(ports, agents, batch, float(sys.argv[4])))
    sys.stdout.buffer.write(msgspec.json.encode(found))
