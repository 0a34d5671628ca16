"""Judge many API checks on bodies of 25 MB at once, and measure memory and the event loop.

The origin is a process of its own. Memory is what the agent's process and its judging process hold
beyond the idle agent; a stall is the longest time in which the event loop did not turn. The last
line is for machines: `bodies text_mb=… text_stall_ms=… …`. See README.md beside this file.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import uvloop

from contract.assertions import Assertion, Comparison, Source
from contract.checks import ApiSpec
from contract.job import Job
from contract.requests import HttpRequest
from contract.result import Status
from runners.api import ApiRunner
from runners.execute import execute
from runners.net.dns.resolve import SystemResolver
from runners.net.egress.rules import EgressRules
from runners.net.http.body_memory import MAX_WAIT_S, BodyMemory
from runners.runner import RunContext
from runners.tools import open_tools

BODY_BYTES: Final = 25 * 1024 * 1024
_TICK_S: Final = 0.002
_SAMPLE_S: Final = 0.02
_FIELDS: Final = ("RssAnon:", "RssShmem:")

KINDS: Final = {
    "text": ("/text", Assertion(source=Source.TEXT_BODY, comparison=Comparison.NOT_CONTAINS,
                                target="no such word")),
    "regex": ("/text", Assertion(source=Source.TEXT_BODY, comparison=Comparison.EQUALS,
                                 property="the (end)", target="end")),
    "json": ("/json", Assertion(source=Source.JSON_BODY, comparison=Comparison.EQUALS,
                                property="$.rows[7].id", target="7")),
    "every": ("/json", Assertion(source=Source.JSON_BODY, comparison=Comparison.NOT_EMPTY,
                                 property="$.rows[*].name")),
}  # fmt: skip
"""By name: the page and the assertion on it; `every` reads a value of each element."""


def make_pages() -> dict[str, bytes]:
    """Both bodies, a little below the limit, with the one that is looked for at the end."""
    rows, size = [], 0
    while size < BODY_BYTES - 1000:
        row = {"id": len(rows), "name": f"lamp {len(rows)}", "tags": ["a", "b"], "price": 9.5}
        rows.append(row)
        size += len(json.dumps(row)) + 2
    line = b"all work and no play makes a dull body\n"
    text = line * ((BODY_BYTES - 1000) // len(line)) + b"the end"
    return {"/text": text, "/json": json.dumps({"rows": rows}).encode()}


async def serve() -> None:
    """Serve both pages, and print the port."""
    pages = make_pages()
    kinds = {"/text": b"text/plain", "/json": b"application/json"}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, OSError):
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            page = pages[path]
            head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
            writer.write(head % (kinds[path], len(page)))
            for at in range(0, len(page), 1 << 18):
                writer.write(page[at : at + (1 << 18)])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.asynccontextmanager
async def an_origin() -> AsyncIterator[str]:
    """The address of an origin in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", stdout=asyncio.subprocess.PIPE
    )
    try:
        if process.stdout is None:
            raise RuntimeError("The origin has no output.")
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


def held_bytes(pids: list[int]) -> int:
    """What these processes hold; one that has ended holds nothing."""
    held = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            held += sum(int(line.split()[1]) for line in lines if line.startswith(_FIELDS)) << 10
    return held


class Memory(threading.Thread):
    """Samples what the process and the one that judges hold, until it is stopped."""

    def __init__(self, judging_pid: Callable[[], int | None]) -> None:
        super().__init__(daemon=True)
        self._judging_pid = judging_pid
        self._stopped = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        """Sample."""
        own = os.getpid()
        while not self._stopped.wait(_SAMPLE_S):
            pids = [own] if (pid := self._judging_pid()) is None else [own, pid]
            self.peak_bytes = max(self.peak_bytes, held_bytes(pids))

    def stop(self) -> None:
        """Take no more samples."""
        self._stopped.set()
        self.join()


class Stall:
    """The longest time in which the event loop did not turn.

    On a busy machine a process waits for a processor too; the CPU time that it had meanwhile does
    not count that.
    """

    longest_s = 0.0
    longest_cpu_s = 0.0

    async def watch(self) -> None:
        """Watch until it is cancelled."""
        while True:
            began, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(_TICK_S)
            self.longest_s = max(self.longest_s, time.perf_counter() - began - _TICK_S)
            self.longest_cpu_s = max(self.longest_cpu_s, time.process_time() - cpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How one kind went."""

    memory_mb: float
    stall_ms: float
    stall_cpu_ms: float
    took_s: float
    passed: int
    released: int
    """Runs that got no memory in time, which an agent gives back."""


def a_job(spec: ApiSpec, number: int, limit_s: float) -> Job:
    """A job with what it must have."""
    now = datetime.now(UTC)
    return Job(
        job_id=str(number), fence=1, lease_s=60, run_id=str(number), check_id=str(number),
        check_name="body", account_id="a", location="here", scheduled_for=now, deadline_s=limit_s,
        spec=spec,
    )  # fmt: skip


async def measure(base: str, kind: str, *, checks: int, memory_mb: int, limit_s: float) -> Measured:
    """Run the checks at once."""
    path, assertion = KINDS[kind]
    spec = ApiSpec(
        request=HttpRequest(url=base + path), assertions=(assertion,), degraded_after_ms=None,
        failed_after_ms=None,
    )  # fmt: skip
    bodies = BodyMemory(memory_mb << 20, max_wait_s=limit_s * MAX_WAIT_S / 30)
    tools = open_tools(EgressRules(), resolver=SystemResolver(), bodies=bodies)
    async with tools as network:
        ctx = RunContext(network=network, pings=_NoPings(), timeout_s=limit_s)
        idle_bytes = held_bytes([os.getpid()])
        memory, stall = Memory(lambda: network.judging.pid), Stall()
        memory.start()
        watching = asyncio.create_task(stall.watch())
        began = time.perf_counter()
        outcomes = await asyncio.gather(
            *(execute(a_job(spec, number, limit_s), ApiRunner(), ctx) for number in range(checks)),
            return_exceptions=True,
        )
        took_s = time.perf_counter() - began
        watching.cancel()
        memory.stop()
    for outcome in outcomes:
        if not isinstance(outcome, BaseException) and outcome.failure is not None:
            print(outcome.failure.message)
            break
    return Measured(
        memory_mb=(memory.peak_bytes - idle_bytes) / (1 << 20),
        stall_ms=stall.longest_s * 1000,
        stall_cpu_ms=stall.longest_cpu_s * 1000,
        took_s=took_s,
        passed=sum(
            not isinstance(one, BaseException) and one.status is Status.PASSED for one in outcomes
        ),
        released=sum(isinstance(one, BaseException) for one in outcomes),
    )


class _NoPings:
    """No check here asks for one."""

    def silent_for_s(self, token: str) -> float | None:  # noqa: ARG002 - the protocol has it
        return None


async def main(kinds: list[str], checks: int, memory_mb: int, limit_s: float) -> None:
    """Measure the kinds one after the other."""
    words = []
    async with an_origin() as base:
        for kind in kinds:
            found = await measure(base, kind, checks=checks, memory_mb=memory_mb, limit_s=limit_s)
            print(
                f"{kind:6} {checks} checks in {found.took_s:5.1f} s: {found.passed} passed, "
                f"{found.released} given back; {found.memory_mb:.0f} MB, longest stall "
                f"{found.stall_ms:.0f} ms, {found.stall_cpu_ms:.0f} ms of CPU time",
                flush=True,
            )
            words += [
                f"{kind}_mb={found.memory_mb:.0f}",
                f"{kind}_stall_cpu_ms={found.stall_cpu_ms:.0f}",
            ]
    print("bodies", *words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, separated by commas")
    parser.add_argument("--checks", type=int, default=256)
    parser.add_argument("--memory-mb", type=int, default=256)
    parser.add_argument("--limit-s", type=float, default=30, help="more on a busy machine")
    given = parser.parse_args()
    kinds = given.only.split(",")
    if given.serve:
        uvloop.run(serve())
    else:
        uvloop.run(main(kinds, given.checks, given.memory_mb, given.limit_s))
