"""A project's folder, configuration and test command.

The files of a suite that may set options of Playwright Test are only read, never changed or run. A
file that cannot be read may set any option: the suite's own commands ran before, and may have left
any kind of file.
"""

import itertools
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from contract.checks import PlaywrightSpec
from contract.result import CheckFailed, FailureKind
from runners.scripting.node.runtimes import MissingRuntimeError, Runtime, Runtimes
from runners.scripting.suites.bundle_archive import BadBundleError, unpack
from runners.scripting.suites.package_manager import BUN, is_inside
from sandbox.workspace import Workspace

_PROGRAM: Final = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folders and the runtime of one run of a suite."""

    workspace: Workspace
    root: Path
    """The unpacked bundle."""
    working_dir: Path
    """Where the test command runs."""
    runtime: Runtime

    @property
    def programs(self) -> Path:
        """The folder that is first in PATH, with package managers that the runtime lacks."""
        return self.workspace.folder / "programs"

    @property
    def home(self) -> Path:
        """The folder for HOME and TMPDIR of all processes."""
        return self.workspace.folder / "home"

    @property
    def report(self) -> Path:
        """The file that Playwright's JSON reporter writes for us."""
        return self.home / "picket-report.json"

    @property
    def browsers(self) -> Path:
        """The registry in which Playwright looks for browsers."""
        return self.workspace.folder / "browsers"


def open_project(
    bundle: Path, spec: PlaywrightSpec, workspace: Workspace, runtimes: Runtimes
) -> Project:
    """Unpack a bundle into a run's workspace; it blocks.

    Raises:
        CheckFailed: the bundle cannot be unpacked, or does not hold what the check names.
        MissingRuntimeError: there is no Node here at all.
        OSError: the disk refuses it.
    """
    runtime = choose_runtime(spec, runtimes)
    root = _unpack(bundle, workspace.folder / "suite")
    project = Project(
        workspace=workspace,
        root=root,
        working_dir=_find_working_dir(root, spec.working_dir),
        runtime=runtime,
    )
    for folder in (project.programs, project.home):
        folder.mkdir()
    return project


def _unpack(bundle: Path, root: Path) -> Path:
    root.mkdir()
    try:
        unpack(bundle, root)
    except BadBundleError as problem:
        raise _refuse(str(problem)) from problem
    return root


def add_programs(project: Project, programs: Mapping[str, str]) -> None:
    """Put shell scripts with these contents where commands find them; it blocks."""
    for name, content in programs.items():
        path = project.programs / name
        path.write_text(content)
        path.chmod(_PROGRAM)


def choose_runtime(spec: PlaywrightSpec, runtimes: Runtimes) -> Runtime:
    """Choose the runtime with the check's engine version, which takes precedence over its runtime.

    Without a version, it is the check's runtime, or the newest one.

    Raises:
        CheckFailed: no runtime here has such an engine.
        MissingRuntimeError: there is no Node here, or not the one that the check names.
    """
    if not runtimes.installed:
        raise MissingRuntimeError("No runtime is installed on this machine.")
    wanted = (spec.engine_version or "").strip().removeprefix("v")
    if spec.engine == "bun" and not _matches_version(BUN, wanted):
        raise _refuse(f"Bun {spec.engine_version} is not available at this location; it has {BUN}.")
    if spec.engine == "bun" or not wanted:
        # Playwright's own program asks for Node, also where Bun starts it.
        return runtimes.get(spec.runtime_id)
    of_check = [one for one in runtimes.by_id.values() if one.id == spec.runtime_id]
    for runtime in (*of_check, *runtimes.by_id.values()):
        if _matches_version(runtime.node_version, wanted):
            return runtime
    here = ", ".join(runtime.node_version for runtime in runtimes.by_id.values())
    raise _refuse(f"Node {spec.engine_version} is not available at this location; it has {here}.")


def _matches_version(version: str, wanted: str) -> bool:
    """Whether `24.19.0` matches `24`, `24.x` or `24.19`; an empty text matches any version."""
    asked = [part for part in wanted.split(".") if part not in {"", "x", "*"}]
    return version.split(".")[: len(asked)] == asked


def _find_working_dir(root: Path, named: str | None) -> Path:
    parts = PurePosixPath((named or "").strip().lstrip("/")).parts
    folder = root.joinpath(*parts)
    if ".." in parts or not _is_folder(folder) or not is_inside(folder, root):
        raise _refuse(f"The working directory {named!r} is not in the code bundle.")
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):  # ValueError: a NUL in its name
        return False


def _refuse(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message)


_MOST_FILES: Final = 50
_LARGEST_BYTES: Final = 1_000_000
_IMPORTED: Final = re.compile(r"""(?:from|import|require)\s*\(?\s*['"]([^'"\n]+)['"]""")
_HARMLESS: Final = re.compile(
    r"node:.*|@playwright/test|playwright|dotenv(/.*)?|path|url|os|fs|process|child_process"
)
"""Imported packages that set no option."""
_ENDINGS: Final = ("", ".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".json")
_INDEXES: Final = ("/index.ts", "/index.js")


class _ImportReader:
    """Reads a configuration and all files of the suite that it imports."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[Path] = set()
        self.texts: list[str] = []
        self.is_complete = True

    def read(self, path: Path) -> None:
        if path in self._seen:
            return
        self._seen.add(path)
        text = _read_text(path)
        if text is None or len(self._seen) > _MOST_FILES:
            self.is_complete = False
            return
        self.texts.append(text)
        for name in _IMPORTED.findall(text):
            self._follow(path.parent, name)

    def _follow(self, folder: Path, name: str) -> None:
        if _HARMLESS.fullmatch(name):
            return
        found = self._find_file(folder / name) if name.startswith(".") else None
        if found is None:
            self.is_complete = False
        else:
            self.read(found)

    def _find_file(self, path: Path) -> Path | None:
        """Find an imported file as Node and TypeScript resolve it, within the suite."""
        stems = (path, path.with_suffix("")) if path.suffix in _ENDINGS[1:] else (path,)
        names = (f"{stem}{end}" for stem in stems for end in (*_ENDINGS, *_INDEXES))
        for one in map(Path, names):
            if _is_file(one) and is_inside(one, self._root):
                return one
        return None


def read_option_texts(
    root: Path, working_dir: Path, command: str, arguments: tuple[str, ...] | None
) -> tuple[tuple[str, ...], bool]:
    """Read all texts that may set an option, and whether they are complete; it blocks.

    `arguments`: those of `playwright test`. None: another command starts it.
    """
    reading = _ImportReader(root)
    for path in _find_configurations(working_dir, arguments):
        if is_inside(path, root):
            reading.read(path)
        break
    scripts = () if arguments is not None else tuple(_read_scripts(working_dir))
    is_complete = reading.is_complete and (arguments is not None or bool(scripts))
    return (command, *scripts, *reading.texts), is_complete


def _find_configurations(working_dir: Path, arguments: tuple[str, ...] | None) -> Iterator[Path]:
    named = find_named_config(arguments or ())
    place = working_dir / named if named is not None else working_dir
    paths = (place, *(place / name for name in CONFIG_NAMES))
    yield from (path for path in paths if _is_file(path))


def _read_scripts(working_dir: Path) -> Iterator[str]:
    """Read the scripts of package.json, one of which a test command may run."""
    try:
        manifest = msgspec.json.decode(
            _read_text(working_dir / "package.json") or "", type=_Manifest
        )
    except (msgspec.DecodeError, RecursionError):
        return
    yield from (command for command in manifest.scripts.values() if isinstance(command, str))


def _is_file(path: Path) -> bool:
    """Whether a path is a file; not for names that no disk could have."""
    return os.path.isfile(path)  # noqa: PTH113 - of such names a Path raises


def _read_text(path: Path) -> str | None:
    """Read a file's text. None: it cannot be read, or is too large."""
    try:
        if not _is_file(path) or path.stat().st_size > _LARGEST_BYTES:
            return None
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None


class _Manifest(msgspec.Struct):
    scripts: dict[str, Any] = {}


DEFAULTS: Final = (("workers", "4"), ("retries", "2"))
"""Options of a suite that does not set them itself."""
ALWAYS: Final = ("--trace", "on")
"""Options of every suite, so that each run leaves traces."""

_SHELL_SIGNS: Final = frozenset(";&|<>()$`\\*?[]{}~#!\n")
_STARTS: Final = (
    ("npx", "playwright", "test"),
    ("npx", "--no", "playwright", "test"),
    ("npx", "--no-install", "playwright", "test"),
    ("npx", "--yes", "playwright", "test"),
    ("npx", "-y", "playwright", "test"),
    ("npm", "exec", "playwright", "test"),
    ("npm", "exec", "--", "playwright", "test"),
    ("pnpm", "playwright", "test"),
    ("pnpm", "exec", "playwright", "test"),
    ("bunx", "playwright", "test"),
    ("bun", "x", "playwright", "test"),
    ("yarn", "playwright", "test"),
    ("yarn", "run", "playwright", "test"),
    ("playwright", "test"),
)
"""Ways to start `playwright test`, longest first where one is a prefix of another."""
_LONGEST: Final = 50_000
"""Linux passes no argument of more than 128 KiB to a program."""
_CONFIG_OPTION: Final = ("--config", "-c")
CONFIG_NAMES: Final = tuple(
    f"playwright.config.{ending}" for ending in ("ts", "js", "mts", "mjs", "cts", "cjs")
)
"""The configurations that Playwright finds by itself, in its order."""


class CommandError(Exception):
    """The test command cannot be parsed, for the reason in the text; its author's fault."""


def parse_playwright_arguments(command: str) -> tuple[str, ...] | None:
    """Parse the arguments of `playwright test`. None: it is another command, for a shell.

    Raises:
        CommandError: it is empty, or a quotation has no end.
    """
    words = _split_words(command)
    if "--bun" in words:
        raise CommandError(
            "The test command asks for Bun's own runtime by --bun; leave it out, as Playwright "
            "runs on Node."
        )
    if _has_shell_signs(command):
        return None
    for start in _STARTS:
        if tuple(words[: len(start)]) == start:
            return tuple(words[len(start) :])
    return None


def find_named_config(words: Iterable[str]) -> str | None:
    """Find the configuration that the arguments name. None: they name none."""
    for option, value in itertools.pairwise((*words, "")):
        name, equals, joined = option.partition("=")
        if name in _CONFIG_OPTION:
            return (joined if equals else value) or None
    return None


def choose_added_arguments(texts: Iterable[str], *, is_complete: bool) -> tuple[str, ...]:
    """Choose the arguments that are added to `playwright test`.

    `texts`: all that may set something, such as the configuration and what it imports; with
    `is_complete` false there is more that could not be read, and nothing is assumed.
    """
    said = "\n".join(texts)
    unset = [
        word
        for name, value in DEFAULTS
        if is_complete and not re.search(rf"\b{name}\b", said) and not _has_short_option(name, said)
        for word in (f"--{name}", value)
    ]
    return (*ALWAYS, *unset)


def _has_short_option(name: str, said: str) -> bool:
    return name == "workers" and re.search(r"(?:^|\s)-j\b", said) is not None


def _split_words(command: str) -> list[str]:
    if "\0" in command or len(command) > _LONGEST:
        raise CommandError(
            f"The test command has a NUL, or more than {_LONGEST} characters: {command[:80]!r}."
        )
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise CommandError(
            f"The test command {command!r} has a quotation without end."
        ) from problem
    if not words:
        raise CommandError("The test command is empty; use for example `npx playwright test`.")
    return words


def _has_shell_signs(command: str) -> bool:
    """Whether a shell would do more than split it into words."""
    if re.match(r"\s*[A-Za-z_][A-Za-z0-9_]*=", command):
        return True
    outside = re.sub(r"'[^']*'", "", command)
    # Within double quotes, a shell expands only these.
    inside = "".join(re.findall(r'"[^"]*"', outside))
    return bool(
        _SHELL_SIGNS & set(re.sub(r'"[^"]*"', "", outside)) or frozenset("$`\\") & set(inside)
    )
