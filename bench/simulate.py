"""A million checks and ten thousand agents against two services on one PostgreSQL.

Accelerated is the schedule alone: each check is due once in `--period` seconds, and that period
passes `--speed` times as fast, because due times are written into the database closer together.
Services, agents, leases, time-outs and PostgreSQL (with its defaults, fsync included) run in real
time. Agents are light: one process holds all their connections, and every run passes at once.
The last line is for machines. See README.md beside this file, and docs/scale.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

import psycopg
from processes import cpu_s
from queue_service import Service, open_service

from service.settings import PostgresUrl

HERE: Final = Path(__file__).resolve().parent
_CREATE: Final = "CREATE DATABASE picket TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
_LEAD_MS: Final = 10_000
_LEAD_MS_PER_CHECK: Final = 0.15
"""The first one is due later than all are written, which takes a while."""
_WARM_UP_S: Final = 15.0
_LEAST_ROWS: Final = 0.005
_NONE: Final = (0, 0, 0, 0)
_COUNTS: Final = (
    "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del, pg_total_relation_size(relid)"
    " FROM pg_stat_user_tables"
)
_PLAN: Final = """
INSERT INTO schedule (check_id, period_ms, phase_ms, next_run_ms, turn)
SELECT id, %s, 0, %s + (random() * %s)::bigint, 0 FROM check_
"""
_OVERDUE: Final = "SELECT count(*) FROM schedule WHERE next_run_ms <= %s"
_CONNECTIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'picket%'"


@dataclass(frozen=True, slots=True)
class Books:
    """What PostgreSQL has counted at one moment."""

    tables: dict[str, tuple[int, int, int, int]]
    """By name: rows inserted, updated and deleted, and bytes with indexes."""
    wal_bytes: int
    service_cpu_s: float
    postgres_cpu_s: float


@contextmanager
def open_postgres(folder: Path) -> Iterator[str]:
    """A server with its defaults, for as long as the block lasts; the address of a database."""
    command = [sys.executable, str(HERE / "queue_postgres.py"), str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(_CREATE)
        base, _, options = address.partition("?")
        yield f"{base.rpartition('/')[0]}/picket?{options}"


def fill(url: str, template: str, count: int) -> None:
    """Copy a check so many times, with where it runs; none of them is due any more."""
    with psycopg.connect(url, autocommit=True) as connection:
        columns = [
            row[0]
            for row in connection.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_name = 'check_' AND column_name <> 'id'"
            )
        ]
        listed = ", ".join(columns)
        connection.execute(
            f"INSERT INTO check_ (id, {listed}) SELECT gen_random_uuid()::text, {listed}"
            " FROM check_, generate_series(2, %s) WHERE id = %s",
            (count, template),
        )
        connection.execute(
            "INSERT INTO check_location (check_id, location_id, position) SELECT c.id, location_id,"
            " position FROM check_ c, check_location WHERE c.id <> %s AND check_id = %s",
            (template, template),
        )
        connection.execute("DELETE FROM schedule")
        connection.execute("VACUUM ANALYZE")


def plan(url: str, chosen: argparse.Namespace) -> float:
    """Spread all due times over a period that passes faster; when the first one is due."""
    period_ms = round(chosen.period * 1000)
    lead_ms = _LEAD_MS + round(_LEAD_MS_PER_CHECK * chosen.checks)
    begin_ms = time.time_ns() // 1_000_000 + lead_ms
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_PLAN, (period_ms, begin_ms, round(period_ms / chosen.speed)))
        connection.execute("ANALYZE schedule")
    return begin_ms / 1000


class Notices:
    """Counts what services tell each other."""

    def __init__(self, url: str) -> None:
        self.count = 0
        self._url = url
        Thread(target=self._listen, daemon=True, name="notices").start()

    def _listen(self) -> None:
        with (
            suppress(psycopg.OperationalError),  # the server has stopped
            psycopg.connect(self._url, autocommit=True) as connection,
        ):
            connection.execute("LISTEN picket")
            for _ in connection.notifies():
                self.count += 1


def read_books(connection: psycopg.Connection[Any], service: Service) -> Books:
    """Count all."""
    connection.execute("SELECT pg_stat_clear_snapshot()")
    tables = {name: counts for name, *counts in connection.execute(_COUNTS)}
    (wal,) = connection.execute(
        "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
    ).fetchone() or (0,)
    return Books(tables, wal, sum(map(cpu_s, service.pids)), _postgres_cpu_s(connection))


def _postgres_cpu_s(connection: psycopg.Connection[Any]) -> float:
    """Processor time of the server's processes, those that have ended included."""
    (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    pid = int((Path(data) / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(cpu_s, (pid, *map(int, children))))


class AgentsProcess:
    """All agents, in a process of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def expect_waiting(self) -> None:
        """Return once all of them wait for jobs."""
        if self._line() != "waiting":
            raise RuntimeError("The agents could not begin; see above.")

    def tally(self) -> dict[str, Any]:
        """What came of all agents since the last call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def open_agents(service: Service, count: int) -> Iterator[AgentsProcess]:
    """Light agents, for as long as the block lasts."""
    ports = ",".join(map(str, service.ports))
    command = [sys.executable, str(HERE / "simulate_agents.py"), ports, str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield AgentsProcess(process)
        finally:
            process.kill()


def simulate(folder: Path, chosen: argparse.Namespace) -> str:
    """Run all of it; the last line."""
    with ExitStack() as stack:
        url = stack.enter_context(open_postgres(folder / "postgres"))
        opening = open_service(folder, postgres=PostgresUrl(url), checks=1)
        service = stack.enter_context(opening)
        began = time.monotonic()
        fill(url, service.check_ids[0], chosen.checks)
        print(f"{chosen.checks} checks in {time.monotonic() - began:.0f} s", flush=True)
        began = time.monotonic()
        agents = stack.enter_context(open_agents(service, chosen.agents))
        agents.expect_waiting()
        print(f"{chosen.agents} agents in {time.monotonic() - began:.0f} s", flush=True)
        first_s = plan(url, chosen)
        time.sleep(max(0.0, first_s - time.time()) + _WARM_UP_S)
        connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        notices = Notices(url)
        agents.tally()
        before = read_books(connection, service)
        time.sleep(chosen.seconds)
        tally, after = agents.tally(), read_books(connection, service)
        (late,) = connection.execute(_OVERDUE, (time.time_ns() // 1_000_000,)).fetchone() or (0,)
        (connections,) = connection.execute(_CONNECTIONS).fetchone() or (0,)
        _print_tables(before, after, runs=tally["runs"])
        return _line(chosen, tally, before, after) + (
            f" notices_per_s={notices.count / tally['took_s']:.1f} overdue={late}"
            f" connections={connections}"
        )


def _print_tables(before: Books, after: Books, *, runs: int) -> None:
    """What a run costs in each table."""
    print("per run                     inserted  updated  deleted    bytes")
    for name, counts in sorted(after.tables.items()):
        each = [
            (now - then) / runs
            for then, now in zip(before.tables.get(name, _NONE), counts, strict=True)
        ]
        if max(each[:3]) > _LEAST_ROWS:
            print(f"{name:28}{each[0]:8.2f} {each[1]:8.2f} {each[2]:8.2f} {each[3]:8.0f}")


def _line(chosen: argparse.Namespace, tally: dict[str, Any], before: Books, after: Books) -> str:
    runs, took_s, lags = tally["runs"], tally["took_s"], sorted(tally["lags_s"])
    if not runs:
        raise RuntimeError("No run ended.")

    def per_run(name: str) -> float:
        return float(getattr(after, name) - getattr(before, name)) / runs

    def rows_per_run(column: int) -> float:
        sums = [sum(each[column] for each in books.tables.values()) for books in (before, after)]
        return (sums[1] - sums[0]) / runs

    return (
        f"simulate checks={chosen.checks} agents={chosen.agents} runs={runs}"
        f" refused={tally['refused']}"
        f" wanted_per_s={chosen.checks / chosen.period * chosen.speed:.0f}"
        f" runs_per_s={runs / took_s:.0f} claims_per_s={tally['claims'] / took_s:.0f}"
        f" empty_claims_per_s={tally['empty_claims'] / took_s:.0f} broken={tally['broken']}"
        f" lag_p50_s={lags[len(lags) // 2]:.2f} lag_p99_s={lags[len(lags) * 99 // 100]:.2f}"
        f" inserts_per_run={rows_per_run(0):.2f} updates_per_run={rows_per_run(1):.2f}"
        f" deletes_per_run={rows_per_run(2):.2f} bytes_per_run={rows_per_run(3):.0f}"
        f" wal_bytes_per_run={per_run('wal_bytes'):.0f}"
        f" service_us_per_run={per_run('service_cpu_s') * 1e6:.0f}"
        f" postgres_us_per_run={per_run('postgres_cpu_s') * 1e6:.0f}"
    )


def main() -> None:
    """Read the arguments, and simulate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=1_000_000)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--period", type=float, default=3600, help="of each check, in seconds")
    parser.add_argument("--speed", type=float, default=2, help="of the schedule")
    parser.add_argument("--seconds", type=float, default=180, help="how long it is measured")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="picket-simulate-") as folder:
        print(simulate(Path(folder), chosen))


if __name__ == "__main__":
    main()
