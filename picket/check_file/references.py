"""Scripts, files and snippets that a check file names by path, read from beside it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from contract.assertion_rules import Wrong
from contract.checks import CheckType
from contract.scripts import (
    MAX_SCRIPT_BYTES,
    snippet_name_problem,
    snippet_path,
    snippets_of_scripts,
    snippets_of_snippet,
)
from picket.check_file.validate import render

_SCRIPTS: Final = {
    "setupScriptFile": "setupScript",
    "teardownScriptFile": "teardownScript",
    "scriptFile": "script",
}
"""Fields that name a file, and the fields for its text."""
_FILES: Final = "dependencyFiles"
SUITE: Final = "suiteFolder"
_AT_A_SERVICE: Final = ("codeBundlePath", "bundleSha256")
_PACKED_LATER: Final = ""
"""The placeholder of a suite's content address until its folder is packed."""


@dataclass(frozen=True, slots=True)
class References:
    """The fields of a check, with references to files replaced by their content."""

    fields: dict[str, object]
    suite: Path | None = None
    """The folder of the suite. None: the check is of another type, or names no folder."""
    moved: dict[str, str] = field(default_factory=dict)
    """Path in `fields` to path in the file."""
    wrong: list[Wrong] = field(default_factory=list)


def read_references(document: Mapping[str, object], kind: CheckType, folder: Path) -> References:
    """Read the files that the check names, relative to the folder of its file."""
    reader = _Reader(References(dict(document)), folder)
    for name, place in _SCRIPTS.items():
        reader.take_script(name, place)
    if kind in {CheckType.BROWSER, CheckType.MULTI_STEP}:
        reader.expect_script()
        reader.take_dependencies()
    if kind in {CheckType.API, CheckType.BROWSER, CheckType.MULTI_STEP}:
        reader.take_snippets()
    return reader.suite() if kind is CheckType.PLAYWRIGHT else reader.named


class _Reader:
    """Reads files of one folder into the fields of one check."""

    def __init__(self, named: References, folder: Path) -> None:
        self.named = named
        self._fields = named.fields
        self._folder = folder
        self._beside = Path()
        """The path to the folder of the script, which has the snippets."""

    def take_script(self, name: str, place: str) -> None:
        """Read the script that this field names into its place."""
        if name not in self._fields:
            return
        given = self._fields.pop(name)
        if place in self._fields:
            self._refuse(f"$.{name}", f"conflicts with $.{place}; keep one of them")
            return
        self.named.moved[f"$.{place}"] = f"$.{name}"
        text = self._text(f"$.{name}", given)
        self._fields[place] = "//" if text is None else text
        if isinstance(given, str) and f"{place}Path" not in self._fields:
            self._fields[f"{place}Path"] = Path(given).as_posix()
            self.named.moved[f"$.{place}Path"] = f"$.{name}"
            self._beside = Path(given).parent if place == "script" else self._beside

    def expect_script(self) -> None:
        """Report a missing script by the field of its path."""
        if "script" not in self._fields:
            self.named.moved["$.script"] = "$.scriptFile"

    def take_dependencies(self) -> None:
        """Read the files that the check lists as its dependencies."""
        given = self._fields.pop(_FILES, None)
        if given is None:
            return
        if not isinstance(given, list):
            self._refuse(f"$.{_FILES}", f"is {render(given)}; use a list of paths")
            return
        inline = self._fields.get("dependencies") or []
        if not isinstance(inline, list):
            return
        files = list(inline)
        for order, path in enumerate(given):
            if (file := self._dependency(order, path)) is not None:
                there = f"$.{_FILES}[{order}]"
                own = {f"$.dependencies[{len(files)}].{key}": there for key in file}
                self.named.moved.update(own)
                files.append(file)
        self._fields["dependencies"] = files

    def take_snippets(self) -> None:
        """Read the snippets that the scripts import from `snippets/`."""
        wanted = snippets_of_scripts(self._texts())
        found: dict[str, str] = {}
        while more := {name for name in wanted - found.keys() if self._is_snippet(name)}:
            for name in more:
                path = str(self._beside / snippet_path(name))
                found[name] = self._text(f"./{path}", path) or ""
            wanted = frozenset().union(*(snippets_of_snippet(found[name]) for name in more))
        if found:
            self._fields["snippets"] = [
                {"path": snippet_path(name), "content": found[name]} for name in sorted(found)
            ]

    def suite(self) -> References:
        """Return the fields and the folder of the suite."""
        for name in _AT_A_SERVICE:
            if self._fields.pop(name, None) is not None:
                self._refuse(f"$.{name}", f"refers to a bundle of a service; use {SUITE}")
        given = self._fields.pop(SUITE, None)
        self.named.moved["$.bundleSha256"] = f"$.{SUITE}"
        if given is None:
            return self.named
        self._fields["bundleSha256"] = _PACKED_LATER
        path = self._folder / given if isinstance(given, str) else None
        if path is None or not path.is_dir():
            fix = "use the path of a folder"
            fix = fix if path is None else f"there is no such folder; {fix}"
            self._refuse(f"$.{SUITE}", f"is {render(given)}; {fix}")
        return References(self._fields, path, self.named.moved, self.named.wrong)

    def _texts(self) -> Iterable[str]:
        places = (*_SCRIPTS.values(), "localSetupScript", "localTearDownScript")
        given = self._fields.get("dependencies")
        files = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        texts = [*map(self._fields.get, places), *(file.get("content") for file in files)]
        return [text for text in texts if isinstance(text, str)]

    def _is_snippet(self, name: str) -> bool:
        is_name = snippet_name_problem(name) is None
        return is_name and (self._folder / self._beside / snippet_path(name)).is_file()

    def _dependency(self, order: int, given: object) -> dict[str, str] | None:
        text = self._text(f"$.{_FILES}[{order}]", given)
        if text is None:
            return None
        return {"path": Path(str(given)).as_posix(), "content": text}

    def _text(self, path: str, given: object) -> str | None:
        """Read a file. None: it cannot be read, which is reported."""
        if not isinstance(given, str) or not given:
            self._refuse(path, f"is {render(given)}; use the path of a file")
            return None
        try:
            with (self._folder / given).open("rb") as file:
                body = file.read(MAX_SCRIPT_BYTES + 1)
            return body.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._refuse(path, f"is {render(given)}, which is not UTF-8 text")
        except (OSError, ValueError) as problem:
            because = problem.strerror if isinstance(problem, OSError) else "it is not a path"
            self._refuse(path, f"is {render(given)}, which cannot be read: {because}")
        return None

    def _refuse(self, path: str, problem: str) -> None:
        self.named.wrong.append((path, problem))
