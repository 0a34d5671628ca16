"""Puts an outcome into its envelope and lets nothing secret out."""

from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import msgspec
import structlog

from agent.running import Run
from contract.checks import check_type
from contract.job import Job
from contract.result import Failure, LogLine, Outcome, Result
from runners.kit.aside import Aside
from runners.kit.leak_scan.door import Clean
from runners.kit.leak_scan.leak import LeakError, MemberKind, UnscannableError
from runners.kit.secrets.typed_texts import TypedAmong, none_typed

log = structlog.get_logger(__name__)


class Cleaner(Protocol):
    """The only one who can make a result clean."""

    def at_once(
        self, result: Result, *, job: Job | None = None, found: tuple[str, ...] = ()
    ) -> Clean | None:
        """The result if no secret has to be looked for in it. None: that takes its time."""

    def clean(
        self,
        result: Result,
        *,
        job: Job | None = None,
        found: tuple[str, ...] = (),
        typed_among: TypedAmong = none_typed,
    ) -> Clean:
        """The result without secrets, those of its job and those found in its run included."""


class ScrubMeter(Protocol):
    """Where the scrubber's work is counted."""

    def scrubbed(self, replacements: int) -> None:
        """So many secrets were taken out."""

    def scrub_refused(self) -> None:
        """A result could not be made clean, so it was not sent."""

    def leak_withheld(self, member: MemberKind) -> None:
        """The scanner found a secret in what had been scrubbed."""


class SealedEnvelopes:
    """Results of this agent; secrets are looked for in a thread beside the event loop."""

    def __init__(self, cleaner: Cleaner, *, agent_id: str, meter: ScrubMeter) -> None:
        self._cleaner = cleaner
        self._agent_id = agent_id
        self._meter = meter
        # One thread: what the cleaner remembers of a set of secrets has no lock.
        self._search = Aside(threads=1, name="search")

    async def seal(self, run: Run, outcome: Outcome, *, ended_at: float) -> Clean:
        """The outcome in its envelope, without secrets; what it raises is our fault."""
        result = self._in_envelope(run, outcome, ended_at=ended_at)
        try:
            clean = await self._clean(result, run)
        except Exception:
            self._meter.scrub_refused()
            raise
        if clean.replacements:
            self._meter.scrubbed(clean.replacements)
        return clean

    def close(self) -> None:
        """Let the thread go; nobody waits for an envelope any more."""
        self._search.close()

    async def _clean(self, result: Result, run: Run) -> Clean:
        because = run.workspace.unsearchable_because
        if because is not None:
            self._meter.scrub_refused()
            return await self._without_details(result, run, because)
        try:
            return await self._cleaned(result, run)
        except (LeakError, UnscannableError) as problem:
            because = str(problem)
        self._meter.leak_withheld(MemberKind.RESULT)
        return await self._without_details(result, run, because)

    async def _without_details(self, result: Result, run: Run, because: str) -> Clean:
        log.error("result.details_withheld", job_id=run.job.job_id, because=because)
        return await self._cleaned(without_details(result, because), run)

    async def _cleaned(self, result: Result, run: Run) -> Clean:
        job, found = run.job, run.workspace.secrets
        clean = self._cleaner.at_once(result, job=job, found=found)
        if clean is not None:
            return clean
        typed = run.workspace.typed_among
        return await self._search.run(
            partial(self._cleaner.clean, result, job=job, found=found, typed_among=typed)
        )

    def _in_envelope(self, run: Run, outcome: Outcome, *, ended_at: float) -> Result:
        job = run.job
        started_at = ended_at if run.started_at is None else run.started_at
        return Result(
            job_id=job.job_id,
            fence=job.fence,
            run_id=job.run_id,
            check_id=job.check_id,
            check_type=check_type(job.spec),
            agent_id=self._agent_id,
            attempt=job.attempt,
            started_at=run.started_on or datetime.now(UTC),
            started_after_s=started_at - run.claimed_at,
            took_s=ended_at - started_at,
            outcome=outcome,
        )


def without_details(result: Result, because: str) -> Result:
    """What of a result leaves where a secret may be in the rest of it."""
    return msgspec.structs.replace(result, outcome=_bare(result.outcome, because))


def _bare(outcome: Outcome, because: str) -> Outcome:
    """The verdict and the figures alone: they are true, whatever a secret was found in."""
    said = f"The details of this result are withheld: {because}."
    failure = outcome.failure
    return Outcome(
        status=outcome.status,
        response_time_ms=outcome.response_time_ms,
        over_max_response_time=outcome.over_max_response_time,
        timings=outcome.timings,
        failure=None if failure is None else Failure(kind=failure.kind, message=said),
        artifacts=outcome.artifacts,
        log=(LogLine(after_ms=0, level="WARN", message=said),),
    )
