"""A script's files: names, kinds, and paths as their author knows them.

Files as the author of a script knows them, in what Node and Playwright say of it. Pure.

They name files by where they are in the agent: a folder of one run, which nobody finds again, or
one of its packages. The author knows them by where they are in the check.
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
from runners.scripting.node.runtimes import HARNESS

EDITOR_SCRIPT: Final = "script.js"
_MODULES: Final = "node_modules"
"""The libraries of the runtime; a file of the check's own there would hide one of them."""
_SEGMENT_BYTES: Final = 255


class ScriptFile(msgspec.Struct, frozen=True):
    """A file to be written before the run."""

    path: PurePosixPath
    """Inside the folder."""
    content: str


def script_path(spec: BrowserSpec | MultiStepSpec) -> PurePosixPath:
    """Where the script is in the folder.

    Raises:
        CheckFailed: of kind SCRIPT, when that is not in the folder.
    """
    return _resolve_in_folder(spec.script_path or EDITOR_SCRIPT)


def script_files(spec: BrowserSpec | MultiStepSpec) -> tuple[ScriptFile, ...]:
    """The script, its snippets beside it, its dependencies at their paths.

    Raises:
        CheckFailed: of kind SCRIPT, when one would leave the folder or stand in another's way.
    """
    script = script_path(spec)
    files = {_resolve_in_folder(one.path): one.content for one in spec.dependencies}
    files |= _place_snippets(script, spec.snippets)
    files[script] = spec.script
    for path in files:
        if not files.keys().isdisjoint(path.parents):
            raise _refuse(str(path), "goes through a file, as if it were a folder")
    return tuple(ScriptFile(path, content) for path, content in files.items())


def write_files(files: Iterable[ScriptFile], folder: Path) -> None:
    """Write them into a folder that is empty; it blocks.

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
    """At their paths from the script's folder."""
    return {
        _resolve_in_folder(str(script.parent / one.path.lstrip("/"))): one.content
        for one in snippets
    }


def _resolve_in_folder(given: str) -> PurePosixPath:
    """A path of the check as one in the folder: `/` is the folder itself."""
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
    """Whether a script is to be run by Playwright Test; otherwise Node runs it by itself."""
    code = _COMMENT_OR_TEXT.sub(_drop_comment, script)
    if _FILE.search(path) or _NAMED_TEST.search(code):
        return True
    return bool(_RUNNER.search(code)) and bool(_TEST_CALL.search(_drop_texts(code)))


def _drop_comment(found: re.Match[str]) -> str:
    """Texts stay, since modules are named by them; comments go."""
    return " " if found.group().startswith("/") else found.group()


def _drop_texts(code: str) -> str:
    return _COMMENT_OR_TEXT.sub("''", code)


_PACKAGES_PATH: Final = r"(?:/[0-9a-f.]{1,100})?/node_modules/"
"""Packages that suites share lie below the key of their content."""
_REQUIRED_BY: Final = re.compile(r"\n- (?:node_modules/|node:)[^\n]*")
_EMPTY_REQUIRE_STACK: Final = re.compile(r"\nRequire stack:(?!\n- )")
_SYNTAX: Final = re.compile(r"(?P<kind>SyntaxError: )(?P<file>\S+): (?P<said>.*) \(\d+:\d+\)")


class UserPaths:
    """Those of one run."""

    def __init__(
        self,
        root: Path,
        *,
        working_dir: Path | None = None,
        packages: Iterable[Path] = (),
        harness: Path = HARNESS,
    ) -> None:
        """`working_dir`: what the author's paths count from. None: from the root.

        `packages`: folders of the agent's that hold a `node_modules`, or several by their keys.
        `harness`: where the run's copy of our own code is.
        """
        here = root if working_dir is None else working_dir
        above = os.path.relpath(root, here)
        outside = "" if above == "." else f"{above}/"
        self._shorter = ((f"{here}/", ""), (f"{root}/", outside), (f"{harness}/", "node:picket/"))
        self._packages = _compile_packages(packages)

    def line(self, text: str) -> str:
        """Of a log."""
        if "/" not in text:
            return text
        for whole, short in self._shorter:
            text = text.replace(f"file://{whole}", short).replace(whole, short)
        return text if self._packages is None else self._packages.sub("node_modules/", text)

    def error(self, text: str, where: str | None = None) -> str:
        """Of an error, without the way through Playwright that led to the author's file.

        `where`: its place, as in `shop.spec.ts:5:14`, which is said behind the first line and not
        once more in it. None: nobody knows.
        """
        told = _EMPTY_REQUIRE_STACK.sub("", _REQUIRED_BY.sub("", self.line(text)))
        if where is None:
            return told
        syntax = _SYNTAX.match(told)
        if syntax is not None and where.startswith(f"{syntax['file']}:"):
            return f"{syntax['kind']}{syntax['said']}{told[syntax.end() :]}"
        return told


def _compile_packages(packages: Iterable[Path]) -> re.Pattern[str] | None:
    """Of paths below these folders alone: a URL of the target's may hold `node_modules` as well.

    It begins with long fixed texts, so that a script's output cannot make it slow.
    """
    folders = "|".join(re.escape(str(folder)) for folder in packages)
    return re.compile(f"(?:file://)?(?:{folders}){_PACKAGES_PATH}") if folders else None


def append_place(text: str, where: str | None) -> str:
    """An error with its place behind its first line."""
    first, *rest = text.strip().split("\n")
    return "\n".join([f"{first} ({where})" if where else first, *rest])
