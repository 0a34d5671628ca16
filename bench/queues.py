"""Jobs per second through the queue: our service over HTTP beside procrastinate and pgqueuer.

Ours is one `python -m service` on SQLite with agents that claim and answer at once; theirs are
their own workers on PostgreSQL. The last line is for machines:
`queue sqlite_b1=… sqlite_b32=… idle_polls=… wake_s=… vs_procrastinate=… vs_pgqueuer=…`.
See README.md beside this file.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from queue_service import Service, open_service

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".tools" / "peers" / "bin" / "python"
GOALS = {"batch 1": 2_000, "batch 32": 12_000}
AGENTS = 8
IDLE_POLLS = 4_000
WARM_UP_S = 0.5
WARM_UP_JOBS = 10_000
MOST_PER_S = {1: 6_000, 32: 80_000}
"""More than a machine of today does; so many jobs are put into the queue for each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A queue on PostgreSQL, and how many jobs it is given."""

    name: str
    program: str
    trial_jobs: int
    jobs: int
    batches: tuple[int, ...]
    """Those that are tried; the best one is measured. procrastinate's: jobs at once."""

    def per_s(self, address: str, jobs: int, batch: int) -> float:
        """One round."""
        words = (PEERS, HERE / self.program, address, jobs, batch)
        tally = json.loads(subprocess.check_output([str(word) for word in words], timeout=120))
        if tally["done"] != jobs:
            raise RuntimeError(f"{self.name} did {tally['done']} of {jobs} jobs.")
        return float(tally["done"] / tally["took_s"])

    def best_batch(self, address: str) -> int:
        """The batch size at which it is fastest."""
        rates = {batch: self.per_s(address, self.trial_jobs, batch) for batch in self.batches}
        tried = ", ".join(f"{rate:.0f} at {batch}" for batch, rate in rates.items())
        print(f"{self.name:14} jobs/s by batch size: {tried}", flush=True)
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


def ours(service: Service, batch: int, for_s: float) -> Callable[[], float]:
    """Rounds of ours: jobs per second, printed with what they cost."""
    service.fill(WARM_UP_JOBS)
    service.round(AGENTS, batch, WARM_UP_S)

    def measure() -> float:
        service.fill(int(MOST_PER_S[batch] * for_s))
        seen = service.round(AGENTS, batch, for_s)
        print(
            f"ours, batch {batch:<2} {seen.per_s:8.0f} jobs/s   "
            f"{seen.cpu_us:6.0f} us of the service's CPU per job",
            flush=True,
        )
        return seen.per_s

    return measure


def theirs(peer: Peer, address: str) -> Callable[[], float]:
    """Rounds of a peer at its own best batch size."""
    batch = peer.best_batch(address)

    def measure() -> float:
        rate = peer.per_s(address, peer.jobs, batch)
        print(f"{peer.name:14}{rate:7.0f} jobs/s at {batch}", flush=True)
        return rate

    return measure


def compare(folder: Path, service: Service, *, rounds: int, for_s: float) -> dict[str, float]:
    """Measure all sides in turns; the median of each."""
    with open_postgres(folder) as address:
        sides = {
            "batch 1": ours(service, 1, for_s),
            "batch 32": ours(service, 32, for_s),
            "procrastinate": theirs(PROCRASTINATE, address),
            "pgqueuer": theirs(PGQUEUER, address),
        }
        return _medians(sides, rounds)


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
    with tempfile.TemporaryDirectory(prefix="picket-bench-") as name, ExitStack() as stack:
        idle, busy = Path(name) / "idle", Path(name) / "busy"
        idle.mkdir()
        busy.mkdir()
        wake_s = wake(idle, chosen.polls)
        service = stack.enter_context(open_service(busy))
        rates = compare(busy, service, rounds=chosen.rounds, for_s=chosen.seconds)
    for side, goal in GOALS.items():
        print(f"ours, {side:8} {rates[side]:8.0f} jobs/s, goal {goal}")
    best = max(rates["batch 1"], rates["batch 32"])
    print(
        f"queue sqlite_b1={rates['batch 1']:.0f} sqlite_b32={rates['batch 32']:.0f} "
        f"idle_polls={chosen.polls} wake_s={wake_s:.2f} "
        f"vs_procrastinate={best / rates['procrastinate']:.2f} "
        f"vs_pgqueuer={best / rates['pgqueuer']:.2f}"
    )


if __name__ == "__main__":
    main()
