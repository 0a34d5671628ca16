"""The service under measurement: a process on SQLite, or two on PostgreSQL, and jobs for it."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
CHECKS_OF_REPLICAS = 2_000
"""64 agents hold 2,048 jobs at batch 32: they should be of as many checks."""
REPLICAS = 2
_GROUP = 5_000
"""Jobs put into the queue at once, so that the service waits for the file for milliseconds only."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One round."""

    per_s: float
    cpu_us: float
    """Of all the service's processes, per job."""


@dataclass(frozen=True, slots=True)
class Service:
    """The running service."""

    pids: tuple[int, ...]
    ports: tuple[int, ...]
    database: Path | PostgresUrl
    location_id: str
    check_ids: tuple[str, ...]

    def round(self, agents: int, batch: int, for_s: float) -> Measured:
        """Let agents work for so long."""
        words = (",".join(map(str, self.ports)), agents, batch, for_s)
        command = [sys.executable, str(HERE / "queue_agents.py"), *map(str, words)]
        before = sum(map(cpu_s, self.pids))
        tally = json.loads(subprocess.check_output(command, timeout=for_s + 30))
        if tally["refused"]:
            raise RuntimeError(f"{tally['refused']} results were refused.")
        used_s, done = sum(map(cpu_s, self.pids)) - before, tally["done"]
        return Measured(done / tally["took_s"], used_s / done * 1e6)

    def wake(self, agents: int) -> tuple[float, float]:
        """Seconds until as many idle agents have a job each, and the memory that held them in MB.

        The clock runs while the jobs are put into the queue. Another connection does that, so that
        waking costs no more than one ordinary request: a person starts one more check.
        """
        command = [sys.executable, str(HERE / "queue_wake.py"), str(self.ports[0]), str(agents)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as idle:
            assert idle.stdin is not None
            assert idle.stdout is not None
            if idle.stdout.readline() != "waiting\n":
                raise RuntimeError("The idle agents could not wait; see above.")
            held_mb = resident_mb(self.pids[0])
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
        _ask(self.ports[0], "/v1/check-sessions/trigger", {"target": {"checkId": [check_id]}})


@contextmanager
def open_service(
    folder: Path, *, postgres: PostgresUrl | None = None, checks: int | None = None
) -> Iterator[Service]:
    """The service, for as long as the block lasts: one process on a file, or two on PostgreSQL.

    `checks`: how many it has. None: as many as `make bench-queue` uses.
    """
    with ExitStack() as stack:
        names = [f"service-{number}" for number in range(REPLICAS if postgres else 1)]
        found = [stack.enter_context(_open_process(folder, name, postgres)) for name in names]
        ports = tuple(port for _, port in found)
        (location,) = _ask(ports[0], "/v1/private-locations")
        checks = checks or (CHECKS_OF_REPLICAS if postgres else CHECKS)
        check_ids = tuple(_add_check(ports[0], number) for number in range(checks))
        yield Service(
            tuple(pid for pid, _ in found),
            ports,
            postgres or folder / names[0] / "picket.db",
            location["id"],
            check_ids,
        )


@contextmanager
def _open_process(
    folder: Path, name: str, postgres: PostgresUrl | None
) -> Iterator[tuple[int, int]]:
    """Its pid, and its port."""
    port, log = free_port(), folder / f"{name}.out"
    settings = {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": str(port),
        "SERVICE_DATA_DIR": str(folder / name),
        "TRACE_VIEWER_PORT": "off",
        "FIRST_API_KEY": API_KEY,
        "FIRST_LOCATION_KEY": KEY,
        "KEY_PEPPER": "p" * 32,
        "SERVICE_MASTER_KEY": "ab" * 32,
        "LOG_LEVEL": "INFO",
        # Far beyond what a machine does, so that requests are counted and none is refused.
        "LOCATION_REQUESTS_PER_MINUTE": "100000000",
        "API_REQUESTS_PER_MINUTE": "100000000",
        "LOG_FORMAT": "json",
    }
    if postgres is not None:
        settings["DATABASE_URL"] = postgres.value
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = {**kept, **settings, "PYTHONPATH": str(HERE.parent)}
    with running([sys.executable, "-m", "service"], log=log, env=env) as process:
        wait_for_port(port, process, log=log)
        yield process.pid, port


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
