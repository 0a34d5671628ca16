"""Gives jobs to runners as slots become free."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import structlog

from agent.api_client.errors import ServiceError
from agent.jobs.faults import MachineFaults
from agent.jobs.leases import Leases
from agent.jobs.running import JobRunner, Run, RunningJobs
from agent.jobs.source import ServiceSource
from agent.outbox.artifacts import Artifacts
from agent.outbox.redact import ArtifactRedactor, ResultRedactor
from agent.outbox.results import DiskSpool
from agent.telemetry.metrics import Metrics
from contract.agent_api import ReleaseReason
from contract.checks import Lane, check_type, lane
from contract.job import Job
from contract.result import Outcome
from redaction.clean import CleanFile
from redaction.files import CLEANING_LIMIT_S
from runners.net.http.body_memory import BodyMemoryError

_WORTH_ASKING: Final = 4
"""A busy lane asks for jobs once this part of its slots is free, or after a short while."""


class Slots:
    """Counts free slots; a lane without any slots is not served."""

    def __init__(self, slots: Mapping[Lane, int], *, linger_s: float, metrics: Metrics) -> None:
        self._all = {on: count for on, count in slots.items() if count > 0}
        self._free = dict(self._all)
        self._linger_s = linger_s
        self._metrics = metrics
        self._freed = {on: asyncio.Event() for on in self._all}
        self._many_freed = {on: asyncio.Event() for on in self._all}
        for on, count in self._all.items():
            metrics.slots_free(on, count)

    def open(self, on: Lane, count: int) -> None:
        """Serve a lane that was not served before."""
        self._all[on] = self._free[on] = count
        self._freed[on], self._many_freed[on] = asyncio.Event(), asyncio.Event()
        self._metrics.slots_free(on, count)

    def __repr__(self) -> str:
        free = ", ".join(f"{on.value} {self._free[on]}/{self._all[on]}" for on in self._all)
        return f"Slots({free})"

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The lanes that are served."""
        return tuple(self._all)

    def free(self, on: Lane) -> int:
        """How many more jobs may start in the lane."""
        return self._free.get(on, 0)

    def take(self, on: Lane) -> bool:
        """Take a slot; False: none is free."""
        if self._free[on] == 0:
            return False
        self._free[on] -= 1
        self._metrics.slots_free(on, self._free[on])
        return True

    def give_back(self, on: Lane) -> None:
        """A job has left its slot."""
        self._free[on] += 1
        self._metrics.slots_free(on, self._free[on])
        if self._free[on] == 1:
            self._freed[on].set()
        if self._is_worth_asking(on):
            self._many_freed[on].set()

    async def wait_for_free(self, on: Lane) -> int:
        """Wait for free slots; how many there are.

        While few are free it waits a moment for more: one claim for many jobs costs the service
        and the agent as much as a claim for one.
        """
        while self._free[on] == 0:
            self._freed[on].clear()
            await self._freed[on].wait()
        if not self._is_worth_asking(on):
            self._many_freed[on].clear()
            # wait_for of Python 3.11 forgets that it was cancelled when the event comes with it.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger_s):
                    await self._many_freed[on].wait()
        return self._free[on]

    def _is_worth_asking(self, on: Lane) -> bool:
        return self._free[on] * _WORTH_ASKING >= self._all[on]


_UNSUPPORTED: Final = "This agent has no runner for the job's check type."
_STOPPING: Final = "The agent is stopping."

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherParts:
    """What the dispatcher puts to work."""

    source: ServiceSource
    leases: Leases
    runner: JobRunner
    result_redactor: ResultRedactor
    artifact_redactor: ArtifactRedactor
    spool: DiskSpool
    artifacts: Artifacts
    metrics: Metrics


class Dispatcher:
    """Claims as many jobs as there are free slots, runs them, hands their results on."""

    def __init__(
        self,
        parts: DispatcherParts,
        slots: Slots,
        running: RunningJobs,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._slots = slots
        self._clock = clock
        self._running = running
        self._stopping = False
        self.faults = MachineFaults()
        """What breaks here, for whoever withdraws types."""
        self._to_serve: asyncio.Queue[Lane] = asyncio.Queue()
        for on in slots.lanes:
            self._to_serve.put_nowait(on)

    def __repr__(self) -> str:
        return f"Dispatcher({len(self._running)} running, {self._slots!r})"

    def serve(self, on: Lane, slots: int) -> None:
        """Claim jobs of a lane that was not served before."""
        self._slots.open(on, slots)
        self._to_serve.put_nowait(on)

    async def run(self, draining: asyncio.Event) -> None:
        """Claim and run until draining begins; return when the last run has ended."""
        async with asyncio.TaskGroup() as jobs:
            async with asyncio.TaskGroup() as claims:
                open_claims: list[asyncio.Task[None]] = []
                opening = self._open_claims(claims, jobs, open_claims)
                open_claims.append(claims.create_task(opening, name="claims"))
                await draining.wait()
                self._stopping = True
                for claim in open_claims:
                    claim.cancel()
            self._running.stop_unstarted(ReleaseReason.DRAINING)
            await self._parts.source.give_back_abandoned()

    async def _open_claims(
        self,
        claims: asyncio.TaskGroup,
        jobs: asyncio.TaskGroup,
        open_claims: list[asyncio.Task[None]],
    ) -> None:
        while True:
            on = await self._to_serve.get()
            claim = self._claim_for(on, jobs)
            open_claims.append(claims.create_task(claim, name=f"claim-{on.value}"))

    async def _claim_for(self, on: Lane, jobs: asyncio.TaskGroup) -> None:
        while True:
            with warn_when_saturated(on, self._running):
                free = await self._slots.wait_for_free(on)
            claimed = await self._parts.source.claim({on: free})
            claimed_at = self._clock()
            for job in claimed:
                self._start(job, jobs, claimed_at=claimed_at)

    def _start(self, job: Job, jobs: asyncio.TaskGroup, *, claimed_at: float) -> None:
        on = lane(job.spec)
        if self._stopping:
            self._parts.source.release(job, ReleaseReason.DRAINING, message=_STOPPING)
        elif on not in self._slots.lanes or not self._parts.runner.can_run(job):
            self._parts.source.release(job, ReleaseReason.UNSUPPORTED, message=_UNSUPPORTED)
        elif not self._slots.take(on):
            self._parts.source.release(job, ReleaseReason.NO_ROOM)
        else:
            workspace = self._parts.artifacts.workspace()
            run = Run(job=job, lane=on, claimed_at=claimed_at, workspace=workspace)
            self._running.add(run)
            self._parts.leases.hold(run, claimed_at=claimed_at)
            run.task = jobs.create_task(self._work(run), name=job.job_id)

    async def _work(self, run: Run) -> None:
        """One job from its start to its result, or back to the service."""
        run.is_entered = True
        try:
            outcome = await self._run_if_leased(run)
            # A run that was stopped meanwhile may end like any other; its result is not wanted.
            if outcome is not None and not run.is_stopped:
                await self._finish(run, outcome)
                self.faults.note_end(run.job.spec)
        except asyncio.CancelledError:
            if not run.is_stopped:
                raise
        except ServiceError as problem:
            log.warning("job.not_confirmed", job_id=run.job.job_id, because=str(problem))
            if not run.is_stopped:
                self._parts.source.release(run.job, ReleaseReason.UNCONFIRMED)
        except BodyMemoryError as problem:
            log.warning("job.no_memory", job_id=run.job.job_id, because=str(problem))
            if not run.is_stopped:
                self._parts.source.release(run.job, ReleaseReason.NO_ROOM)
        except Exception as problem:  # our fault, whatever it is: the target must not pay for it
            log.exception("job.broke", job_id=run.job.job_id, type=check_type(run.job.spec).value)
            self.faults.note(run.job.spec, problem)
            if not run.is_stopped:
                self._take_blame(run.job, problem)
        finally:
            self._release_slot(run)

    async def _run_if_leased(self, run: Run) -> Outcome | None:
        """What came of the job. None: it did not run, for it was stopped or its lease is gone."""
        if run.is_stopped:
            return None
        if run.lane is not Lane.UPTIME and not await self._parts.leases.confirm(run.job):
            return None
        return await self._run_check(run)

    async def _run_check(self, run: Run) -> Outcome:
        run.start(self._clock())
        self._parts.metrics.job_started(lag_s=run.job.lag_s)
        return await self._parts.runner.run(run.job, run.workspace)

    async def _finish(self, run: Run, outcome: Outcome) -> None:
        ended_at = self._clock()
        files: Sequence[CleanFile] = ()
        run.extend_deadline(until=ended_at + CLEANING_LIMIT_S)
        if outcome.artifacts:
            enclosed = await self._parts.artifact_redactor.redact(run.job, outcome, run.workspace)
            outcome, files = enclosed.outcome, enclosed.files
        clean = await self._parts.result_redactor.redact(run, outcome, ended_at=ended_at)
        if files:
            await self._parts.artifacts.put(clean, files, lease_s=run.job.lease_s)
        else:
            self._parts.spool.put(clean)
        result = clean.result
        self._parts.metrics.job_finished(
            result.check_type, result.outcome.status, took_s=result.took_s
        )

    def _take_blame(self, job: Job, problem: Exception) -> None:
        because = f"{type(problem).__name__} in the agent"
        self._parts.source.release(job, ReleaseReason.AGENT_ERROR, message=because)

    def _release_slot(self, run: Run) -> None:
        if run.stop_reason is not None:
            self._parts.source.release(run.job, run.stop_reason)
        self._running.remove(run)
        self._parts.leases.drop(run.job)
        self._slots.give_back(run.lane)
        if run.workspace.has_folder:
            asyncio.get_running_loop().run_in_executor(None, run.workspace.remove)


WARN_AFTER_S: Final = 60.0
"""Most checks are due again after a minute or more; uptime checks never hold a slot for so long."""
_MOST_CHECKS: Final = 10
_SETTINGS: Final = {Lane.MAIN: "JOB_CONCURRENCY", Lane.UPTIME: "UPTIME_CONCURRENCY"}


@contextmanager
def warn_when_saturated(
    on: Lane, running: RunningJobs, *, after_s: float = WARN_AFTER_S
) -> Iterator[None]:
    """Around the wait for a free slot: two lines, when it is long and when it is over."""
    began_at = time.monotonic()
    timer = asyncio.get_running_loop().call_later(after_s, _warn_of_full_lane, on, running, after_s)
    try:
        yield
        took_s = time.monotonic() - began_at
        if took_s >= after_s:
            log.info("slots.free_again", lane=on.value, after_s=round(took_s))
    finally:
        timer.cancel()


def _warn_of_full_lane(on: Lane, running: RunningJobs, for_s: float) -> None:
    """Which checks hold the slots, the longest first, and the setting that gives more."""
    held = [run for run in running if run.lane is on]
    log.warning(
        "slots.full",
        lane=on.value,
        slots=len(held),
        for_s=round(for_s),
        checks=[run.job.check_id for run in held[:_MOST_CHECKS]],
        setting=_SETTINGS[on],
    )
