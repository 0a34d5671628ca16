"""The jobs that run now, and how one is run."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from contract.agent_api import ReleaseReason
from contract.checks import CheckSpec, Lane, lane
from contract.job import Job, RunSource
from contract.result import Outcome
from runners.runner import NOTHING, LastPings, RunContext, Runner
from runners.scripting.environment import build_job_environment
from runners.tools import Tools
from sandbox.workspace import Workspace


class Run:
    """A claimed job, its task, and why it was stopped if it was. Times are monotonic."""

    __slots__ = (
        "claimed_at",
        "deadline_at",
        "is_entered",
        "is_stopped",
        "job",
        "lane",
        "started_at",
        "started_on",
        "stop_reason",
        "task",
        "workspace",
    )

    def __init__(self, *, job: Job, lane: Lane, claimed_at: float, workspace: Workspace) -> None:
        self.job = job
        self.lane = lane
        self.claimed_at = claimed_at
        self.workspace = workspace
        self.started_at: float | None = None
        """None: it waits for its start."""
        self.started_on: datetime | None = None
        """The calendar time of the start, for readers only. None: it waits for its start."""
        self.deadline_at = math.inf
        self.task: asyncio.Task[None] | None = None
        """None: it is being made."""
        self.is_entered = False
        """Whether its task has begun; one that is cancelled earlier would never clean up."""
        self.is_stopped = False
        self.stop_reason: ReleaseReason | None = None
        """Why its job is given back. None: it is not; the lease is somebody else's."""

    def start(self, now: float) -> None:
        """The run begins."""
        self.started_at = now
        self.started_on = datetime.now(UTC)
        self.deadline_at = now + self.job.deadline_s

    def extend_deadline(self, *, until: float) -> None:
        """Move the deadline: the run is over, and its result and files are being redacted."""
        self.deadline_at = max(self.deadline_at, until)

    def lose(self) -> None:
        """The lease is gone: end, send nothing."""
        self._stop(None)

    def cancel(self) -> None:
        """The run is not wanted any more: end, and give the job back."""
        self._stop(ReleaseReason.CANCELLED)

    def stop(self, reason: ReleaseReason) -> None:
        """End, and give the job back for this reason."""
        self._stop(reason)

    def _stop(self, reason: ReleaseReason | None) -> None:
        if self.is_stopped:
            return
        self.is_stopped = True
        self.stop_reason = reason
        if self.task is not None and self.is_entered:
            self.task.cancel()


class RunningJobs:
    """Every job that holds a slot."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._runs: dict[Run, None] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(tuple(self._runs))

    def add(self, run: Run) -> None:
        """Note that this job has taken a slot."""
        self._runs[run] = None

    def remove(self, run: Run) -> None:
        """Note that this job has left its slot."""
        del self._runs[run]

    def stop_all(self, reason: ReleaseReason) -> None:
        """Cancel every run, and give the jobs back."""
        for run in self:
            run.stop(reason)

    def stop_unstarted(self, reason: ReleaseReason) -> None:
        """Give back the jobs that wait for their start."""
        for run in self:
            if run.started_at is None:
                run.stop(reason)

    def longest_overdue_s(self) -> float:
        """How long the worst running job is past its deadline; 0: none is."""
        now = self._clock()
        return max(0.0, *(now - run.deadline_at for run in self._runs), 0.0)

    def oldest_wait_s(self, on: Lane) -> float:
        """How long the claimed job has waited that waits longest for its start; 0: none waits."""
        now = self._clock()
        waits = (
            now - run.claimed_at for run in self._runs if run.lane is on and run.started_at is None
        )
        return max(waits, default=0.0)


_SPARE_S: Final = 0.5
"""How long before its deadline a runner ends by itself, to say what it was waiting for."""

Execute = Callable[[Job, Runner[Any], RunContext], Coroutine[Any, Any, Outcome]]


class JobRunner:
    """Runs jobs with the given runners, on the process's one network."""

    def __init__(
        self,
        runners: Iterable[Runner[Any]],
        execute: Execute,
        *,
        network: Tools,
        pings: LastPings,
        location_secrets: Mapping[str, str] = NOTHING,
    ) -> None:
        """`location_secrets`: what scripts may read of the agent's own environment."""
        self._by_spec: dict[type[CheckSpec], Runner[Any]] = {
            runner.spec: runner for runner in runners
        }
        self._execute = execute
        self._network = network
        self._pings = pings
        self._location_secrets = location_secrets

    def can_run(self, job: Job) -> bool:
        """Whether there is a runner for this job."""
        return type(job.spec) in self._by_spec

    def run(self, job: Job, workspace: Workspace) -> Coroutine[Any, Any, Outcome]:
        """Run the check once and judge it; what this raises is our fault, never the target's."""
        has_scripts = lane(job.spec) is not Lane.UPTIME
        ctx = RunContext(
            network=self._network,
            pings=self._pings,
            timeout_s=max(job.deadline_s - _SPARE_S, job.deadline_s * 0.9),
            limit_s=job.deadline_s,
            variables=job.variables,
            environment=build_job_environment(job) if has_scripts else NOTHING,
            location_secrets=self._location_secrets if has_scripts else NOTHING,
            client_certificates=job.client_certificates,
            proxy_url=job.proxy_url,
            workspace=workspace,
            keeps_files=job.run_source is not RunSource.SCHEDULER,
        )
        return self._execute(job, self._by_spec[type(job.spec)], ctx)
