"""A dispatcher among parts in memory, set going."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent.jobs.dispatcher import Dispatcher, DispatcherParts, Slots
from agent.jobs.running import RunningJobs
from agent.outbox.redact import ArtifactRedactor, ResultRedactor
from contract.checks import Lane
from contract.job import Job
from redaction.result import Scrubber
from tests.builders.agents import MemoryFiles, MemorySource, MemorySpool, ScriptedRunner, metrics
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job


class Leases:
    """Every lease is good unless the test says otherwise."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.confirmed: list[str] = []
        self.good: Any = True
        """True, False, an error to raise, an event to wait for, or a function to ask."""

    def hold(self, run: Any, *, claimed_at: float) -> None:
        self.held.append(run.job.job_id)

    def drop(self, job: Job) -> None:
        self.held.remove(job.job_id)

    async def confirm(self, job: Job) -> bool:
        self.confirmed.append(job.job_id)
        if callable(self.good):
            return bool(self.good())
        if isinstance(self.good, Exception):
            raise self.good
        if isinstance(self.good, asyncio.Event):
            return await self.good.wait()
        return bool(self.good)


class Bench:
    def __init__(
        self,
        runner: ScriptedRunner,
        *,
        uptime: int,
        main: int,
        cleaner: Any = None,
        folder: Path | None = None,
    ) -> None:
        self.source, self.spool, self.leases = MemorySource(), MemorySpool(), Leases()
        self.runner, self.running, self.meter = runner, RunningJobs(), metrics()
        self.draining, self.files = asyncio.Event(), MemoryFiles(folder)
        self.slots = Slots(
            {Lane.UPTIME: uptime, Lane.MAIN: main}, linger_s=0.001, metrics=self.meter
        )
        works = DispatcherParts(
            source=self.source,
            leases=self.leases,
            runner=runner,
            result_redactor=ResultRedactor(
                cleaner or Scrubber(), agent_id="agent-1", metrics=self.meter
            ),
            spool=self.spool,
            artifact_redactor=ArtifactRedactor(Scrubber(), metrics=self.meter),
            artifacts=self.files,
            metrics=self.meter,
        )
        self.dispatcher = Dispatcher(works, self.slots, self.running)


@asynccontextmanager
async def bench(
    act: Any = None, *, uptime: int = 4, main: int = 0, outcome: Any = None, **more: Any
) -> AsyncIterator[Bench]:
    runner = ScriptedRunner(act, outcome=outcome) if outcome else ScriptedRunner(act)
    it = Bench(runner, uptime=uptime, main=main, **more)
    task = asyncio.create_task(it.dispatcher.run(it.draining))
    try:
        yield it
        it.draining.set()
        await asyncio.wait_for(task, LONG_S)
    finally:
        task.cancel()


def jobs(count: int, **changes: Any) -> list[Job]:
    return [a_job(job_id=f"job-{number}", **changes) for number in range(count)]


async def for_ever(_job: Job) -> None:
    await asyncio.Event().wait()
