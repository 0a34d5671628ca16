"""Measures NATS JetStream: messages in a work queue, fetched and acknowledged by one consumer.

Arguments: the server's address, messages, batch size. Prints the tally as JSON. A message of the
size of our jobs is fetched and acknowledged; no result is stored.
"""

import asyncio
import json
import sys
import time
from typing import Any

import nats
import uvloop
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StreamConfig

_MESSAGE = b"{}" + b" " * 598
_STREAM = StreamConfig(name="jobs", subjects=["jobs"], retention=RetentionPolicy.WORK_QUEUE)
_AT_ONCE = 1_000


async def measure(address: str, jobs: int, batch: int) -> dict[str, float]:
    """One round, on a stream in files that is made when it is missing."""
    connection = await nats.connect(address)
    stream = connection.jetstream(publish_async_max_pending=2 * _AT_ONCE)
    await stream.add_stream(_STREAM)
    for _ in range(jobs // _AT_ONCE):
        sent = [await stream.publish_async("jobs", _MESSAGE) for _ in range(_AT_ONCE)]
        await asyncio.gather(*sent)
    jobs -= jobs % _AT_ONCE
    consumer = await stream.pull_subscribe("jobs", durable="agents")
    done = 0
    began = time.perf_counter()
    while done < jobs:
        messages = await consumer.fetch(batch)
        for message in messages:
            await message.ack()
        done += len(messages)
    await _settled(stream)
    took_s = time.perf_counter() - began
    await connection.close()
    return {"done": done, "took_s": took_s}


async def _settled(stream: JetStreamContext) -> None:
    """Wait until the server has counted every acknowledgement."""
    found: Any = await stream.consumer_info("jobs", "agents")
    while found.num_ack_pending:
        await asyncio.sleep(0.001)
        found = await stream.consumer_info("jobs", "agents")


if __name__ == "__main__":
    tally = uvloop.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    print(json.dumps(tally))
