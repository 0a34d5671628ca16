"""The Node runtimes of this machine: Node, its libraries and compiled code, and the browser.

`runners/installation` creates these files:

    <id>/package.json     its libraries, whose versions are locked
    <id>/bin/             node, npm and npx, which come first in PATH
    <id>/lib/             npm itself
    <id>/node_modules/    the libraries of its lock file
    <id>/compile-cache/   their code as Node compiled it in advance, read-only
    <id>/ready            written last
    <id>/code-cache       the code that a run of Playwright calls, compiled (`compile_cache.py`)
    <id>/warmed           whether the code cache was made with a browser
    browsers/             Chromium, where the distribution has no package of it
    chromium              a link into it
    ffmpeg                a program

A code cache is used only if it is intact and was made from the libraries that are installed: V8
itself compares only its version and lengths. `code_cache.cjs` writes and reads the file.
"""

import json
import os
import re
import subprocess
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from contract.result import MachineError
from contract.runtimes import RUNTIMES
from contract.suggestions import suggest_name
from runners.installation.debian import CHROMIUM_PROGRAM
from runners.installation.places import runtimes_folder

CODE_CACHE: Final = "code-cache"
HARNESS: Final = Path(__file__).resolve().parents[2] / "harness"
"""The folder of the harness, which every run loads, as installed."""
_READY: Final = "ready"
_VERSION: Final = re.compile(rb"\d+(\.\d+){3}")
_START_LIMIT_S: Final = 30
"""Enough for a cold disk, as a browser's libraries take some 500 MB."""


class MissingRuntimeError(MachineError):
    """This machine lacks what a check runs on; another agent may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One installed runtime: a version of Node with a fixed set of libraries."""

    id: str
    node: Path
    """The path of `node`; npm and npx are beside it."""
    node_version: str
    modules: Path
    """The real path of its `node_modules`, the only folder that scripts may read."""
    playwright: str
    """The version of Playwright Test."""
    compile_cache: Path | None
    """The read-only folder for `NODE_COMPILE_CACHE`. None: there is none."""
    code_cache: Path | None = None
    """The compiled code that a run of Playwright calls, read-only. None: there is none, or it does
    not fit the libraries."""
    code_cache_fault: str | None = None
    """Why an existing code cache is not used. None: it is used, or there is none."""
    harness: Path = HARNESS
    """The folder of the harness, which the users of runs can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """The runtimes of this machine, as found when the process started."""

    by_id: Mapping[str, Runtime] = field(default_factory=lambda: MappingProxyType({}))
    """The runtimes by id, the newest first."""
    browser: Path | None = None
    """The path of Chromium's headless shell, once it printed its version. None: there is none."""
    browser_version: str | None = None
    ffmpeg: Path | None = None
    """The program that records videos of pages. None: there is none."""

    @property
    def installed(self) -> tuple[str, ...]:
        """The ids of the runtimes, the newest first."""
        return tuple(self.by_id)

    def get(self, runtime_id: str | None) -> Runtime:
        """Return the runtime with an id, or the newest one if the check names none.

        Raises:
            MissingRuntimeError: it is not installed.
        """
        wanted = runtime_id or next(iter(self.by_id), "")
        found = self.by_id.get(wanted)
        if found is None:
            here = ", ".join(self.by_id) or "none"
            raise MissingRuntimeError(
                f"Runtime {wanted or 'for scripts'} is not installed; this machine has {here}."
            )
        return found


def find_runtimes(folder: Path | None = None, browser: Path | None = None) -> Runtimes:
    """Find the runtimes; it reads some 15 MB of each, and has the browser print its version.

    `folder`: where the runtimes are. None: where the installation puts them. `browser`: Chromium's
    program. None: the installation's or Debian's.
    """
    place = runtimes_folder() if folder is None else folder
    browsers = (place / "chromium", CHROMIUM_PROGRAM) if browser is None else (browser,)
    answering = (
        (path.resolve(), version) for path in browsers if (version := _read_browser_version(path))
    )
    found, version = next(answering, (None, None))
    ffmpeg = (place / "ffmpeg").resolve()
    newest_first = sorted(_find_runtimes_in(place), key=lambda runtime: runtime.id, reverse=True)
    return Runtimes(
        by_id=MappingProxyType({runtime.id: runtime for runtime in newest_first}),
        browser=found,
        browser_version=version,
        ffmpeg=ffmpeg if os.access(ffmpeg, os.X_OK) else None,
    )


def _find_runtimes_in(folder: Path) -> list[Runtime]:
    if not folder.is_dir():
        return []
    return [_read_runtime(one) for one in folder.iterdir() if (one / _READY).is_file()]


def _read_runtime(folder: Path) -> Runtime:
    package = json.loads((folder / "package.json").read_bytes())
    cache, code = folder / "compile-cache", folder / CODE_CACHE
    modules = (folder / "node_modules").resolve()
    fault = find_code_cache_fault(code, modules) if code.is_file() else None
    return Runtime(
        id=folder.name,
        node=folder / "bin/node",
        node_version=package["engines"]["node"],
        modules=modules,
        playwright=package["dependencies"]["@playwright/test"],
        compile_cache=cache if cache.is_dir() else None,
        code_cache=code if code.is_file() and fault is None else None,
        code_cache_fault=fault,
    )


def _read_browser_version(browser: Path) -> str | None:
    """Have a browser print its version. None: there is none, or it does not start."""
    try:
        command = (browser, "--version")
        said = subprocess.run(  # noqa: S603 - named by the installation or by its operator
            command, capture_output=True, check=True, timeout=_START_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(said.stdout)
    return None if version is None else version[0].decode()


NO_RUNTIME: Final = "There is no Node runtime for scripts on this machine."


_OTHER_VERSION: Final = "it is damaged, or was made by another version of Picket"


class _IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """The entry of one library's file in the index of a code cache."""

    begin_byte: int
    """Where its code begins, counted from the end of the index."""
    length_bytes: int
    source_crc32: int
    """The CRC-32 of the source that the code was compiled from."""


def find_code_cache_fault(cache: Path, modules: Path) -> str | None:
    """Find why runs must not use a code cache; it reads the cache and its sources. None: they may.

    `modules`: the `node_modules` that runs load.
    """
    try:
        index = _decode_index(cache.read_bytes())
    except OSError as problem:
        return f"it cannot be read: {problem.strerror}"
    except msgspec.DecodeError:
        return _OTHER_VERSION
    faults = (_find_source_fault(Path(name), modules, entry) for name, entry in index.items())
    return next((fault for fault in faults if fault is not None), None)


def _decode_index(content: bytes) -> dict[str, _IndexEntry]:
    checksum, _, rest = content.partition(b"\n")
    if checksum != str(zlib.crc32(rest)).encode():
        raise msgspec.DecodeError(_OTHER_VERSION)
    return msgspec.json.decode(rest.partition(b"\n")[0], type=dict[str, _IndexEntry])


def _find_source_fault(source: Path, modules: Path, entry: _IndexEntry) -> str | None:
    if not source.is_relative_to(modules):
        return f"it is of {source}, outside {modules}"
    try:
        is_the_same = zlib.crc32(source.read_bytes()) == entry.source_crc32
    except OSError:
        is_the_same = False
    return None if is_the_same else f"{source} has changed since"


_MISSING: Final = re.compile(
    r"(?:\w{1,40}(?: \[\w{1,40}\])?: )?"
    r"(?:Cannot find (?:module|package) '(?P<module>[^'\n]{1,200})'"
    r"|(?P<library>\S{1,200}) is not a library of this runtime)"
)
"""Matches at the start of an error only, as errors may quote the target's own texts."""
_MIN_SIMILARITY: Final = 0.8
"""How alike names must be: there are many short ones, and `express` does not mean `expect`."""
_INSTEAD: Final = {
    "@elastic/synthetics": (
        "A journey of @elastic/synthetics becomes `test('…', async ({ page }) => { … })` of "
        "@playwright/test, and its `step` becomes `await test.step('…', async () => { … })`."
    ),
    "k6": (
        "A script of k6 becomes a MULTI_STEP check: `test('…', async ({ request }) => { … })` of "
        "@playwright/test, with `await request.get('…')` for `http.get` and `expect` for `check`."
    ),
    "puppeteer": (
        "A script of puppeteer becomes one of Playwright: "
        "`const { chromium } = require('playwright')` has `launch`, whose browser has `newPage`."
    ),
}
"""What to write in place of the libraries of other products, which are not in any runtime."""
_OWN_FILES: Final = (
    "Files of its own a check names in `dependencies`, or in `dependencyFiles` of a check file."
)
_LIBRARIES: Final = (
    "Scripts have the libraries of their runtime alone, which GET /v1/runtimes lists"
)


def suggest_module(message: str) -> str | None:
    """Explain an error about a missing module in one sentence. None: it is another error."""
    found = _MISSING.match(message)
    if found is None:
        return None
    name = found["module"] or found["library"]
    if name.startswith((".", "/")):
        return _OWN_FILES
    package = "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
    if (instead := _INSTEAD.get(package.removesuffix("-core"))) is not None:
        return instead
    libraries = {library for one in RUNTIMES.values() for library in one.libraries}
    meant = suggest_name(name, libraries, alike=_MIN_SIMILARITY)
    return f"{_LIBRARIES}; did you mean {meant}?" if meant else f"{_LIBRARIES}."
