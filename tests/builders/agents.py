"""Builders of the agent's parts: settings, a client on a fake service, the in-memory neighbours."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from agent.api_client.client import ServiceClient, ServiceEndpoint
from agent.api_client.retry import Pace
from agent.jobs.running import Run
from agent.lifecycle import Lifecycle
from agent.settings import Settings
from agent.telemetry.metrics import Metrics
from contract.agent_api import Released, ReleaseReason
from contract.checks import Lane, lane
from contract.job import Job
from contract.result import Artifact, Outcome, Result
from contract.wire import encode
from redaction.clean import Clean, CleanFile, Passed, pass_file, restore_clean
from sandbox.workspace import RunFile, Workspace
from tests.builders.observations import a_result, an_outcome
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job
from tests.fakes.service import KEY, FakeService

QUICK = Pace(first_s=0.02, cap_s=0.05, claim_wait_s=30.0, linger_s=0.005, flush_s=1.0)


def settings(service_url: str = "http://127.0.0.1:9", **changes: Any) -> Settings:
    fields = {
        "api_key": KEY,
        "service_url": service_url,
        "job_concurrency": 1,
        "health_port": 0,
        "heartbeat_port": 0,
        "data_dir": Path("/nonexistent"),
    }
    return Settings(**{**fields, **changes})


def a_lifecycle(ready_grace_s: float = 60, **changes: Any) -> Lifecycle:
    return Lifecycle(**{"ready_grace_s": ready_grace_s, "exit_at_once": lambda: None, **changes})


def metrics() -> Metrics:
    return Metrics(version="0", runtime="test")


def door(service_url: str, **changes: Any) -> ServiceEndpoint:
    fields = {"url": service_url, "api_key": KEY, "agent_id": "agent-1", "version": "9.8.7"}
    return ServiceEndpoint(**{**fields, **changes})


@asynccontextmanager
async def a_client(
    service: FakeService | str, *, lifecycle: Lifecycle | None = None, **changes: Any
) -> AsyncIterator[ServiceClient]:
    """A real client on a real connection to the fake service, or to a URL."""
    url = service if isinstance(service, str) else service.url
    async with aiohttp.ClientSession() as session:
        yield ServiceClient(
            door(url, **changes), session, lifecycle=lifecycle or a_lifecycle(), metrics=metrics()
        )


def clean(job_id: str = "job-1", fence: int = 1, **changes: Any) -> Clean:
    """A result that a scrubber would have let through."""
    result = a_result(job_id=job_id, fence=fence, **changes)
    return restore_clean(result, encode(result))


def a_clean_file(path: Path, artifact: Artifact) -> CleanFile:
    """A file that the scanner would have let through."""
    return pass_file(RunFile(path, artifact), Passed(artifact=artifact))


def a_run(job: Job | None = None, *, claimed_at: float = 0.0) -> Run:
    job = job or a_job()
    return Run(job=job, lane=lane(job.spec), claimed_at=claimed_at, workspace=Workspace())


class MemorySource:
    """Jobs from a list; remembers what was asked and what came back."""

    def __init__(self, *jobs: Job) -> None:
        self._jobs = list(jobs)
        self._more = asyncio.Event()
        self.asked: list[dict[Lane, int]] = []
        self.released: list[tuple[str, ReleaseReason]] = []
        self.messages: list[str] = []
        self.gave_back_abandoned = 0

    def offer(self, *jobs: Job) -> None:
        self._jobs += jobs
        self._more.set()

    async def claim(self, slots: Mapping[Lane, int]) -> tuple[Job, ...]:
        self.asked.append(dict(slots))
        ((on, free),) = slots.items()
        while not (fit := [job for job in self._jobs if lane(job.spec) is on][:free]):
            self._more.clear()
            await self._more.wait()
        self._jobs = [job for job in self._jobs if job not in fit]
        return tuple(fit)

    def release(self, job: Job, reason: ReleaseReason, *, message: str = "") -> None:
        self.released.append((job.job_id, reason))
        self.messages.append(message)

    async def give_back_abandoned(self) -> None:
        self.gave_back_abandoned += 1


class MemoryReleases:
    """Jobs on their way back, in a list."""

    def __init__(self) -> None:
        self.put_back: list[Released] = []

    def put(self, released: Released, *, lease_s: float) -> None:
        self.put_back.append(released)


class ScriptedRunner:
    """Answers each job as the test says; by default it passes at once."""

    def __init__(
        self,
        act: Callable[[Job], Any] | None = None,
        *,
        outcome: Callable[[Workspace], Outcome] = lambda _: an_outcome(),
    ) -> None:
        self._act = act
        self._outcome = outcome
        self.running = 0
        self.most_at_once = 0
        self.ran: list[str] = []

    def can_run(self, job: Job) -> bool:
        return not job.check_name.startswith("unknown")

    async def run(self, job: Job, workspace: Workspace) -> Outcome:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        self.ran.append(job.job_id)
        try:
            if self._act is not None:
                await self._act(job)
            return self._outcome(workspace)
        finally:
            self.running -= 1


class MemorySpool:
    """Clean results, in a list."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def put(self, clean: Clean) -> None:
        self.results.append(clean.result)


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds that nobody announces."""
    give_up = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < give_up, "it did not come to hold"
        await asyncio.sleep(0.02)


class MemoryFiles:
    """Results with the contents of their files, in a list; runs work in a given folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self.parcels: list[tuple[Result, dict[str, bytes]]] = []

    def workspace(self) -> Workspace:
        return Workspace(self._folder)

    async def put(self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float) -> None:
        contents = {file.artifact.name: file.path.read_bytes() for file in files}
        self.parcels.append((clean.result, contents))


def files(folder: Path) -> list[Path]:
    """What lies in a folder."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def ids(results: Sequence[Result]) -> set[str]:
    return {result.job_id for result in results}
