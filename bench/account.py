"""An account of 10,000 checks: lists, statuses, triggers and the scheduler's ticks.

The service is a process of its own and has no agent. The last line is for machines: `account
checks=… page1=… …`, in ms of the service's CPU time for each. See README.md beside this file.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from account_fill import (
    API_KEY,
    EVERYONE,
    GROUP_BODY,
    MEMBERS,
    NOBODY,
    PEPPER,
    SOME,
    Filled,
    fill,
)
from processes import cpu_s, free_port, running, wait_for_port
from sqlalchemy import Connection

from service.db.sqlite import open_sqlite
from service.db.sqlite_group import driver
from service.scheduling.tick import GROUP, tick

HERE = Path(__file__).resolve().parent
PAUSE_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Something that is measured."""

    word: str
    method: str
    path: str
    bodies: tuple[dict[str, Any] | None, ...] = (None,)
    """Sent in turn."""
    times: int
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What it took; all in ms."""

    word: str
    cpu_ms: float
    """Of the process that did it, for each."""
    p50_ms: float
    p99_ms: float
    held_ms: float | None = None
    """The longest that a probe of the service waited meanwhile. None: there was no service."""

    def __str__(self) -> str:
        held = "" if self.held_ms is None else f"   probes waited {self.held_ms:5.0f} at most"
        times = f"p50 {self.p50_ms:8.1f}   p99 {self.p99_ms:8.1f}"
        return f"{self.word:14} cpu {self.cpu_ms:8.1f}   {times}{held}"


def kinds(size: int, group_id: int, times: int) -> tuple[Kind, ...]:
    """What is asked of the service."""
    checks, last = "/v1/checks?limit=100", size // 100
    group = f"/v1/check-groups/{group_id}"
    members = f"{group}/checks?limit=100"
    few = min(times, 10)
    return (
        _get("page_first", checks, times),
        _get("page_last", f"{checks}&page={last}", times),
        _get("tag_few", f"{checks}&tag={SOME}", times),
        _get("tag_all", f"{checks}&tag={EVERYONE}&page={last}", times),
        _get("tag_none", f"{checks}&tag={NOBODY}", times),
        _get("search", f"{checks}&search=Check%20{size - 1}%20of", times),
        _get("failing", f"{checks}&status=failing", times),
        _get("passing_last", f"{checks}&status=passing&page={last}", times),
        _get("statuses", "/v1/check-statuses", few),
        _get("group_first", members, times),
        _get("group_last", f"{members}&page={MEMBERS // 100}", times),
        _get("group_badge", f"/v1/badges/groups/{group_id}", few),
        _put("group_same", group, {"name": "Shop"}, {"name": "The shop"}),
        _put("group_change", group, {"runParallel": True}, {"runParallel": False}),
        _trigger("trigger_few", SOME, few),
        _trigger("trigger_all", EVERYONE, 2),
    )


def _get(word: str, path: str, times: int) -> Kind:
    return Kind(word=word, method="GET", path=path, times=times)


def _put(word: str, path: str, *changes: dict[str, Any]) -> Kind:
    bodies = tuple({**GROUP_BODY, **one} for one in changes)
    return Kind(word=word, method="PUT", path=path, bodies=bodies, times=6)


def _trigger(word: str, tag: str, times: int) -> Kind:
    path, body = "/v1/check-sessions/trigger", {"target": {"matchTags": [[tag]]}}
    return Kind(word=word, method="POST", path=path, bodies=(body,), times=times, status=201)


class Client:
    """One kept connection to the service."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, kind: Kind, turn: int) -> float:
        """Ask once; how many ms it took.

        Raises:
            RuntimeError: the answer is another one than that of the kind.
        """
        body = kind.bodies[turn % len(kind.bodies)]
        content = None if body is None else json.dumps(body)
        headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
        began = time.perf_counter()
        self._connection.request(kind.method, kind.path, content, headers)
        answer = self._connection.getresponse()
        told = answer.read()
        took_ms = (time.perf_counter() - began) * 1000
        if answer.status != kind.status:
            raise RuntimeError(f"{kind.method} {kind.path}: {answer.status} {told[:300]!r}")
        return took_ms

    def probe(self) -> float:
        """Ask whether it lives; how many ms that took."""
        return self.ask(Kind(word="", method="GET", path="/-/liveness", times=1), 0)


@contextmanager
def probing(port: int) -> Iterator[list[float]]:
    """Probe the service as long as the block lasts; ms of each probe."""
    told: list[float] = []
    over = threading.Event()

    def probe() -> None:
        client = Client(port)
        while not over.wait(PAUSE_S):
            told.append(client.probe())

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield told
    finally:
        over.set()
        thread.join()


def measure(port: int, pid: int, kind: Kind) -> Measured:
    """Ask again and again: first for CPU time, then once more beside probes."""
    client = Client(port)
    if kind.method == "GET":
        client.ask(kind, 0)
    before_s = cpu_s(pid)
    took = [client.ask(kind, turn) for turn in range(kind.times)]
    used_ms = (cpu_s(pid) - before_s) * 1000 / kind.times
    with probing(port) as probes:
        client.ask(kind, kind.times)
    return _measured(kind.word, used_ms, took, held_ms=max(probes, default=0.0))


def _measured(
    word: str, cpu_ms: float, took: Sequence[float], *, held_ms: float | None = None
) -> Measured:
    ordered = sorted(took)
    p99_ms = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    p50_ms = statistics.median(ordered)
    return Measured(word=word, cpu_ms=cpu_ms, p50_ms=p50_ms, p99_ms=p99_ms, held_ms=held_ms)


async def ticks(file: Path, size: int) -> Iterator[Measured]:
    """The scheduler's transactions in this process: while all checks are due, and when none is."""
    database = open_sqlite(file)
    now_ms = time.time_ns() // 1_000_000 + size

    async def run(word: str, expected: int) -> Measured:
        took, used_s = [], 0.0
        for _ in range(-(-size // GROUP)):
            began, before_s = time.perf_counter(), time.process_time()
            done = (await database.write(lambda c: tick(c, now_ms=now_ms))).checks
            used_s += time.process_time() - before_s
            took.append((time.perf_counter() - began) * 1000)
            if done != expected:
                raise RuntimeError(f"A tick found {done} checks due, not {expected}.")
        return _measured(word, used_s * 1000 / len(took), took)

    told = [await run("tick_due", GROUP), await run("tick_none", 0)]
    await database.write(_forget_jobs)
    await database.close()
    return iter(told)


def _forget_jobs(connection: Connection) -> None:
    driver(connection).execute("DELETE FROM job")


@contextmanager
def service(folder: Path) -> Iterator[tuple[int, int]]:
    """The service on a folder, for as long as the block lasts: its port and its process."""
    port, log = free_port(), folder / "service.out"
    settings = {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": str(port),
        "SERVICE_DATA_DIR": str(folder),
        "KEY_PEPPER": PEPPER,
        "API_REQUESTS_PER_MINUTE": "0",
        "LOG_FORMAT": "json",
    }
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = {**kept, **settings, "PYTHONPATH": str(HERE.parent)}
    with running([sys.executable, "-m", "service"], log=log, env=env) as process:
        wait_for_port(port, process, log=log)
        yield port, process.pid


def main(argv: Sequence[str] | None = None) -> None:
    """Fill, measure, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=10_000, help="a multiple of 1,000")
    parser.add_argument("--results", type=int, default=24, help="of each check, one an hour")
    parser.add_argument("--times", type=int, default=50, help="how often each list is asked for")
    parser.add_argument("--only", default="", help="words, as in statuses,tag_few")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="account-") as name:
        folder = Path(name)
        told = list(_told(folder, chosen))
    words = " ".join(f"{one.word}={one.cpu_ms:.1f}" for one in told)
    print(f"account checks={chosen.checks} {words}")


def _told(folder: Path, chosen: argparse.Namespace) -> Iterator[Measured]:
    filled = _filled(folder, chosen.checks, chosen.results)
    for one in asyncio.run(ticks(filled.file, chosen.checks)):
        print(one, flush=True)
        yield one
    words = chosen.only.split(",")
    with service(folder) as (port, pid):
        for kind in kinds(chosen.checks, filled.group_id, chosen.times):
            if not chosen.only or kind.word in words:
                measured = measure(port, pid, kind)
                print(measured, flush=True)
                yield measured


def _filled(folder: Path, size: int, results: int) -> Filled:
    now_ms, began_s = time.time_ns() // 1_000_000, time.process_time()
    made = asyncio.run(fill(folder / "picket.db", size=size, results=results, now_ms=now_ms))
    took_s = time.process_time() - began_s
    print(f"{size} checks with {size * results} results took {took_s:.0f} s of CPU time to make")
    return made


if __name__ == "__main__":
    main()
