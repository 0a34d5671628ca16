"""The files that a suite's tests left, brought to where a run's artifacts are."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from contract.agent_api import MAX_ARTIFACT_BYTES
from contract.result import Artifact, ArtifactKind, LogLine
from contract.suite_evidence import PlaywrightEvidence
from runners.kit.isolation.removal import clear_place
from runners.kit.isolation.run_time import Until
from runners.kit.isolation.workspace import Workspace, open_plain
from runners.kit.playwright.file_names import FileNames
from runners.kit.playwright.trace_remains import pack_remains, remains_below
from runners.kit.suites.fact_shapes import Attachment
from runners.kit.suites.facts import SuiteFacts
from runners.kit.suites.project import Project
from runners.kit.suites.report import REPORT_NAME, report_of

MOST_FILES: Final = 200
MOST_BYTES: Final = 400 * 1024**2
_PACKING_S: Final = 2.0
"""Within what is reserved for the end of a run."""
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


def gather(
    facts: SuiteFacts, project: Project, names: FileNames
) -> tuple[tuple[Artifact, ...], tuple[LogLine, ...]]:
    """Move the attachments into the workspace, those of failed tests first; it blocks.

    Raises:
        OSError: the disk fails.
    """
    found: list[Artifact] = []
    left_bytes, left_off = MOST_BYTES, 0
    for attachment in _failed_first(facts):
        path = _own_file(attachment, project)
        if path is None:
            continue
        size_bytes = path.stat().st_size
        if len(found) >= MOST_FILES or size_bytes > min(left_bytes, MAX_ARTIFACT_BYTES):
            left_off += 1
            continue
        try:
            name = _moved(path, project.workspace.folder, names)
        except PermissionError:  # its test closed the folder that it is in
            left_off += 1
            continue
        left_bytes -= size_bytes
        found.append(project.workspace.artifact(name, _kind(attachment, path)))
    unfinished = _unfinished(project, names) if facts.end is None else ()
    return (*unfinished, *found), (*_notice(left_off), *(_CUT_OFF for _ in unfinished))


def _unfinished(project: Project, names: FileNames) -> tuple[Artifact, ...]:
    """The traces of tests whose processes could not bring them to an end."""
    workspace = project.workspace
    packed = Path(tempfile.mkdtemp(dir=workspace.folder)) / "unfinished" / "trace.zip"
    packed.parent.mkdir()
    until = Until.after(_PACKING_S)
    pack_remains(workspace, remains_below(project.root), packed, until=until)
    if not packed.exists():
        return ()
    return (workspace.artifact(_moved(packed, workspace.folder, names), "trace"),)


def write_report(workspace: Workspace, seen: PlaywrightEvidence, *, took_ms: float) -> Artifact:
    """Keep the report as a file; it blocks.

    Raises:
        OSError: the disk refuses it.
    """
    # A file of our own first: where the report goes, a test may have put a link to anywhere.
    place = workspace.folder / REPORT_NAME
    clear_place(place)
    handle, unfinished = tempfile.mkstemp(dir=workspace.folder)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(report_of(seen, took_ms=took_ms))))
    Path(unfinished).replace(place)
    return workspace.artifact(REPORT_NAME, "report")


def _failed_first(facts: SuiteFacts) -> list[Attachment]:
    def rank(attachment: Attachment) -> bool:
        test = facts.tests.get(attachment.test)
        return test is not None and test.outcome in {"expected", "skipped"}

    return sorted(facts.attachments, key=rank)


def _own_file(attachment: Attachment, project: Project) -> Path | None:
    """The file, where it really is. None: it is no plain file of this run.

    Nothing of the suite runs any more, so what is true now stays true.
    """
    try:
        path = (project.working_dir / attachment.path).resolve()
        if not path.is_relative_to(project.workspace.folder.resolve()):
            return None
        with open_plain(path) as file:
            if os.fstat(file.fileno()).st_nlink != 1:  # it may be another's, whom we may read
                return None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        return None
    return path


def _moved(path: Path, into: Path, known: FileNames) -> str:
    """The name under which the file is now: its folder's as Playwright calls it, and its own."""
    told = known.fit(path, path.parent.name, path.stem)
    is_fit = told and _FIT_ENDING.fullmatch(path.suffix)
    ending = path.suffix if is_fit or path.suffix in _USUAL_ENDINGS else ""
    plain = (told or "").strip("-.") or "file"
    names = (f"{plain}{number}{ending}" for number in ("", *(f"-{n}" for n in range(2, 10_000))))
    # A test may have put anything beside what is ours.
    name = next(name for name in names if name != REPORT_NAME and not os.path.lexists(into / name))
    path.rename(into / name)
    return name


def _kind(attachment: Attachment, path: Path) -> ArtifactKind:
    if attachment.name == "trace" and path.suffix == ".zip":
        return "trace"
    kinds = (kind for start, kind in _KINDS if attachment.content_type.startswith(start))
    return next(kinds, "file")


def _notice(left_off: int) -> Iterator[LogLine]:
    if left_off:
        message = f"{left_off} files of tests are not kept: there were too many or too large ones."
        yield LogLine(after_ms=0, level="WARN", message=message)
