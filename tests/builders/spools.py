"""Spools on a disk, and results that are numbers."""

from pathlib import Path

from agent.outbox.result_files import ResultFolder
from agent.outbox.results import DiskSpool, SpoolLimits, Waiting
from contract.result import Result
from contract.wire import decode
from tests.builders.agents import clean

ROOMY = SpoolLimits(max_bytes=1024**3, max_age_s=86400)


class Drops:
    def __init__(self) -> None:
        self.count = 0

    def results_dropped(self, count: int) -> None:
        self.count += count


class Clock:
    def __init__(self) -> None:
        self.now = 1_795_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


async def opened(
    folder: Path,
    *,
    limits: SpoolLimits = ROOMY,
    drops: Drops | None = None,
    clock: Clock | None = None,
) -> DiskSpool:
    spool = DiskSpool(
        ResultFolder(folder, agent_id="abc123"),
        limits=limits,
        metrics=drops or Drops(),
        wall_clock=clock or Clock(),
    )
    await spool.open()
    return spool


def put(spool: DiskSpool, *numbers: int) -> None:
    for number in numbers:
        spool.put(clean(f"job-{number}"))


def numbers(batch: tuple[Waiting, ...]) -> list[int]:
    return [int(decode(waiting.body, Result).job_id.removeprefix("job-")) for waiting in batch]


async def drained(spool: DiskSpool) -> list[int]:
    """Deliver everything."""
    found: list[int] = []
    while batch := await spool.next_batch():
        found += numbers(batch)
        await spool.delivered(batch)
    return found
