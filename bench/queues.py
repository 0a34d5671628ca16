"""Jobs per second through the queue: our service over HTTP beside other queues.

Ours is one `python -m service` on SQLite, and two on PostgreSQL, with agents that claim and answer
at once; theirs are their own workers on PostgreSQL and on NATS. The last line is for machines:
`queue sqlite_b1=… sqlite_b32=… idle_polls=… wake_s=… vs_procrastinate=… vs_pgqueuer=…
postgres_b1=… postgres_b32=… held_transaction_ratio=… postgres_vs_procrastinate=…
postgres_vs_pgqueuer=… postgres_vs_nats=…`. See README.md beside this file.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from processes import free_port, running, wait_for_port
from queue_service import Service, open_service

from service.settings import PostgresUrl

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".tools" / "peers" / "bin" / "python"
GOALS = {
    "SQLite, 8 agents, batch 1": 2_000,
    "SQLite, 8 agents, batch 32": 12_000,
    "PostgreSQL, 64 agents, batch 1": 3_000,
    "PostgreSQL, 64 agents, batch 32": 12_000,
}
_CREATE = "CREATE DATABASE picket TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
_HOLD = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM job"
IDLE_POLLS = 4_000
WARM_UP_S = 0.5
WARM_UP_JOBS = 20_000
MOST_PER_S = {1: 6_000, 32: 80_000}
"""More than a machine of today does; so many jobs are put into the queue for each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another queue, and how many jobs it is given."""

    name: str
    program: str
    trial_jobs: int
    jobs: int
    batches: tuple[int, ...]
    """Those that are tried; the best one is measured. procrastinate's: jobs at once."""
    more: tuple[str, ...] = ()
    """Further arguments of the program."""

    def per_s(self, address: str, jobs: int, batch: int) -> float:
        """One round."""
        words = (PEERS, HERE / self.program, address, jobs, batch, *self.more)
        tally = json.loads(subprocess.check_output([str(word) for word in words], timeout=120))
        if tally["done"] != jobs:
            raise RuntimeError(f"{self.name} did {tally['done']} of {jobs} jobs.")
        return float(tally["done"] / tally["took_s"])

    def best_batch(self, address: str) -> int:
        """The batch size at which it is fastest."""
        rates = {batch: self.per_s(address, self.trial_jobs, batch) for batch in self.batches}
        tried = ", ".join(f"{rate:.0f} at {batch}" for batch, rate in rates.items())
        print(f"{self.name:32} jobs/s by batch size: {tried}", flush=True)
        return max(rates, key=lambda batch: rates[batch])


PROCRASTINATE = Peer(
    name="procrastinate",
    program="queue_procrastinate.py",
    trial_jobs=200,
    jobs=500,
    batches=(1, 4, 8, 16),
)
PGQUEUER = Peer(
    name="pgqueuer",
    program="queue_pgqueuer.py",
    trial_jobs=5_000,
    jobs=20_000,
    batches=(10, 32, 128, 512, 1024),
)
PGQUEUER_STORED = replace(
    PGQUEUER, name="pgqueuer with results, 32", jobs=5_000, batches=(32,), more=("stored",)
)
NATS = Peer(
    name="NATS JetStream",
    program="queue_nats.py",
    trial_jobs=5_000,
    jobs=20_000,
    batches=(1, 32, 256),
)


@contextmanager
def open_postgres(folder: Path) -> Iterator[str]:
    """A server for the peers, for as long as the block lasts; its address."""
    command = [str(PEERS), str(HERE / "queue_postgres.py"), str(folder / "postgres")]
    with (
        (folder / "postgres.out").open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            raise RuntimeError((folder / "postgres.out").read_text()[-2000:])
        yield address


@contextmanager
def open_nats(folder: Path) -> Iterator[str]:
    """A JetStream server that keeps its messages in files, with its defaults; its address."""
    port, log = free_port(), folder / "nats.out"
    program = PEERS.with_name("nats-server")
    words = (program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "nats"))
    with running(words, log=log) as process:
        wait_for_port(port, process, log=log)
        yield f"nats://127.0.0.1:{port}"


@dataclass(frozen=True, slots=True)
class Ours:
    """The service on one of its engines."""

    engine: str
    service: Service
    address: str | None = None
    """Of its PostgreSQL."""

    def side(self, agents: int, batch: int, for_s: float) -> tuple[str, Callable[[], float]]:
        """Its name, and rounds of it: jobs per second, printed with what they cost."""
        name = f"{self.engine}, {agents} agents, batch {batch}"
        self.service.fill(WARM_UP_JOBS)
        self.service.round(agents, batch, WARM_UP_S)

        def measure() -> float:
            self.service.fill(int(MOST_PER_S[batch] * for_s))
            if self.address is not None:
                settle(self.address)
            seen = self.service.round(agents, batch, for_s)
            print(
                f"{name:32} {seen.per_s:8.0f} jobs/s   "
                f"{seen.cpu_us:6.0f} us of the service's CPU per job",
                flush=True,
            )
            return seen.per_s

        return name, measure


def settle(address: str) -> None:
    """Have PostgreSQL do now what it would do of earlier rounds during the next one.

    The peers' programs do the same once their jobs are in the queue.
    """
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def theirs(peer: Peer, address: str) -> tuple[str, Callable[[], float]]:
    """A peer's name, and rounds of it at its own best batch size."""
    batch = peer.best_batch(address)

    def measure() -> float:
        rate = peer.per_s(address, peer.jobs, batch)
        print(f"{peer.name:32} {rate:8.0f} jobs/s at {batch}", flush=True)
        return rate

    return peer.name, measure


def compare(folder: Path, *, rounds: int, for_s: float) -> dict[str, float]:
    """Measure all sides in turns; the median of each, and the ratio of a held transaction."""
    with ExitStack() as stack:
        address = stack.enter_context(open_postgres(folder))
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(_CREATE)
        own = PostgresUrl(_replace_database(address, "picket"))
        on_sqlite, on_postgres = folder / "on-sqlite", folder / "on-postgresql"
        for each in (on_sqlite, on_postgres):
            each.mkdir()
        sqlite = Ours("SQLite", stack.enter_context(open_service(on_sqlite)))
        service = stack.enter_context(open_service(on_postgres, postgres=own))
        postgres = Ours("PostgreSQL", service, own.value)
        sides = dict(
            [
                *(sqlite.side(8, batch, for_s) for batch in (1, 32)),
                *(postgres.side(agents, batch, for_s) for agents in (8, 64) for batch in (1, 32)),
                *(theirs(one, address) for one in (PROCRASTINATE, PGQUEUER, PGQUEUER_STORED)),
                theirs(NATS, stack.enter_context(open_nats(folder))),
            ]
        )
        rates = _medians(sides, rounds)
        return {**rates, "held": _hold(own, postgres, rounds=rounds, for_s=for_s)}


def _replace_database(address: str, name: str) -> str:
    base, _, options = address.partition("?")
    return f"{base.rpartition('/')[0]}/{name}?{options}"


def _hold(own: PostgresUrl, ours: Ours, *, rounds: int, for_s: float) -> float:
    """The rate while somebody holds a snapshot for all rounds, divided by the rate without."""
    name, measure = ours.side(64, 32, for_s)
    free = statistics.median(measure() for _ in range(rounds))
    print(f"{name}, with a transaction held:", flush=True)
    with psycopg.connect(own.value) as connection:
        connection.execute(_HOLD)
        held = statistics.median(measure() for _ in range(rounds))
    return held / free


def _medians(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names: Sequence[str] = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            rates[name].append(sides[name]())
    return {name: statistics.median(found) for name, found in rates.items()}


def wake(folder: Path, polls: int) -> float:
    """Seconds until so many idle agents have their jobs; on a service with nothing else to do."""
    with open_service(folder) as service:
        took_s, held_mb = service.wake(polls)
    print(f"{polls} idle long polls, {held_mb:.0f} MB: all woken in {took_s:.2f} s, goal 1")
    return took_s


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each side")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one round of ours")
    parser.add_argument("--polls", type=int, default=IDLE_POLLS, help="idle agents")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="picket-bench-") as name:
        idle, busy = Path(name) / "idle", Path(name) / "busy"
        idle.mkdir()
        busy.mkdir()
        wake_s = wake(idle, chosen.polls)
        rates = compare(busy, rounds=chosen.rounds, for_s=chosen.seconds)
    for side, goal in GOALS.items():
        print(f"{side:32} {rates[side]:8.0f} jobs/s, goal {goal}")
    sqlite = [rates[f"SQLite, 8 agents, batch {batch}"] for batch in (1, 32)]
    postgres = [rates[f"PostgreSQL, 64 agents, batch {batch}"] for batch in (1, 32)]
    print(
        f"queue sqlite_b1={sqlite[0]:.0f} sqlite_b32={sqlite[1]:.0f} "
        f"idle_polls={chosen.polls} wake_s={wake_s:.2f} "
        f"vs_procrastinate={max(sqlite) / rates[PROCRASTINATE.name]:.2f} "
        f"vs_pgqueuer={max(sqlite) / rates[PGQUEUER.name]:.2f} "
        f"postgres_b1={postgres[0]:.0f} postgres_b32={postgres[1]:.0f} "
        f"held_transaction_ratio={rates['held']:.2f} "
        f"postgres_vs_procrastinate={max(postgres) / rates[PROCRASTINATE.name]:.2f} "
        f"postgres_vs_pgqueuer={postgres[1] / rates[PGQUEUER_STORED.name]:.2f} "
        f"postgres_vs_nats={max(postgres) / rates[NATS.name]:.2f}"
    )


if __name__ == "__main__":
    main()
