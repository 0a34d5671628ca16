"""Files that runs bring back: what may leave of them, and what a result says of the rest."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec
import structlog

from contract.agent_api import ARTIFACT_NAME, MAX_ARTIFACT_BYTES
from contract.job import Job
from contract.result import Artifact, LogLine, Outcome
from runners.kit.file_secrets import UnsearchableFileError
from runners.kit.scrub import CleanedFile, CleanFile
from runners.kit.workspace import RunFile, Workspace

_RESERVED: Final = ".part"
_PICTURES: Final = frozenset({"screenshot", "video"})

log = structlog.get_logger(__name__)


class FileCleaner(Protocol):
    """The only one who can make a file clean."""

    def clean_file(self, file: RunFile, *, job: Job, found: tuple[str, ...] = ()) -> CleanedFile:
        """The file without secrets, those of its job and of its run included; it blocks."""


class FileMeter(Protocol):
    """Where it is counted what became of files."""

    def scrubbed(self, replacements: int) -> None:
        """So many secrets were taken out."""

    def scrub_refused(self) -> None:
        """A file could not be made clean, so it was not sent."""

    def artifacts_dropped(self, count: int) -> None:
        """So many files were given up."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """An outcome, and the files that it names."""

    outcome: Outcome
    files: tuple[CleanFile, ...]
    shows_secret: bool = False
    """A trace among them tells that a page showed a secret."""


class Enclosures:
    """Makes what a run brought back ready to leave."""

    def __init__(self, cleaner: FileCleaner, *, meter: FileMeter) -> None:
        self._cleaner = cleaner
        self._meter = meter

    async def of(self, job: Job, outcome: Outcome, workspace: Workspace) -> Enclosed:
        """The files that may leave; the outcome names these alone, as they are now."""
        enclosed = Enclosed(msgspec.structs.replace(outcome, artifacts=()), ())
        for artifact in pictures_last(outcome.artifacts):
            enclosed = await self._with(enclosed, artifact, job, workspace)
        return enclosed

    async def _with(
        self, enclosed: Enclosed, artifact: Artifact, job: Job, workspace: Workspace
    ) -> Enclosed:
        try:
            check_picture(artifact, a_page_showed_one=enclosed.shows_secret)
            cleaned = await self._clean(artifact, job, workspace)
        except (UnsearchableFileError, OSError) as problem:
            self._meter.artifacts_dropped(1)
            because = problem.strerror if isinstance(problem, OSError) else None
            return _told(enclosed, artifact, because=because or str(problem), job=job)
        named = (*enclosed.outcome.artifacts, cleaned.file.artifact)
        outcome = msgspec.structs.replace(enclosed.outcome, artifacts=named)
        outcome = told_of_rest(outcome, artifact, cleaned.left_out)
        shows = enclosed.shows_secret or cleaned.shows_secret
        return Enclosed(outcome, (*enclosed.files, cleaned.file), shows)

    async def _clean(self, artifact: Artifact, job: Job, workspace: Workspace) -> CleanedFile:
        if not ARTIFACT_NAME.fullmatch(artifact.name) or artifact.name.endswith(_RESERVED):
            raise UnsearchableFileError("its name does not fit")
        file = RunFile(workspace.folder / artifact.name, artifact)
        try:
            cleaned = await asyncio.to_thread(
                self._cleaner.clean_file, file, job=job, found=workspace.secrets
            )
        except UnsearchableFileError:
            self._meter.scrub_refused()
            raise
        if cleaned.file.artifact.size_bytes > MAX_ARTIFACT_BYTES:
            raise UnsearchableFileError(f"it has more than {MAX_ARTIFACT_BYTES} bytes")
        if cleaned.replacements:
            self._meter.scrubbed(cleaned.replacements)
        return cleaned


def _told(enclosed: Enclosed, artifact: Artifact, *, because: str, job: Job) -> Enclosed:
    # Not the name: it is not clean yet, and a log is read by more people than a result.
    log.error("artifact.dropped", job_id=job.job_id, kind=artifact.kind, because=because)
    outcome = without(enclosed.outcome, artifact, because=because)
    return replace(enclosed, outcome=outcome)


def pictures_last(artifacts: tuple[Artifact, ...]) -> list[Artifact]:
    """In the order in which to clean them: traces tell what pictures may show."""
    return sorted(artifacts, key=lambda artifact: artifact.kind in _PICTURES)


def check_picture(artifact: Artifact, *, a_page_showed_one: bool) -> None:
    """Whether a file may leave, if a page of its run showed a secret.

    Raises:
        UnsearchableFileError: it is a picture, in which a secret cannot be hidden.
    """
    if a_page_showed_one and artifact.kind in _PICTURES:
        raise UnsearchableFileError("it may show a secret, as a page of the run did")


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
