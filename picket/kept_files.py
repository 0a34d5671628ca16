"""The files of a run, without secrets, where `picket run --artifacts` wants them."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent.enclosures import told_of_rest, without, without_search
from contract.agent_api import ARTIFACT_NAME
from contract.job import Job
from contract.result import Artifact, Outcome
from picket.errors import CommandError
from runners.kit.isolation.workspace import RunFile, Workspace
from runners.kit.leak_scan.door import CleanFile, let_file_through
from runners.kit.leak_scan.verdict import FileVerdict, Withheld
from runners.kit.scrubbing.files import clean_in_child
from runners.kit.scrubbing.scrub import Scrubber

_STRANGE: Final = Withheld(because="its name does not fit")


def prepare(folder: Path) -> None:
    """Make the folder, before anybody waits for a run.

    Raises:
        CommandError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CommandError(f"--artifacts is {folder}; {problem.strerror}") from problem


def keep(
    outcome: Outcome, folder: Path, *, job: Job, workspace: Workspace, scrubber: Scrubber
) -> Outcome:
    """Put the files into the folder; the outcome names those that are there.

    Raises:
        CommandError: one cannot be written.
    """
    kept = outcome
    files = [workspace.file_of(one) for one in outcome.artifacts if _fits(one)]
    verdicts = without_search(files, workspace) or _searched(files, job, workspace, scrubber)
    known = {file.artifact.name: (file, said) for file, said in zip(files, verdicts, strict=True)}
    for artifact in outcome.artifacts:
        file, verdict = known.get(artifact.name, (None, _STRANGE))
        if isinstance(verdict, Withheld):
            said = scrubber.explained(verdict, job=job, found=workspace.secrets)
            kept = without(kept, artifact, because=said.because)
        elif file is not None:
            _put(let_file_through(file, verdict), folder)
            kept = told_of_rest(kept, artifact, verdict.left_out)
    return kept


def _searched(
    files: Sequence[RunFile], job: Job, workspace: Workspace, scrubber: Scrubber
) -> tuple[FileVerdict, ...]:
    secrets = scrubber.secrets_with(job, workspace.secrets)
    cleaning = clean_in_child(
        files,
        secrets,
        typed=workspace.typed_among(secrets),
        in_sight=workspace.in_sight,
        header_names=scrubber.header_names,
    )
    return asyncio.run(cleaning)


def _fits(artifact: Artifact) -> bool:
    return ARTIFACT_NAME.fullmatch(artifact.name) is not None


def _put(file: CleanFile, folder: Path) -> None:
    place = folder / file.artifact.name
    try:
        shutil.copyfile(file.path, place)
    except OSError as problem:
        raise CommandError(f"{place}: {problem.strerror}") from problem
