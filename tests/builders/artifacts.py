"""Everything between a run that left files and a service: spool, leases, parcels, uploads."""

import asyncio
import ctypes
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.jobs.leases import Leases
from agent.outbox.artifact_files import ArtifactFolder
from agent.outbox.artifact_sender import ArtifactSender
from agent.outbox.artifacts import Artifacts
from agent.outbox.result_files import ResultFolder
from agent.outbox.result_sender import ResultSender
from agent.outbox.results import DiskSpool, SpoolLimits, make_steady_clock
from contract.result import Artifact
from tests.builders.agents import QUICK, a_clean_file, a_client, clean, ids, metrics
from tests.builders.observations import an_outcome
from tests.builders.specs import a_job
from tests.fakes.service import FakeService

LIMITS = SpoolLimits(max_bytes=10**9, max_age_s=3600)
_CWD, _EXCHANGE = -100, 2
"""Of `renameat2`."""
BIG = bytes(range(256)) * 1000
"""More than a first piece."""


def make_unreadable(path: Path) -> bytes:
    """Let reading a file fail as on a disk in trouble; what was in it."""
    content = path.read_bytes()
    path.unlink()
    path.mkdir()
    return content


def make_readable(path: Path, content: bytes) -> None:
    """Undo `make_unreadable` at one blow: whoever looks finds the folder or the file."""
    whole = path.parents[3] / "whole"
    whole.write_bytes(content)
    if ctypes.CDLL(None).renameat2(_CWD, bytes(whole), _CWD, bytes(path), _EXCHANGE):
        raise OSError("the two could not be exchanged")
    whole.rmdir()


class Bench:
    """Everything between a run that left files and a service."""

    def __init__(
        self, folder: Path, service: FakeService, client: Any, *, agent_id: str, **limits: Any
    ) -> None:
        self.folder, self.service, self.meter = folder, service, metrics()
        self.now_s, clock = 0.0, make_steady_clock()
        held = replace(LIMITS, **limits)
        self.spool = DiskSpool(
            ResultFolder(folder / "results", agent_id=agent_id),
            limits=held,
            metrics=self.meter,
            wall_clock=clock,
        )
        self.leases = Leases(client, metrics=self.meter, undelivered=lambda: 0)
        self.files = Artifacts(
            ArtifactFolder(folder / "artifacts", agent_id=agent_id),
            self.spool,
            self.leases,
            metrics=self.meter,
            limits=held,
            wall_clock=lambda: clock() + self.now_s,
        )
        self.uploads = ArtifactSender(client, self.files, pace=QUICK)
        self.delivery = ResultSender(client, self.spool, metrics=self.meter, pace=QUICK)

    def lease(self, *job_ids: str) -> None:
        """Let the service know jobs as handed out."""
        for job_id in job_ids:
            self.service.book.offer(a_job(job_id=job_id))
            entry = self.service.book.entries[job_id]
            self.service.book.queue[entry.lane].remove(entry)
            entry.fence = 1

    async def put(self, job_id: str, **contents: bytes) -> None:
        """A run of this job left these files, `_` for a dot."""
        workspace = self.files.workspace()
        named: dict[Artifact, Path] = {}
        for name, content in contents.items():
            path = workspace.folder / name.replace("_", ".")
            path.write_bytes(content)
            named[workspace.artifact(path.name, "file")] = path
        result = clean(job_id, outcome=an_outcome(artifacts=tuple(named)))
        files = [a_clean_file(path, artifact) for artifact, path in named.items()]
        await self.files.put(result, files, lease_s=60)
        workspace.remove()

    async def arrived(self, *job_ids: str) -> None:
        await self.service.until(lambda: ids(self.service.results) >= set(job_ids))

    def dropped(self) -> tuple[int, int]:
        """How many files and how many results nobody will get."""
        text = self.meter.text().decode()
        names = ("artifacts_dropped", "results_dropped")
        found = (
            re.search(rf"^picket_agent_{one}_total (\S+)", text, re.MULTILINE) for one in names
        )
        files, results = (0 if one is None else int(float(one[1])) for one in found)
        return files, results

    def log_of(self, job_id: str) -> list[str]:
        (result,) = (one for one in self.service.results if one.job_id == job_id)
        return [line.message for line in result.outcome.log]

    def parcels(self) -> list[Path]:
        return sorted((self.folder / "artifacts").glob("*/parcel-*"))


@asynccontextmanager
async def bench(
    folder: Path,
    *,
    service: FakeService | None = None,
    agent_id: str = "a1",
    works: bool = True,
    **limits: Any,
) -> AsyncIterator[Bench]:
    """`works`: whether anything is uploaded."""
    async with FakeService() as own, a_client(service or own) as client:
        it = Bench(folder, service or own, client, agent_id=agent_id, **limits)
        await it.spool.open()
        await it.files.open()
        loops = [it.delivery.run(), it.leases.keep(), *([it.uploads.run()] if works else [])]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            yield it
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await it.files.close()
