"""Files that runs bring back: what may leave of them, and what a result says of the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
import structlog

from contract.agent_api import ARTIFACT_NAME, MAX_ARTIFACT_BYTES
from contract.job import Job
from contract.result import Artifact, LogLine, Outcome
from runners.kit.isolation.workspace import RunFile, Workspace
from runners.kit.leak_scan.door import CleanFile, let_file_through
from runners.kit.leak_scan.leak import MemberKind
from runners.kit.leak_scan.verdict import FileVerdict, Passed, Withheld

_RESERVED: Final = ".part"
_STRANGE: Final = Withheld(because="its name does not fit")
_TOO_LONG: Final = Withheld(because=f"it has more than {MAX_ARTIFACT_BYTES} bytes")

log = structlog.get_logger(__name__)


class SecretKeeper(Protocol):
    """Knows what must not leave."""

    def secrets_with(self, job: Job | None, found: tuple[str, ...]) -> tuple[str, ...]:
        """All that is secret in what comes of a job; `found`: what its run came upon."""

    def explained(self, withheld: Withheld, *, job: Job, found: tuple[str, ...]) -> Withheld:
        """With where the secrets come from, if without them the file would be kept."""


class FileCleaner(Protocol):
    """Makes files clean, and finds out whether they are."""

    async def __call__(
        self,
        files: Sequence[RunFile],
        secrets: tuple[str, ...],
        /,
        *,
        typed: tuple[str, ...],
        in_sight: tuple[str, ...],
    ) -> tuple[FileVerdict, ...]:
        """One verdict a file; it never fails.

        `typed`: what was typed letter by letter. `in_sight`: what the run's scripts knew.
        """


class FileMeter(Protocol):
    """Where it is counted what became of files."""

    def scrubbed(self, replacements: int) -> None:
        """So many secrets were taken out."""

    def scrub_refused(self) -> None:
        """A file could not be made clean, so it was not sent."""

    def leak_withheld(self, member: MemberKind) -> None:
        """The scanner found a secret in a file that had been scrubbed."""

    def artifacts_dropped(self, count: int) -> None:
        """So many files were given up."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """An outcome, and the files that it names."""

    outcome: Outcome
    files: tuple[CleanFile, ...]


class Enclosures:
    """Makes what a run brought back ready to leave."""

    def __init__(self, keeper: SecretKeeper, clean: FileCleaner, *, meter: FileMeter) -> None:
        self._keeper = keeper
        self._clean = clean
        self._meter = meter

    async def of(self, job: Job, outcome: Outcome, workspace: Workspace) -> Enclosed:
        """The files that may leave; the outcome names these alone, as they are now."""
        enclosed = Enclosed(msgspec.structs.replace(outcome, artifacts=()), ())
        files = [workspace.file_of(one) for one in outcome.artifacts]
        fitting = [file for file in files if _fits(file.artifact)]
        secrets = self._keeper.secrets_with(job, workspace.secrets)
        typed = workspace.typed_among(secrets)
        in_sight = workspace.in_sight
        unsearched = without_search(fitting, workspace)
        verdicts = unsearched or await self._clean(fitting, secrets, typed=typed, in_sight=in_sight)
        known = dict(zip((file.artifact.name for file in fitting), verdicts, strict=True))
        for file in files:
            verdict = known.get(file.artifact.name, _STRANGE)
            if isinstance(verdict, Withheld):
                verdict = self._keeper.explained(verdict, job=job, found=workspace.secrets)
            enclosed = self._with(enclosed, file, verdict, job)
        return enclosed

    def _with(self, enclosed: Enclosed, file: RunFile, verdict: FileVerdict, job: Job) -> Enclosed:
        if isinstance(verdict, Passed) and verdict.artifact.size_bytes > MAX_ARTIFACT_BYTES:
            verdict = _TOO_LONG
        if isinstance(verdict, Withheld):
            self._count(verdict)
            return _told(enclosed, file.artifact, verdict, job=job)
        if verdict.replacements:
            self._meter.scrubbed(verdict.replacements)
        clean = let_file_through(file, verdict)
        named = (*enclosed.outcome.artifacts, clean.artifact)
        outcome = msgspec.structs.replace(enclosed.outcome, artifacts=named)
        outcome = told_of_rest(outcome, clean.artifact, verdict.left_out)
        return Enclosed(outcome, (*enclosed.files, clean))

    def _count(self, withheld: Withheld) -> None:
        self._meter.artifacts_dropped(1)
        if withheld.leak is not None:
            self._meter.leak_withheld(withheld.leak)
        elif withheld.is_unsearchable:
            self._meter.scrub_refused()


def without_search(files: Sequence[RunFile], workspace: Workspace) -> tuple[Withheld, ...]:
    """One verdict a file, where a search would not know all secrets; else nothing. Pure."""
    because = workspace.unsearchable_because
    if because is None:
        return ()
    return (Withheld(because=because, is_unsearchable=True),) * len(files)


def _fits(artifact: Artifact) -> bool:
    fits = ARTIFACT_NAME.fullmatch(artifact.name) is not None
    return fits and not artifact.name.endswith(_RESERVED)


def _told(enclosed: Enclosed, artifact: Artifact, withheld: Withheld, *, job: Job) -> Enclosed:
    # Not the name: it is not clean yet, and a log is read by more people than a result.
    because = withheld.because
    log.error("artifact.dropped", job_id=job.job_id, kind=artifact.kind, because=because)
    if withheld.leak is None:
        return Enclosed(without(enclosed.outcome, artifact, because=because), enclosed.files)
    said = f"The artifact {artifact.name} is withheld: {because}."
    return Enclosed(_saying(enclosed.outcome, said), enclosed.files)


def without(outcome: Outcome, artifact: Artifact, *, because: str) -> Outcome:
    """The outcome, which says why it does not name this file."""
    left = tuple(one for one in outcome.artifacts if one.name != artifact.name)
    outcome = msgspec.structs.replace(outcome, artifacts=left)
    return _saying(outcome, f"The file {artifact.name} is not there: {because}.")


def told_of_rest(outcome: Outcome, artifact: Artifact, left_out: tuple[str, ...]) -> Outcome:
    """The outcome, which says what of the files in this one is not there."""
    if not left_out:
        return outcome
    return _saying(outcome, f"Of the file {artifact.name} is left out: {'; '.join(left_out)}.")


def _saying(outcome: Outcome, said: str) -> Outcome:
    after_ms = outcome.log[-1].after_ms if outcome.log else 0
    line = LogLine(after_ms=after_ms, level="WARN", message=said)
    return msgspec.structs.replace(outcome, log=(*outcome.log, line))
