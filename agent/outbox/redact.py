"""Hides secrets in results and artifacts before they are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec
import structlog

from agent.jobs.running import Run
from agent.telemetry.metrics import Metrics
from contract.agent_api import ARTIFACT_NAME, MAX_ARTIFACT_BYTES
from contract.checks import check_type
from contract.job import Job
from contract.result import Artifact, Failure, LogLine, Outcome, Result
from redaction.clean import (
    Clean,
    CleanFile,
    FileVerdict,
    LeakError,
    MemberKind,
    Passed,
    UnscannableError,
    Withheld,
    pass_file,
)
from redaction.files import clean_in_child
from redaction.result import Scrubber
from runners.execute import ThreadWorkers
from sandbox.workspace import RunFile, Workspace

log = structlog.get_logger(__name__)


class ResultRedactor:
    """Results of this agent; secrets are looked for in a thread beside the event loop."""

    def __init__(self, scrubber: Scrubber, *, agent_id: str, metrics: Metrics) -> None:
        self._scrubber = scrubber
        self._agent_id = agent_id
        self._metrics = metrics
        # One thread: what the cleaner remembers of a set of secrets has no lock.
        self._search = ThreadWorkers(threads=1, name="search")

    async def redact(self, run: Run, outcome: Outcome, *, ended_at: float) -> Clean:
        """The outcome in its envelope, without secrets; what it raises is our fault."""
        result = self._build_result(run, outcome, ended_at=ended_at)
        try:
            clean = await self._scrub_or_withhold(result, run)
        except Exception:
            self._metrics.scrub_refused()
            raise
        if clean.replacements:
            self._metrics.scrubbed(clean.replacements)
        return clean

    def close(self) -> None:
        """Let the thread go; nobody waits for an envelope any more."""
        self._search.close()

    async def _scrub_or_withhold(self, result: Result, run: Run) -> Clean:
        because = run.workspace.unsearchable_because
        if because is not None:
            self._metrics.scrub_refused()
            return await self._without_details(result, run, because)
        try:
            return await self._scrub(result, run)
        except (LeakError, UnscannableError) as problem:
            because = str(problem)
        self._metrics.leak_withheld(MemberKind.RESULT)
        return await self._without_details(result, run, because)

    async def _without_details(self, result: Result, run: Run, because: str) -> Clean:
        log.error("result.details_withheld", job_id=run.job.job_id, because=because)
        return await self._scrub(withhold_details(result, because), run)

    async def _scrub(self, result: Result, run: Run) -> Clean:
        job, found = run.job, run.workspace.secrets
        clean = self._scrubber.clean_unsearched(result, job=job, found=found)
        if clean is not None:
            return clean
        typed = run.workspace.find_typed
        return await self._search.run(
            partial(self._scrubber.clean, result, job=job, found=found, typed_among=typed)
        )

    def _build_result(self, run: Run, outcome: Outcome, *, ended_at: float) -> Result:
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


def withhold_details(result: Result, because: str) -> Result:
    """What of a result leaves where a secret may be in the rest of it."""
    return msgspec.structs.replace(result, outcome=_strip_details(result.outcome, because))


def _strip_details(outcome: Outcome, because: str) -> Outcome:
    """The verdict and the figures alone: they are true, whatever a secret was found in."""
    message = f"The details of this result are withheld: {because}."
    failure = outcome.failure
    return Outcome(
        status=outcome.status,
        response_time_ms=outcome.response_time_ms,
        over_max_response_time=outcome.over_max_response_time,
        timings=outcome.timings,
        failure=None if failure is None else Failure(kind=failure.kind, message=message),
        artifacts=outcome.artifacts,
        log=(LogLine(after_ms=0, level="WARN", message=message),),
    )


_RESERVED: Final = ".part"
_STRANGE: Final = Withheld(because="its name is not valid")
_TOO_LONG: Final = Withheld(because=f"it has more than {MAX_ARTIFACT_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class RedactedArtifacts:
    """An outcome, and the files that it names."""

    outcome: Outcome
    files: tuple[CleanFile, ...]


class ArtifactRedactor:
    """Makes what a run brought back ready to leave."""

    def __init__(self, scrubber: Scrubber, *, metrics: Metrics) -> None:
        self._scrubber = scrubber
        self._metrics = metrics

    async def redact(self, job: Job, outcome: Outcome, workspace: Workspace) -> RedactedArtifacts:
        """The files that may leave; the outcome names these alone, as they are now."""
        redacted = RedactedArtifacts(msgspec.structs.replace(outcome, artifacts=()), ())
        files = [workspace.run_file(one) for one in outcome.artifacts]
        fitting = [file for file in files if _fits(file.artifact)]
        secrets = self._scrubber.all_secrets(job, workspace.secrets)
        typed = workspace.find_typed(secrets)
        in_sight = workspace.script_secrets
        verdicts: Sequence[FileVerdict] = withhold_unsearchable(fitting, workspace)
        if not verdicts:
            verdicts = await clean_in_child(
                fitting,
                secrets,
                typed=typed,
                header_names=self._scrubber.header_names,
                in_sight=in_sight,
                names=self._scrubber.name_secrets(job, workspace.secrets),
            )
        known = dict(zip((file.artifact.name for file in fitting), verdicts, strict=True))
        for file in files:
            verdict = known.get(file.artifact.name, _STRANGE)
            if isinstance(verdict, Withheld):
                verdict = self._scrubber.explain(verdict, job=job, found=workspace.secrets)
            redacted = self._add(redacted, file, verdict, job)
        return redacted

    def _add(
        self, redacted: RedactedArtifacts, file: RunFile, verdict: FileVerdict, job: Job
    ) -> RedactedArtifacts:
        if isinstance(verdict, Passed) and verdict.artifact.size_bytes > MAX_ARTIFACT_BYTES:
            verdict = _TOO_LONG
        if isinstance(verdict, Withheld):
            self._count(verdict)
            return _withhold(redacted, file.artifact, verdict, job=job)
        if verdict.replacements:
            self._metrics.scrubbed(verdict.replacements)
        clean = pass_file(file, verdict)
        named = (*redacted.outcome.artifacts, clean.artifact)
        outcome = msgspec.structs.replace(redacted.outcome, artifacts=named)
        outcome = note_left_out(outcome, clean.artifact, verdict.left_out)
        return RedactedArtifacts(outcome, (*redacted.files, clean))

    def _count(self, withheld: Withheld) -> None:
        self._metrics.artifacts_dropped(1)
        if withheld.leak is not None:
            self._metrics.leak_withheld(withheld.leak)
        elif withheld.is_unsearchable:
            self._metrics.scrub_refused()


def withhold_unsearchable(files: Sequence[RunFile], workspace: Workspace) -> tuple[Withheld, ...]:
    """One verdict a file, where a search would not know all secrets; else nothing. Pure."""
    because = workspace.unsearchable_because
    if because is None:
        return ()
    return (Withheld(because=because, is_unsearchable=True),) * len(files)


def _fits(artifact: Artifact) -> bool:
    fits = ARTIFACT_NAME.fullmatch(artifact.name) is not None
    return fits and not artifact.name.endswith(_RESERVED)


def _withhold(
    redacted: RedactedArtifacts, artifact: Artifact, withheld: Withheld, *, job: Job
) -> RedactedArtifacts:
    # Not the name: it is not clean yet, and a log is read by more people than a result.
    because = withheld.because
    report = log.error if withheld.is_our_fault else log.warning
    report(
        "artifact.dropped",
        job_id=job.job_id,
        check_id=job.check_id,
        kind=artifact.kind,
        because=because,
    )
    if withheld.leak is None:
        return RedactedArtifacts(
            drop_artifact(redacted.outcome, artifact, because=because), redacted.files
        )
    message = f"The artifact {artifact.name} is withheld: {because}."
    return RedactedArtifacts(_add_log_line(redacted.outcome, message), redacted.files)


def drop_artifact(outcome: Outcome, artifact: Artifact, *, because: str) -> Outcome:
    """The outcome, which says why it does not name this file."""
    left = tuple(one for one in outcome.artifacts if one.name != artifact.name)
    outcome = msgspec.structs.replace(outcome, artifacts=left)
    return _add_log_line(outcome, f"The file {artifact.name} is missing: {because}.")


def note_left_out(outcome: Outcome, artifact: Artifact, left_out: tuple[str, ...]) -> Outcome:
    """The outcome, which says what of the files in this one is not there."""
    if not left_out:
        return outcome
    return _add_log_line(
        outcome, f"Parts of the file {artifact.name} are missing: {'; '.join(left_out)}."
    )


def _add_log_line(outcome: Outcome, message: str) -> Outcome:
    after_ms = outcome.log[-1].after_ms if outcome.log else 0
    line = LogLine(after_ms=after_ms, level="WARN", message=message)
    return msgspec.structs.replace(outcome, log=(*outcome.log, line))
