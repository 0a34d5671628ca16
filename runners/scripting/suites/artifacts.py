"""Collects the files that a suite and its reporters leave, and its report."""

import itertools
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

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


class CollectedFiles(NamedTuple):
    """Files of a suite that are kept."""

    artifacts: tuple[Artifact, ...]
    notices: tuple[LogLine, ...] = ()
    names: Mapping[str, str] = {}
    """The names of artifacts by the paths that the suite reported."""


def collect_attachments(facts: SuiteEvents, project: Project, names: FileNames) -> CollectedFiles:
    """Move the attachments into the workspace, those of failed tests first; it blocks.

    Raises:
        OSError: the disk fails.
    """
    moved, told = _MovedFiles(project, names), dict[str, str]()
    for attachment in _sort_failed_first(facts):
        path = _find_own_file(attachment.path, project)
        if path is None:
            continue
        # Playwright's folder of the test, then the file's own name.
        made = moved.move(path, _choose_kind(attachment, path), path.parent.name, path.name)
        if made is not None:
            told[attachment.path] = made.name
    unfinished = _collect_unfinished(project, names) if facts.end is None else ()
    cut_off = (_CUT_OFF for _ in unfinished)
    notices = (*_describe_left_off(moved.left_off, "of tests"), *cut_off)
    return CollectedFiles((*unfinished, *moved.artifacts), notices, told)


class _MovedFiles:
    """Moves files of a suite into the workspace as artifacts, within the limits."""

    def __init__(self, project: Project, names: FileNames) -> None:
        self._project = project
        self._names = names
        self._left_bytes = MOST_BYTES
        self.artifacts: list[Artifact] = []
        self.left_off = 0

    def move(self, path: Path, kind: ArtifactKind, *parts: str) -> Artifact | None:
        """Move a file; `parts` make its name.

        None: there are too many files, it is too large, or a test closed the folder that it is in.
        """
        size_bytes = path.stat().st_size
        is_full = len(self.artifacts) >= MOST_FILES
        if is_full or size_bytes > min(self._left_bytes, MAX_ARTIFACT_BYTES):
            self.left_off += 1
            return None
        workspace = self._project.workspace
        try:
            name = _move(path, workspace.folder, self._names, parts)
        except PermissionError:
            self.left_off += 1
            return None
        self._left_bytes -= size_bytes
        self.artifacts.append(workspace.artifact(name, kind))
        return self.artifacts[-1]


_MOST_REPORT_FILES: Final = 10_000
_MOST_SINGLE_FILES: Final = 10
"""A folder with more files of reporters becomes one archive."""
_SITE: Final = "index.html"
"""The page of a folder whose files refer to each other."""
_NO_REPORT: Final = frozenset({".last-run.json"})
"""Files that the test runner itself keeps for its next run."""
_UTF8: Final = re.compile(r"[^\ud800-\udfff]+")
"""Matches names that an archive can have; Python reads other bytes as surrogates."""
_COMPRESSED: Final = frozenset({".zip", ".gz", ".webm", ".png", ".jpg", ".jpeg"})


def collect_reports(facts: SuiteEvents, project: Project, names: FileNames) -> CollectedFiles:
    """Move the files that the suite's own reporters wrote into the workspace; it blocks.

    Raises:
        OSError: the disk fails.
    """
    root = project.root.resolve()
    moved, until = _MovedFiles(project, names), Deadline.after(_PACKING_S)
    for folder, files in _group_reports(sorted(_find_reports(facts, project)), root).items():
        if len(files) == 1:
            moved.move(files[0], "file", *files[0].relative_to(root).parts)
            continue
        name = folder.relative_to(root).with_name(f"{folder.name}.zip")
        packed = Path(tempfile.mkdtemp(dir=project.workspace.folder)) / name
        packed.parent.mkdir(parents=True, exist_ok=True)
        moved.left_off += _pack(packed, folder, files, until)
        moved.move(packed, "file", *name.parts)
    return CollectedFiles(
        tuple(moved.artifacts), tuple(_describe_left_off(moved.left_off, "of reporters"))
    )


def _find_reports(facts: SuiteEvents, project: Project) -> set[Path]:
    """Find all regular files of the run that its reporters wrote, or put into a folder."""
    root, found = project.root.resolve(), set[Path]()
    named = itertools.chain.from_iterable(_list_files(path, root) for path in facts.written)
    for path in itertools.islice(named, _MOST_REPORT_FILES):
        own = None if path.name in _NO_REPORT else _find_own_file(path, project)
        if own is not None and own.is_relative_to(root) and _UTF8.fullmatch(str(own)):
            found.add(own)
    return found


def _list_files(named: str, root: Path) -> Iterator[Path]:
    """List the files of a folder within the suite, or the file itself."""
    if not os.path.isdir(named):  # noqa: PTH112 - of some names a Path raises
        yield Path(named)
    elif Path(named).resolve().is_relative_to(root):
        for inner, _, files in os.walk(named):
            yield from (Path(inner) / name for name in files)


def _group_reports(files: list[Path], root: Path) -> dict[Path, list[Path]]:
    """Group files by the folder whose archive holds them; other ones are groups of their own."""
    sites = {path.parent for path in files if path.name == _SITE}
    many = Counter(path.parent for path in files)
    groups: dict[Path, list[Path]] = {}
    for path in files:
        above = [folder for folder in path.parents if folder in sites and folder != root]
        if above:
            folder = above[-1]
        else:
            is_single = many[path.parent] <= _MOST_SINGLE_FILES or path.parent == root
            folder = path if is_single else path.parent
        groups.setdefault(folder, []).append(path)
    return groups


def _pack(target: Path, folder: Path, files: Iterable[Path], until: Deadline) -> int:
    """Pack files of a folder into an archive, and count those without room or time."""
    left_bytes, left_off = MAX_ARTIFACT_BYTES, 0
    with ZipFile(target, "x", ZIP_DEFLATED, compresslevel=1) as archive:
        for path in files:
            size_bytes = path.stat().st_size
            if until.has_passed or size_bytes > left_bytes:
                left_off += 1
                continue
            left_bytes -= size_bytes
            member = ZipInfo(str(path.relative_to(folder)))
            is_compressed = path.suffix.lower() in _COMPRESSED
            member.compress_type = ZIP_STORED if is_compressed else ZIP_DEFLATED
            with open_regular_file(path) as source, archive.open(member, "w") as packed:
                shutil.copyfileobj(source, packed)
    return left_off


def _collect_unfinished(project: Project, names: FileNames) -> tuple[Artifact, ...]:
    """Collect the traces that tests' processes could not finish."""
    workspace = project.workspace
    packed = Path(tempfile.mkdtemp(dir=workspace.folder)) / "unfinished" / "trace.zip"
    packed.parent.mkdir()
    until = Deadline.after(_PACKING_S)
    pack_partial_traces(workspace, find_trace_folders(project.root), packed, until=until)
    if not packed.exists():
        return ()
    parts = (packed.parent.name, packed.name)
    return (workspace.artifact(_move(packed, workspace.folder, names, parts), "trace"),)


_MOST_REWRITTEN_BYTES: Final = 64 * 1024**2
_PATH: Final = re.compile(rb'(?<="path": )"(?:[^"\\]|\\.)*"')
"""A path in the report; within its texts such a line would have backslashes."""


def write_report(
    project: Project,
    facts: SuiteEvents,
    seen: PlaywrightEvidence,
    names: Mapping[str, str],
    *,
    took_ms: float,
) -> Artifact:
    """Make the report of Playwright's JSON reporter an artifact; it blocks.

    A suite that did not end has none: the report then says what is known.
    `names`: those of artifacts by the paths of attachments, which the report refers to.

    Raises:
        OSError: the disk refuses it.
    """
    own = None if facts.end is None else _find_own_file(project.report, project)
    size_bytes = 0 if own is None else own.stat().st_size
    if own is None or not 0 < size_bytes <= _MOST_REWRITTEN_BYTES:
        content = msgspec.json.format(msgspec.json.encode(build_report(seen, took_ms=took_ms)))
    else:
        content = _rename_attachments(own.read_bytes(), names)
    return _write_report(project.workspace, content)


def _rename_attachments(report: bytes, names: Mapping[str, str]) -> bytes:
    def rename(found: re.Match[bytes]) -> bytes:
        try:
            name = names.get(json.loads(found[0]))
        except ValueError:
            return found[0]
        return found[0] if name is None else json.dumps(name).encode()

    return _PATH.sub(rename, report)


def _write_report(workspace: Workspace, content: bytes) -> Artifact:
    # A temporary file first: a test may have put a link to anywhere where the report goes.
    place = workspace.folder / REPORT_NAME
    remove_path(place)
    handle, unfinished = tempfile.mkstemp(dir=workspace.folder)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(unfinished).replace(place)
    return workspace.artifact(REPORT_NAME, "report")


def _sort_failed_first(facts: SuiteEvents) -> list[Attachment]:
    def rank(attachment: Attachment) -> bool:
        test = facts.tests.get(attachment.test)
        return test is not None and test.outcome in {"expected", "skipped"}

    return sorted(facts.attachments, key=rank)


def _find_own_file(named: str | Path, project: Project) -> Path | None:
    """Find the real path of a file. None: it is no regular file of this run.

    Nothing of the suite runs any more, so what is true now stays true.
    """
    try:
        path = (project.working_dir / named).resolve()
        if not path.is_relative_to(project.workspace.folder.resolve()):
            return None
        with open_regular_file(path) as file:
            if os.fstat(file.fileno()).st_nlink != 1:  # it may be another's, whom we may read
                return None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        return None
    return path


def _move(path: Path, into: Path, known: FileNames, parts: tuple[str, ...]) -> str:
    """Move a file, and return its new name, which is made of these parts."""
    told = known.fit(path, *parts[:-1], path.stem)
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


def _describe_left_off(left_off: int, whose: str) -> Iterator[LogLine]:
    if left_off:
        message = f"{left_off} files {whose} are not kept: there were too many or too large ones."
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
