"""Collects the files that a suite leaves, and writes its report."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from contract.agent_api import MAX_ARTIFACT_BYTES
from contract.evidence import PlaywrightEvidence, SuiteTest
from contract.result import Artifact, ArtifactKind, LogLine
from runners.scripting.playwright.outputs import FileNames
from runners.scripting.playwright.partial_trace import find_trace_folders, pack_partial_traces
from runners.scripting.suites.project import Project
from runners.scripting.suites.reporter import Attachment, SuiteEvents
from sandbox.program import Deadline
from sandbox.workspace import Workspace, open_regular_file, remove_path

MOST_FILES: Final = 200
MOST_BYTES: Final = 400 * 1024**2
_PACKING_S: Final = 2.0
"""The time limit of packing, a part of what is reserved for the end of a run."""
_CUT_OFF: Final = LogLine(
    after_ms=0,
    level="WARN",
    message=(
        "A test's process could not end its trace: unfinished-trace.zip shows what was written "
        "before."
    ),
)
_USUAL_ENDINGS: Final = frozenset({".zip", ".webm", ".png", ".jpg", ".jpeg"})
_FIT_ENDING: Final = re.compile(r"\.[A-Za-z0-9]{1,10}")
_KINDS: Final[tuple[tuple[str, ArtifactKind], ...]] = (
    ("video/", "video"),
    ("image/png", "screenshot"),
    ("image/jpeg", "screenshot"),
)


def collect_attachments(
    facts: SuiteEvents, project: Project, names: FileNames
) -> tuple[tuple[Artifact, ...], tuple[LogLine, ...]]:
    """Move the attachments into the workspace, those of failed tests first; it blocks.

    Raises:
        OSError: the disk fails.
    """
    found: list[Artifact] = []
    left_bytes, left_off = MOST_BYTES, 0
    for attachment in _sort_failed_first(facts):
        path = _find_own_file(attachment, project)
        if path is None:
            continue
        size_bytes = path.stat().st_size
        if len(found) >= MOST_FILES or size_bytes > min(left_bytes, MAX_ARTIFACT_BYTES):
            left_off += 1
            continue
        try:
            name = _move(path, project.workspace.folder, names)
        except PermissionError:  # its test closed the folder that it is in
            left_off += 1
            continue
        left_bytes -= size_bytes
        found.append(project.workspace.artifact(name, _choose_kind(attachment, path)))
    unfinished = _collect_unfinished(project, names) if facts.end is None else ()
    return (*unfinished, *found), (*_describe_left_off(left_off), *(_CUT_OFF for _ in unfinished))


def _collect_unfinished(project: Project, names: FileNames) -> tuple[Artifact, ...]:
    """Collect the traces that tests' processes could not finish."""
    workspace = project.workspace
    packed = Path(tempfile.mkdtemp(dir=workspace.folder)) / "unfinished" / "trace.zip"
    packed.parent.mkdir()
    until = Deadline.after(_PACKING_S)
    pack_partial_traces(workspace, find_trace_folders(project.root), packed, until=until)
    if not packed.exists():
        return ()
    return (workspace.artifact(_move(packed, workspace.folder, names), "trace"),)


def write_report(workspace: Workspace, seen: PlaywrightEvidence, *, took_ms: float) -> Artifact:
    """Write the report as an artifact; it blocks.

    Raises:
        OSError: the disk refuses it.
    """
    # A temporary file first: a test may have put a link to anywhere where the report goes.
    place = workspace.folder / REPORT_NAME
    remove_path(place)
    handle, unfinished = tempfile.mkstemp(dir=workspace.folder)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(build_report(seen, took_ms=took_ms))))
    Path(unfinished).replace(place)
    return workspace.artifact(REPORT_NAME, "report")


def _sort_failed_first(facts: SuiteEvents) -> list[Attachment]:
    def rank(attachment: Attachment) -> bool:
        test = facts.tests.get(attachment.test)
        return test is not None and test.outcome in {"expected", "skipped"}

    return sorted(facts.attachments, key=rank)


def _find_own_file(attachment: Attachment, project: Project) -> Path | None:
    """Find the real path of an attachment. None: it is no regular file of this run.

    Nothing of the suite runs any more, so what is true now stays true.
    """
    try:
        path = (project.working_dir / attachment.path).resolve()
        if not path.is_relative_to(project.workspace.folder.resolve()):
            return None
        with open_regular_file(path) as file:
            if os.fstat(file.fileno()).st_nlink != 1:  # it may be another's, whom we may read
                return None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        return None
    return path


def _move(path: Path, into: Path, known: FileNames) -> str:
    """Move a file, and return its new name: that of Playwright's folder, then its own."""
    told = known.fit(path, path.parent.name, path.stem)
    is_fit = told and _FIT_ENDING.fullmatch(path.suffix)
    ending = path.suffix if is_fit or path.suffix in _USUAL_ENDINGS else ""
    plain = (told or "").strip("-.") or "file"
    names = (f"{plain}{number}{ending}" for number in ("", *(f"-{n}" for n in range(2, 10_000))))
    # A test may have put files of any name into this folder.
    name = next(name for name in names if name != REPORT_NAME and not os.path.lexists(into / name))
    path.rename(into / name)
    return name


def _choose_kind(attachment: Attachment, path: Path) -> ArtifactKind:
    if attachment.name == "trace" and path.suffix == ".zip":
        return "trace"
    kinds = (kind for start, kind in _KINDS if attachment.content_type.startswith(start))
    return next(kinds, "file")


def _describe_left_off(left_off: int) -> Iterator[LogLine]:
    if left_off:
        message = f"{left_off} files of tests are not kept: there were too many or too large ones."
        yield LogLine(after_ms=0, level="WARN", message=message)


REPORT_NAME: Final = "test-results.json"


def build_report(seen: PlaywrightEvidence, *, took_ms: float) -> dict[str, Any]:
    """Build the report: one suite per file, one spec per test, one test per project."""
    files: dict[str, dict[tuple[str, int], list[SuiteTest]]] = {}
    for test in seen.tests:
        specs = files.setdefault(test.file, {})
        specs.setdefault((test.title, test.line), []).append(test)
    return {
        "config": {"version": seen.playwright_version, "projects": _build_projects(seen.tests)},
        "suites": [_build_file(name, specs) for name, specs in files.items()],
        "errors": [{"message": message} for message in seen.errors],
        "stats": {"duration": took_ms, **_build_stats(seen.tests)},
    }


def _build_projects(tests: tuple[SuiteTest, ...]) -> list[dict[str, str]]:
    return [{"name": name} for name in dict.fromkeys(test.project for test in tests)]


def _build_file(name: str, specs: Mapping[tuple[str, int], list[SuiteTest]]) -> dict[str, Any]:
    listed = [_build_spec(name, title, line, tests) for (title, line), tests in specs.items()]
    return {"title": name, "file": name, "line": 0, "column": 0, "specs": listed}


def _build_spec(name: str, title: str, line: int, tests: list[SuiteTest]) -> dict[str, Any]:
    return {
        "title": title,
        "ok": not any(_is_bad(test) for test in tests),
        "file": name,
        "line": line,
        "tests": [_build_test(test) for test in tests],
    }


def _is_bad(test: SuiteTest) -> bool:
    return test.outcome == "unexpected" or test.status == "interrupted"


def _build_test(test: SuiteTest) -> dict[str, Any]:
    last = {
        "status": test.status,
        "duration": test.took_ms,
        "retry": test.retries,
        "errors": [{"message": message} for message in test.errors],
    }
    return {
        "projectName": test.project,
        "status": "unexpected" if _is_bad(test) else test.outcome,
        "expectedStatus": "skipped"
        if test.outcome == "skipped" and not _is_bad(test)
        else "passed",
        "results": [last],
    }


def _build_stats(tests: tuple[SuiteTest, ...]) -> dict[str, int]:
    names = ("expected", "unexpected", "flaky", "skipped")
    seen: list[str] = ["unexpected" if _is_bad(test) else test.outcome for test in tests]
    return {name: seen.count(name) for name in names}
