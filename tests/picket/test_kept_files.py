from pathlib import Path

import msgspec
import pytest

from contract.checks import CheckType
from contract.job import Variable
from contract.result import Outcome, Status
from picket.errors import CommandError
from picket.run import keep, prepare
from redaction.result import Scrubber
from sandbox.workspace import Workspace
from tests.contract.samples import job

SECRET = "correct-horse-battery"
JOB = msgspec.structs.replace(
    job(CheckType.BROWSER), variables=(Variable(key="S", value=SECRET, secret=True),)
)


def outcome_with(workspace: Workspace, **files: bytes) -> Outcome:
    artifacts = []
    for name, content in files.items():
        (workspace.folder / name).write_bytes(content)
        artifacts.append(workspace.artifact(name, "log"))
    return Outcome(status=Status.PASSED, artifacts=tuple(artifacts))


def test_files_are_put_into_the_folder_without_secrets(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    outcome = outcome_with(workspace, log=f"key {SECRET}".encode())
    prepare(tmp_path / "a" / "b")
    kept = keep(outcome, tmp_path / "a" / "b", job=JOB, workspace=workspace, scrubber=Scrubber())
    assert [one.name for one in kept.artifacts] == ["log"]
    text = (tmp_path / "a" / "b" / "log").read_text()
    assert text.startswith("key ")
    assert SECRET not in text
    workspace.remove()


def test_a_file_that_cannot_be_searched_is_not_put_there_and_that_is_said(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    outcome = outcome_with(workspace, packed=b"\xff\xfe\x00")
    kept = keep(outcome, tmp_path, job=JOB, workspace=workspace, scrubber=Scrubber())
    assert kept.artifacts == ()
    assert kept.log[-1].message.startswith("The file packed is missing: only UTF-8 text")
    assert not (tmp_path / "packed").exists()
    workspace.remove()


def test_no_file_is_put_there_of_a_run_whose_secrets_are_not_all_known(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    outcome = outcome_with(workspace, log=b"plain")
    workspace.mark_facts_lost()
    kept = keep(outcome, tmp_path, job=JOB, workspace=workspace, scrubber=Scrubber())
    assert kept.artifacts == ()
    assert "may have set unknown secrets" in kept.log[-1].message
    workspace.remove()


def test_a_folder_that_cannot_be_made_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"--artifacts is .*file/x; Not a directory"):
        prepare(tmp_path / "file" / "x")
