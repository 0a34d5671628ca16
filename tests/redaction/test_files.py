"""Files are made clean in a process of their own; what becomes of it costs the file alone."""

import asyncio
import gzip
import hashlib
import json
import os
import time
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agent.outbox.redact import ArtifactRedactor
from contract.result import ArtifactKind, Status
from redaction import files as cleaning
from redaction.clean import MemberKind, Passed, Withheld
from redaction.files import clean_in_child
from redaction.files_child import clean_and_scan
from redaction.result import Scrubber
from sandbox.workspace import RunFile, ScreenshotReview, Workspace
from tests.builders.agents import metrics
from tests.builders.archives import PAGE, a_zip, lines, read_members
from tests.builders.observations import an_outcome
from tests.builders.patience import LONG_S
from tests.builders.specs import a_job, a_secret

SECRET = "hunter2-hunter2"
PNG = b"\x89PNG\r\n\x1a\npixels"


def a_file(
    folder: Path, content: bytes, name: str = "a.txt", kind: ArtifactKind = "log"
) -> RunFile:
    workspace = Workspace(folder)
    (workspace.folder / name).write_bytes(content)
    return workspace.run_file(workspace.artifact(name, kind))


async def test_a_file_is_scrubbed_scanned_and_described_as_it_is_now(tmp_path: Path) -> None:
    files = [a_file(tmp_path, f"token {SECRET}".encode()), a_file(tmp_path, b"nothing")]
    first, second = await clean_in_child(files, (SECRET,))
    assert isinstance(first, Passed)
    assert first.replacements == 1
    assert first.artifact.size_bytes == files[0].path.stat().st_size
    assert SECRET.encode() not in files[0].path.read_bytes()
    assert second == Passed(artifact=files[1].artifact)


async def test_the_process_gets_nothing_of_the_agents_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "pl_secret-key")
    told = tmp_path / "told"
    program = f"cat /proc/self/environ /proc/self/cmdline > {told}"
    monkeypatch.setattr(cleaning, "_COMMAND", ["/bin/sh", "-c", program])
    await clean_in_child([a_file(tmp_path, b"x")], (SECRET,))
    assert b"pl_secret-key" not in told.read_bytes()
    assert SECRET.encode() not in told.read_bytes()


@pytest.mark.parametrize(
    ("program", "limit_s", "how"),
    [
        ("kill -KILL $$", LONG_S, "its process ended with signal 9"),
        ("exit 3", LONG_S, "its process ended with 3"),
        # Without a process of its own for `sleep`, which would keep the pipe open for so long.
        ("exec sleep 600", 1, "it took more than 1 s"),
        ("echo '{\"verdict\":'; cat >/dev/null", LONG_S, "its process ended with 0"),
    ],
)
async def test_whatever_ends_the_process_withholds_the_file_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, limit_s: float, how: str
) -> None:
    monkeypatch.setattr(cleaning, "_COMMAND", ["/bin/sh", "-c", program])
    (verdict,) = await clean_in_child([a_file(tmp_path, b"x")], (), limit_s=limit_s)
    assert isinstance(verdict, Withheld)
    assert verdict.because == f"the agent could not search it for secrets: {how}"
    assert verdict.is_our_fault


async def test_a_run_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    task = asyncio.create_task(clean_in_child([a_file(tmp_path, b"x" * 50_000_000)], (SECRET,)))
    ours: list[int] = []
    async with asyncio.timeout(LONG_S):
        while not ours:
            await asyncio.sleep(0.01)
            ours = [pid for pid in _children() if b"files_child" in _line(pid)]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not set(ours) & set(_children())


async def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"some words and more \n" * 500_000)
    cleaning_it = asyncio.create_task(clean_in_child([file], (SECRET,)))
    turns, began_s = 0, time.monotonic()
    while not cleaning_it.done() and time.monotonic() - began_s < 15:
        await asyncio.sleep(0.001)
        turns += 1
    await cleaning_it
    assert turns > 20


def test_what_the_scrubber_left_is_found_and_the_file_is_withheld(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"104,117,110,116,101,114,50,45,104,117,110,116,101,114,50")
    verdict = clean_and_scan(file, (SECRET,))
    assert isinstance(verdict, Withheld)
    assert verdict.leak is MemberKind.FILE
    assert verdict.because == "secret found in file (after byte 0)"


def test_a_member_that_only_the_second_search_cannot_open_is_left_out_alone(
    tmp_path: Path,
) -> None:
    packed = gzip.compress(Random(1).randbytes(5 << 20), 1)
    archive = {
        "0-trace.trace": lines({"type": "log", "message": SECRET}),
        "resources/font.css": b"src: url(data:;base64," + b64encode(packed) + b")",
        "resources/page.html": b"<p>fine</p>",
    }
    file = a_file(tmp_path, a_zip(archive), "trace.zip")
    verdict = clean_and_scan(file, (SECRET,))
    assert isinstance(verdict, Passed)
    assert verdict.left_out == (
        "1 x file that cannot be searched: an archive in its text is too long to be opened there",
    )
    clean = file.path.read_bytes()
    assert sorted(read_members(clean)) == ["0-trace.trace", "resources/page.html"]
    assert verdict.artifact.size_bytes == len(clean)
    assert verdict.artifact.sha256 == hashlib.sha256(clean).hexdigest()


async def test_a_result_says_that_an_artifact_is_withheld_and_the_metrics_count_it(
    tmp_path: Path,
) -> None:
    meter, job = metrics(), a_job(variables=(a_secret("TOKEN", SECRET),))
    workspace = Workspace(tmp_path)
    (workspace.folder / "a.txt").write_text(str([*SECRET.encode()])[1:-1])
    outcome = an_outcome(artifacts=(workspace.artifact("a.txt", "log"),))
    enclosed = await ArtifactRedactor(Scrubber(), metrics=meter).redact(job, outcome, workspace)
    assert (enclosed.files, enclosed.outcome.artifacts) == ((), ())
    assert enclosed.outcome.status is Status.PASSED
    assert [line.message for line in enclosed.outcome.log] == [
        "The artifact a.txt is withheld: secret found in file (after byte 0)."
    ]
    assert b'picket_agent_leaks_withheld_total{member="file"} 1.0' in meter.text()


TRACE = {
    "quiet": lines({"type": "console", "pageId": PAGE, "text": "nothing"}),
    "shows": lines({"type": "console", "pageId": PAGE, "text": SECRET}),
    "shows a header": lines(
        {"type": "console", "pageId": PAGE, "text": "of-a-header"},
        {"headers": [{"name": "authorization", "value": "Bearer of-a-header"}]},
    ),
    "shows both": lines(
        {"type": "console", "pageId": PAGE, "text": f"{SECRET} of-a-header"},
        {"headers": [{"name": "authorization", "value": "Bearer of-a-header"}]},
    ),
}
IT_SHOWED = "it may show a secret, because a page of the run showed one"
NOBODY_KNOWS = "it may show a secret: the run knew secrets, and no trace shows what its pages had"


@pytest.mark.parametrize(
    ("trace", "of_pictures"),
    [
        (
            "quiet",
            {
                ScreenshotReview.UNREVIEWED: None,
                ScreenshotReview.NO_SECRETS: None,
                ScreenshotReview.MASKED: None,
            },
        ),
        (
            "shows",
            {
                ScreenshotReview.UNREVIEWED: IT_SHOWED,
                ScreenshotReview.NO_SECRETS: IT_SHOWED,
                ScreenshotReview.MASKED: None,
            },
        ),
        ("shows a header", dict.fromkeys(ScreenshotReview, IT_SHOWED)),
        ("shows both", dict.fromkeys(ScreenshotReview, IT_SHOWED)),
        (
            None,
            {
                ScreenshotReview.UNREVIEWED: NOBODY_KNOWS,
                ScreenshotReview.NO_SECRETS: None,
                ScreenshotReview.MASKED: None,
            },
        ),
    ],
)
async def test_a_picture_leaves_by_what_is_known_of_its_page(
    tmp_path: Path, trace: str | None, of_pictures: dict[ScreenshotReview, str | None]
) -> None:
    files = [a_picture(tmp_path, review) for review in of_pictures]
    if trace is not None:
        files.append(a_file(tmp_path, a_zip({"0-trace.trace": TRACE[trace]}), "trace.zip", "trace"))
    verdicts = await clean_in_child(files, (SECRET,))
    said = [one.because if isinstance(one, Withheld) else None for one in verdicts]
    assert said[: len(of_pictures)] == list(of_pictures.values())


@pytest.mark.parametrize(("videos", "traces", "leave"), [(1, 1, True), (2, 2, True), (2, 1, False)])
async def test_videos_leave_unless_there_are_more_of_them_than_traces(
    tmp_path: Path, videos: int, traces: int, *, leave: bool
) -> None:
    """A test that passes may keep its video without a trace."""
    film = b"\x1aE\xdf\xa3film"
    quiet = a_zip({"0-trace.trace": TRACE["quiet"]})
    files = [a_file(tmp_path, film, f"{at}.webm", "video") for at in range(videos)]
    files += [a_file(tmp_path, quiet, f"trace{at}.zip", "trace") for at in range(traces)]
    verdicts = await clean_in_child(files, (SECRET,))
    because = [one.because if isinstance(one, Withheld) else None for one in verdicts]
    assert because[:videos] == [None if leave else NOBODY_KNOWS] * videos


@pytest.mark.parametrize("secrets", [(), (SECRET,)])
async def test_pictures_of_runs_that_got_to_see_no_secret_leave_without_a_trace(
    tmp_path: Path, secrets: tuple[str, ...]
) -> None:
    file = a_picture(tmp_path, ScreenshotReview.UNREVIEWED)
    (verdict,) = await clean_in_child([file], secrets, in_sight=("another",))
    assert isinstance(verdict, Passed)


async def test_no_picture_leaves_where_a_page_showed_a_secret_that_its_scripts_did_not_know(
    tmp_path: Path,
) -> None:
    trace = a_zip({"0-trace.trace": TRACE["shows"]})
    files = [
        *(a_picture(tmp_path, review) for review in ScreenshotReview),
        a_file(tmp_path, trace, "trace.zip", "trace"),
    ]
    verdicts = await clean_in_child(files, (SECRET, "known-to-all"), in_sight=("known-to-all",))
    assert [one.because for one in verdicts if isinstance(one, Withheld)] == [IT_SHOWED] * 3


@pytest.mark.parametrize(("trace", "leaves"), [("quiet", True), ("shows", False), (None, False)])
async def test_pictures_in_a_report_leave_as_those_without_masks_do(
    tmp_path: Path, trace: str | None, *, leaves: bool
) -> None:
    body = b64encode(PNG).decode()
    report = json.dumps({"attachments": [{"name": "page", "body": body}]}, indent=2).encode()
    files = [
        a_file(tmp_path, a_zip({"data/a.png": PNG, "report.json": report}), "report.zip", "file"),
        a_file(tmp_path, report, "test-results.json", "report"),
    ]
    if trace is not None:
        content = a_zip({"0-trace.trace": TRACE[trace], "resources/page@1-1.jpeg": PNG})
        files.append(a_file(tmp_path, content, "trace.zip", "trace"))
    verdicts = await clean_in_child(files, (SECRET,))
    assert all(isinstance(one, Passed) for one in verdicts)
    members = read_members(files[0].path.read_bytes())
    assert ("data/a.png" in members) == leaves
    for left in (members["report.json"], files[1].path.read_bytes()):
        assert json.loads(left)["attachments"] == [{"name": "page", "body": body if leaves else ""}]


def a_picture(folder: Path, review: ScreenshotReview) -> RunFile:
    file = a_file(folder, PNG, f"{review}.png", "screenshot")
    return replace(file, review=review)


def _children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return [int(pid) for task in tasks for pid in _read(task / "children").split()]


def _line(pid: int) -> bytes:
    return _read(Path(f"/proc/{pid}/cmdline"))


def _read(path: Path) -> bytes:
    """Nothing of a thread or process that has ended meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
