"""A script's files: their paths, their kinds, and how logs and errors name them.

Node and Playwright name a file by its path on the agent, in a folder that is gone after the run.
`UserPaths` turns these into the paths that the script's author knows, those within the check.
"""

import os
import os.path
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from contract.checks import BrowserSpec, Dependency, MultiStepSpec
from contract.result import CheckFailed, FailureKind
from contract.scripts import EDITOR_SCRIPT
from runners.scripting.node.runtimes import HARNESS

_MODULES: Final = "node_modules"
"""The folder of the runtime's libraries, where a file of the check could hide one of them."""
_SEGMENT_BYTES: Final = 255


class ScriptFile(msgspec.Struct, frozen=True):
    """A file that is written before the run."""

    path: PurePosixPath
    """The path within the run's folder."""
    content: str


def script_path(spec: BrowserSpec | MultiStepSpec) -> PurePosixPath:
    """Find the path of the script within the run's folder.

    Raises:
        CheckFailed: of kind SCRIPT: the path is not in the folder.
    """
    return resolve_in_folder(spec.script_path or EDITOR_SCRIPT)


def script_files(spec: BrowserSpec | MultiStepSpec) -> tuple[ScriptFile, ...]:
    """List the script, the snippets beside it, and the dependencies at their paths.

    Raises:
        CheckFailed: of kind SCRIPT: a path leaves the folder, or two paths conflict.
    """
    script = script_path(spec)
    files = {resolve_in_folder(one.path): one.content for one in spec.dependencies}
    files |= _place_snippets(script, spec.snippets)
    files[script] = spec.script
    for path in files:
        if not files.keys().isdisjoint(path.parents):
            raise _refuse(str(path), "goes through a file, as if it were a folder")
    return tuple(ScriptFile(path, content) for path, content in files.items())


def write_files(files: Iterable[ScriptFile], folder: Path) -> None:
    """Write files into an empty folder; it blocks.

    Raises:
        OSError: they cannot be written.
    """
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content.encode(errors="replace"))


def _place_snippets(
    script: PurePosixPath, snippets: Iterable[Dependency]
) -> dict[PurePosixPath, str]:
    """Map the paths of snippets, which count from the script's folder, to their contents."""
    return {
        resolve_in_folder(str(script.parent / one.path.lstrip("/"))): one.content
        for one in snippets
    }


def resolve_in_folder(given: str) -> PurePosixPath:
    """Turn a path of the check into one within the folder; `/` is the folder itself."""
    path = PurePosixPath(os.path.normpath(given.lstrip("/")))
    if not path.name or path.parts[0] == "..":
        raise _refuse(given, "leaves the folder of the check")
    if _MODULES in path.parts:
        raise _refuse(given, f"is in {_MODULES}, where the libraries of the runtime are")
    if "\0" in given or any(len(os.fsencode(part)) > _SEGMENT_BYTES for part in path.parts):
        raise _refuse(given, "is no path of a file")
    return path


def _refuse(path: str, because: str) -> CheckFailed:
    return CheckFailed(
        FailureKind.SCRIPT, f"The file {path[:200]!r} {because}.", {"code": "FILE_PATH"}
    )


_COMMENT_OR_TEXT: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`""", re.DOTALL
)
_TEST_CALL: Final = re.compile(r"(?<![.\w$])(?:test|it)(?:\.[a-zA-Z]+)*\s*\(")
_RUNNER: Final = re.compile(r"""['"](?:@playwright/test|playwright/test)['"]""")
_NAMED_TEST: Final = re.compile(
    r"\bimport\s+(?:\w+\s*,\s*)?\{[^}]*\btest\b[^}]*\}|\{[^}]*\btest\b[^}]*\}\s*=\s*require\b"
)
_FILE: Final = re.compile(r"\.(?:spec|test)\.[cm]?[jt]sx?$")


def is_playwright_test(script: str, path: str) -> bool:
    """Whether Playwright Test runs a script; otherwise Node runs it by itself."""
    code = _COMMENT_OR_TEXT.sub(_drop_comment, script)
    if _FILE.search(path) or _NAMED_TEST.search(code):
        return True
    return bool(_RUNNER.search(code)) and bool(_TEST_CALL.search(_drop_texts(code)))


def _drop_comment(found: re.Match[str]) -> str:
    """Replace a comment by a space, and keep a string, as strings name modules."""
    return " " if found.group().startswith("/") else found.group()


def _drop_texts(code: str) -> str:
    return _COMMENT_OR_TEXT.sub("''", code)


_PACKAGES_PATH: Final = r"(?:/[0-9a-f.]{1,100})?/node_modules/"
"""The way from a packages folder to its packages; those that suites share have a key in it."""
_REQUIRED_BY: Final = re.compile(r"\n- (?:node_modules/|node:)[^\n]*")
_EMPTY_REQUIRE_STACK: Final = re.compile(r"\nRequire stack:(?!\n- )")
_SYNTAX: Final = re.compile(r"(?P<kind>SyntaxError: )(?P<file>\S+): (?P<said>.*) \(\d+:\d+\)")


class UserPaths:
    """Translates paths of one run into those that the script's author knows."""

    def __init__(
        self,
        root: Path,
        *,
        working_dir: Path | None = None,
        packages: Iterable[Path] = (),
        harness: Path = HARNESS,
    ) -> None:
        """`working_dir`: the folder that the author's paths count from. None: the root.

        `packages`: folders of the agent that hold a `node_modules`, or several ones by key.
        `harness`: the folder from which the run loads the harness.
        """
        here = root if working_dir is None else working_dir
        above = os.path.relpath(root, here)
        outside = "" if above == "." else f"{above}/"
        self._shorter = ((f"{here}/", ""), (f"{root}/", outside), (f"{harness}/", "node:picket/"))
        self._packages = _compile_packages(packages)

    def line(self, text: str) -> str:
        """Translate the paths in a line of a log."""
        if "/" not in text:
            return text
        for whole, short in self._shorter:
            text = text.replace(f"file://{whole}", short).replace(whole, short)
        return text if self._packages is None else self._packages.sub("node_modules/", text)

    def error(self, text: str, where: str | None = None) -> str:
        """Translate the paths in an error, and drop the require stack that led to the file.

        `where`: the error's place, as in `shop.spec.ts:5:14`, which is appended to its first line
        and therefore removed from it. None: the place is unknown.
        """
        told = _EMPTY_REQUIRE_STACK.sub("", _REQUIRED_BY.sub("", self.line(text)))
        if where is None:
            return told
        syntax = _SYNTAX.match(told)
        if syntax is not None and where.startswith(f"{syntax['file']}:"):
            return f"{syntax['kind']}{syntax['said']}{told[syntax.end() :]}"
        return told


def _compile_packages(packages: Iterable[Path]) -> re.Pattern[str] | None:
    """Compile a pattern of paths below these folders only: a URL may contain `node_modules` too.

    The pattern begins with long fixed texts, so that no script's output can make it slow.
    """
    folders = "|".join(re.escape(str(folder)) for folder in packages)
    return re.compile(f"(?:file://)?(?:{folders}){_PACKAGES_PATH}") if folders else None


def append_place(text: str, where: str | None) -> str:
    """Append the place of an error to its first line."""
    first, *rest = text.strip().split("\n")
    return "\n".join([f"{first} ({where})" if where else first, *rest])
