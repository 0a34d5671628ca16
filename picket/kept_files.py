"""The files of a run, without secrets, where `picket run --artifacts` wants them."""

import shutil
from pathlib import Path

from agent.enclosures import check_picture, pictures_last, told_of_rest, without
from contract.agent_api import ARTIFACT_NAME
from contract.job import Job
from contract.result import Artifact, Outcome
from picket.errors import CommandError
from runners.kit.file_secrets import UnsearchableFileError
from runners.kit.scrub import CleanedFile, Scrubber
from runners.kit.workspace import RunFile, Workspace


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
    kept, shows_secret = outcome, False
    for artifact in pictures_last(outcome.artifacts):
        try:
            check_picture(artifact, a_page_showed_one=shows_secret)
            clean = _put(artifact, folder, job=job, workspace=workspace, scrubber=scrubber)
            shows_secret = shows_secret or clean.shows_secret
            kept = told_of_rest(kept, artifact, clean.left_out)
        except UnsearchableFileError as problem:
            kept = without(kept, artifact, because=str(problem))
        except OSError as problem:
            raise CommandError(f"{folder / artifact.name}: {problem.strerror}") from problem
    return kept


def _put(
    artifact: Artifact, folder: Path, *, job: Job, workspace: Workspace, scrubber: Scrubber
) -> CleanedFile:
    if not ARTIFACT_NAME.fullmatch(artifact.name):
        raise UnsearchableFileError("its name does not fit")
    file = RunFile(workspace.folder / artifact.name, artifact)
    clean = scrubber.clean_file(file, job=job, found=workspace.secrets)
    shutil.copyfile(clean.file.path, folder / artifact.name)
    return clean
