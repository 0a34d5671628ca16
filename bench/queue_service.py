"""The service under measurement: one process on SQLite or PostgreSQL, and jobs in its queue."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import cpu_s, free_port, resident_mb, running, wait_for_port
from queue_http import KEY

from contract.checks import CheckType, Lane
from contract.job import RunSource
from service.db.databases import open_database
from service.jobs import actions as jobs
from service.jobs.model import QUEUE_MS, NewRun, Priority
from service.settings import PostgresUrl

HERE = Path(__file__).resolve().parent
API_KEY = "cu_benchmark_key_0123456789abcdefghij"
CHECKS = 100
_GROUP = 5_000
"""Jobs put into the queue at once, so that the service waits for the file for milliseconds only."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One round."""

    per_s: float
    cpu_us: float
    """Of the service, per job."""


@dataclass(frozen=True, slots=True)
class Service:
    """The running service."""

    pid: int
    port: int
    database: Path | PostgresUrl
    location_id: str
    check_ids: tuple[str, ...]

    def round(self, agents: int, batch: int, for_s: float) -> Measured:
        """Let agents work for so long."""
        words = (self.port, agents, batch, for_s)
        command = [sys.executable, str(HERE / "queue_agents.py"), *map(str, words)]
        before = cpu_s(self.pid)
        tally = json.loads(subprocess.check_output(command, timeout=for_s + 30))
        if tally["refused"]:
            raise RuntimeError(f"{tally['refused']} results were refused.")
        used_s, done = cpu_s(self.pid) - before, tally["done"]
        return Measured(done / tally["took_s"], used_s / done * 1e6)

    def wake(self, agents: int) -> tuple[float, float]:
        """Seconds until as many idle agents have a job each, and the memory that held them in MB.

        The clock runs while the jobs are put into the queue. Another connection does that, so that
        waking costs no more than one ordinary request: a person starts one more check.
        """
        command = [sys.executable, str(HERE / "queue_wake.py"), str(self.port), str(agents)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as idle:
            assert idle.stdin is not None
            assert idle.stdout is not None
            if idle.stdout.readline() != "waiting\n":
                raise RuntimeError("The idle agents could not wait; see above.")
            held_mb = resident_mb(self.pid)
            idle.stdin.write("go\n")
            idle.stdin.flush()
            self.fill(agents - 1)
            self._trigger(self.check_ids[0])
            return float(idle.stdout.readline()), held_mb

    def fill(self, count: int) -> None:
        """Put so many jobs into the queue; claims that wait are not told."""
        asyncio.run(self._fill(count))

    async def _fill(self, count: int) -> None:
        database = open_database(self.database)
        now_ms = time.time_ns() // 1_000_000
        runs = [self._run(number, now_ms) for number in range(count)]
        for first in range(0, count, _GROUP):
            group = runs[first : first + _GROUP]
            await database.write(lambda connection, group=group: jobs.add(connection, group))
        await database.close()

    def _run(self, number: int, now_ms: int) -> NewRun:
        return NewRun(
            check_id=self.check_ids[number % len(self.check_ids)],
            check_type=CheckType.URL,
            lane=Lane.UPTIME,
            location_id=self.location_id,
            source=RunSource.SCHEDULE_NOW,
            session_id=None,
            scheduled_ms=now_ms,
            due_ms=now_ms,
            expires_ms=now_ms + QUEUE_MS,
            priority=Priority.SCHEDULED,
        )

    def _trigger(self, check_id: str) -> None:
        _ask(self.port, "/v1/check-sessions/trigger", {"target": {"checkId": [check_id]}})


@contextmanager
def open_service(folder: Path, *, postgres: PostgresUrl | None = None) -> Iterator[Service]:
    """The service, for as long as the block lasts; without an address on a file in the folder."""
    port, log = free_port(), folder / "service.out"
    settings = {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": str(port),
        "SERVICE_DATA_DIR": str(folder / "service"),
        "FIRST_API_KEY": API_KEY,
        "FIRST_LOCATION_KEY": KEY,
        "LOG_LEVEL": "INFO",
        # Far beyond what a machine does, so that requests are counted and none is refused.
        "LOCATION_REQUESTS_PER_MINUTE": "100000000",
        "LOG_FORMAT": "json",
    }
    if postgres is not None:
        settings["DATABASE_URL"] = postgres.value
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = {**kept, **settings, "PYTHONPATH": str(HERE.parent)}
    with running([sys.executable, "-m", "service"], log=log, env=env) as process:
        wait_for_port(port, process, log=log)
        (location,) = _ask(port, "/v1/private-locations")
        check_ids = tuple(_add_check(port, number) for number in range(CHECKS))
        database = postgres or folder / "service" / "picket.db"
        yield Service(process.pid, port, database, location["id"], check_ids)


def _add_check(port: int, number: int) -> str:
    body = {
        "name": f"Page {number}",
        "request": {"url": "http://127.0.0.1:9/"},
        "frequency": 1440,
        "privateLocations": ["default"],
    }
    found: str = _ask(port, "/v1/checks/url", body)["id"]
    return found


def _ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())
