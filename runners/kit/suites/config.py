"""Which files of a suite may set options of Playwright Test: read only, never changed or run.

What cannot be read counts as a text that may set anything: a suite's own commands have run before,
and may have left any kind of file here.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from runners.kit.suites.command import CONFIG_NAMES, config_named
from runners.kit.suites.installation import is_inside

_MOST_FILES: Final = 50
_LARGEST_BYTES: Final = 1_000_000
_IMPORTED: Final = re.compile(r"""(?:from|import|require)\s*\(?\s*['"]([^'"\n]+)['"]""")
_HARMLESS: Final = re.compile(
    r"node:.*|@playwright/test|playwright|dotenv(/.*)?|path|url|os|fs|process|child_process"
)
"""Packages that set no option."""
_ENDINGS: Final = ("", ".ts", ".js", ".mts", ".mjs", ".cts", ".cjs", ".json")
_INDEXES: Final = ("/index.ts", "/index.js")


class _Reading:
    """The texts of a configuration and of whatever of the suite it imports."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[Path] = set()
        self.texts: list[str] = []
        self.is_complete = True

    def read(self, path: Path) -> None:
        if path in self._seen:
            return
        self._seen.add(path)
        text = _text(path)
        if text is None or len(self._seen) > _MOST_FILES:
            self.is_complete = False
            return
        self.texts.append(text)
        for name in _IMPORTED.findall(text):
            self._follow(path.parent, name)

    def _follow(self, folder: Path, name: str) -> None:
        if _HARMLESS.fullmatch(name):
            return
        found = self._file(folder / name) if name.startswith(".") else None
        if found is None:
            self.is_complete = False
        else:
            self.read(found)

    def _file(self, path: Path) -> Path | None:
        """As Node and TypeScript find it, within the suite."""
        stems = (path, path.with_suffix("")) if path.suffix in _ENDINGS[1:] else (path,)
        names = (f"{stem}{end}" for stem in stems for end in (*_ENDINGS, *_INDEXES))
        for one in map(Path, names):
            if _is_file(one) and is_inside(one, self._root):
                return one
        return None


def option_texts(
    root: Path, working_dir: Path, command: str, arguments: tuple[str, ...] | None
) -> tuple[tuple[str, ...], bool]:
    """All texts that may set an option, and whether these are all; it blocks.

    `arguments`: those of `playwright test`. None: another command starts it.
    """
    reading = _Reading(root)
    for path in _configurations(working_dir, arguments):
        if is_inside(path, root):
            reading.read(path)
        break
    scripts = () if arguments is not None else tuple(_scripts(working_dir))
    is_complete = reading.is_complete and (arguments is not None or bool(scripts))
    return (command, *scripts, *reading.texts), is_complete


def _configurations(working_dir: Path, arguments: tuple[str, ...] | None) -> Iterator[Path]:
    named = config_named(arguments or ())
    place = working_dir / named if named is not None else working_dir
    paths = (place, *(place / name for name in CONFIG_NAMES))
    yield from (path for path in paths if _is_file(path))


def _scripts(working_dir: Path) -> Iterator[str]:
    """The commands of package.json, one of which a test command may run."""
    try:
        manifest = msgspec.json.decode(_text(working_dir / "package.json") or "", type=_Manifest)
    except (msgspec.DecodeError, RecursionError):
        return
    yield from (command for command in manifest.scripts.values() if isinstance(command, str))


def _is_file(path: Path) -> bool:
    """Also of names that no disk takes: there it is none."""
    return os.path.isfile(path)  # noqa: PTH113 - of such names a Path raises


def _text(path: Path) -> str | None:
    """None: it cannot be read, or is too large."""
    try:
        if not _is_file(path) or path.stat().st_size > _LARGEST_BYTES:
            return None
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None


class _Manifest(msgspec.Struct):
    scripts: dict[str, Any] = {}
