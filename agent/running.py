"""Jobs while they hold a slot."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from contract.agent_api import ReleaseReason
from contract.checks import Lane
from contract.job import Job
from runners.kit.isolation.workspace import Workspace


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
        """The same by the calendar, for the reader only."""
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

    def stay(self, *, until: float) -> None:
        """The run is over, and what it left takes a while to be made clean."""
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
        """This job has got a slot."""
        self._runs[run] = None

    def remove(self, run: Run) -> None:
        """It has left it."""
        del self._runs[run]

    def stop_all(self, reason: ReleaseReason) -> None:
        """Cancel every run, and give the jobs back."""
        for run in self:
            run.stop(reason)

    def stop_those_that_have_not_started(self, reason: ReleaseReason) -> None:
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
