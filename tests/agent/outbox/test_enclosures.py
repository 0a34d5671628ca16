"""Files of a run: what may leave of them, and what the result says of the rest."""

from pathlib import Path

from structlog.testing import capture_logs

from agent.outbox.redact import ArtifactRedactor, RedactedArtifacts
from contract.result import Outcome, Status
from redaction.result import Scrubber
from sandbox.workspace import Workspace
from tests.builders.agents import metrics
from tests.builders.archives import PAGE, PICTURE, a_zip, lines
from tests.builders.specs import a_job, a_secret

SECRET = "s3cr3t-T0ken"


def a_trace(text: str) -> bytes:
    snapshot = {"pageId": PAGE, "html": ["BODY", {}, text]}
    frame = {"type": "screencast-frame", "pageId": PAGE, "file": f"screencast/{PAGE}-1.jpeg"}
    events = lines({"type": "frame-snapshot", "snapshot": snapshot}, frame)
    return a_zip({"0-trace.trace": events, f"screencast/{PAGE}-1.jpeg": PICTURE})


async def enclosed(folder: Path, trace: bytes, *, missed: str | None = None) -> RedactedArtifacts:
    workspace = Workspace(folder)
    if missed is not None:
        workspace.mark_unsearchable(missed)
    (workspace.folder / "a.jpeg").write_bytes(PICTURE)
    (workspace.folder / "trace.zip").write_bytes(trace)
    outcome = Outcome(
        status=Status.FAILED,
        artifacts=(
            workspace.artifact("a.jpeg", "screenshot"),
            workspace.artifact("trace.zip", "trace"),
        ),
    )
    job = a_job(variables=(a_secret("TOKEN", SECRET),))
    return await ArtifactRedactor(Scrubber(), metrics=metrics()).redact(job, outcome, workspace)


LEFT_OUT = "1 x film strip frame of a page that showed the value of TOKEN in its content"


async def test_a_trace_leaves_clean_beside_its_secrets(tmp_path: Path) -> None:
    found = await enclosed(tmp_path, a_trace("no secret"))
    assert {one.name for one in found.outcome.artifacts} == {"a.jpeg", "trace.zip"}
    assert found.outcome.log == ()


async def test_pictures_of_a_run_that_showed_a_secret_stay_and_the_result_says_so(
    tmp_path: Path,
) -> None:
    found = await enclosed(tmp_path, a_trace(f"your token: {SECRET}"))
    assert [one.name for one in found.outcome.artifacts] == ["trace.zip"]
    assert [line.message for line in found.outcome.log] == [
        "The file a.jpeg is missing: it may show a secret, because a page of the run showed one.",
        f"Parts of the file trace.zip are missing: {LEFT_OUT}.",
    ]


async def test_no_file_leaves_of_a_run_whose_secrets_are_not_all_known(tmp_path: Path) -> None:
    found = await enclosed(tmp_path, a_trace("no secret"), missed="there were too many")
    assert (found.outcome.artifacts, found.files) == ((), ())
    assert [line.message for line in found.outcome.log] == [
        "The file a.jpeg is missing: there were too many.",
        "The file trace.zip is missing: there were too many.",
    ]


async def test_a_withheld_file_is_a_warning_that_names_its_check(tmp_path: Path) -> None:
    with capture_logs() as logged:
        await enclosed(tmp_path, a_trace(f"your token: {SECRET}"))
    (line,) = [one for one in logged if one["event"] == "artifact.dropped"]
    assert (line["log_level"], line["check_id"]) == ("warning", a_job().check_id)
