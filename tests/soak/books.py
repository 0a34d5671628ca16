"""What a soak leaves: in the service's database, in /proc, in the agents' own metrics."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults.ledger import Ledger, open_books
from tests.faults.processes import AgentChild, Child
from tests.soak.alerting.comparison import Compared

LONGEST_SILENCE_S: Final = 15.0
_LOOKS: Final = 60
_FIRST_LOOKS: Final = 12
_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a process holds when nothing is going on."""

    tasks: int
    fds: int


async def size_of_agent(agent: AgentChild) -> Size:
    """By its own metrics, and by /proc."""
    return Size(tasks=round(await agent.metric("tasks")), fds=agent.fds())


async def size_of_service(service: Child) -> Size:
    """By its own word, and by /proc."""
    return Size(tasks=len(await service.tasks()), fds=service.fds())


async def at_rest(measure: Callable[[], Awaitable[Size]], limit: Size | None = None) -> Size:
    """The least of each over a while; no longer than until both are within the limit.

    Connections of a pool and calls that are on their way come and go; what leaks stays.
    """
    seen = await measure()
    for _ in range(_LOOKS if limit else _FIRST_LOOKS):
        if limit and seen.tasks <= limit.tasks and seen.fds <= limit.fds:
            break
        await asyncio.sleep(_PAUSE_S)
        now = await measure()
        seen = Size(tasks=min(seen.tasks, now.tasks), fds=min(seen.fds, now.fds))
    return seen


def stored_pings(database: Path | str) -> int:
    """Heartbeat pings that the service has."""
    with open_books(database) as books:
        found: int = books.execute("SELECT count(*) FROM ping").fetchone()[0]
    return found


def marked_processes(mark: str) -> set[int]:
    """Processes with this in their environment, whoever their parent is now."""
    return {int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _has(folder, mark)}


def _has(folder: Path, mark: str) -> bool:
    try:
        return (
            int(folder.name) != os.getpid()
            and mark.encode() in (folder / "environ").read_bytes().split(b"\0")
            and ") Z " not in (folder / "stat").read_text()
        )
    except OSError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a soak."""

    ledger: Ledger
    acknowledged: int
    """Runs on demand whose session the service confirmed."""
    pings: int
    """Heartbeat pings that an agent answered."""
    stored_pings: int
    leaked_tasks: int
    leaked_processes: int
    leaked_fds: int
    leaked_secrets: int
    """Places in all that agents said in which a secret was found."""
    holes: int
    """Due times of checks that no record stands for."""
    failed_heartbeats: int
    """Runs of heartbeats that failed, rightly so where the agent that is pinged was down."""
    wrong_heartbeats: int
    """Those of them whose ping had been answered in time."""
    unsteady_failures: int
    """Runs that found fault with pages that fail at times."""
    alerting: Compared
    silence_p99_s: float
    """Seconds without a result after the end of a fault, at the 99th percentile."""

    @property
    def duplicate(self) -> int:
        return len(self.ledger.doubled)

    @property
    def lost(self) -> int:
        """Runs without an end, ends without a run, and wishes that were forgotten."""
        ledger = self.ledger
        unbalanced = abs(ledger.runs - ledger.final - ledger.missed)
        forgotten = max(0, self.acknowledged - ledger.triggered)
        forgotten += max(0, self.pings - self.stored_pings)
        ends = len(ledger.lost) + len(ledger.unmarked) + ledger.open_runs + ledger.open_sessions
        ends += len(ledger.unlike_attempts)
        return max(unbalanced, ends + ledger.late_of_nothing + forgotten)

    @property
    def failed(self) -> int:
        """Runs that found fault with a target that had none."""
        statuses = self.ledger.statuses
        well = statuses.get("PASSED", 0) + statuses.get("MISSED", 0)
        return sum(statuses.values()) - well - self.failed_heartbeats - self.unsteady_failures

    @property
    def is_clean(self) -> bool:
        leaks = self.leaked_tasks + self.leaked_processes + self.leaked_fds + self.leaked_secrets
        gaps = self.holes + self.wrong_heartbeats + (self.silence_p99_s > LONGEST_SILENCE_S)
        faults = leaks + gaps + len(self.alerting.faults)
        return not (self.duplicate or self.lost or self.failed or faults)

    def line(self) -> str:
        """The one line that counts."""
        return (
            f"runs={self.ledger.runs} final={self.ledger.final} missed={self.ledger.missed} "
            f"duplicate={self.duplicate} lost={self.lost} leaked_tasks={self.leaked_tasks} "
            f"leaked_processes={self.leaked_processes} leaked_fds={self.leaked_fds} "
            f"leaked_secrets={self.leaked_secrets} holes={self.holes} "
            f"wrong_heartbeats={self.wrong_heartbeats} {self.alerting.line()} "
            f"silence_p99_s={self.silence_p99_s:.1f}"
        )
