"""Runtimes of Node on this machine: which there are, and what they bring.

Finds what runs scripts on this machine: Node, its libraries by runtime, and the browser.

`runners/installation` lays them out:

    <id>/package.json     what it is made of, which is locked
    <id>/bin/             node, npm and npx, to be put in front of PATH
    <id>/lib/             npm itself
    <id>/node_modules/    the libraries of its lock file
    <id>/compile-cache/   what Node compiled of them in advance, read-only
    <id>/ready            written last
    <id>/code-cache       what a run of Playwright calls, compiled: `warming` makes it
    <id>/warmed           how that was made
    browsers/             Chromium, where the distribution has no package of it
    chromium              a link into it
    ffmpeg                a program

Tells whether code that V8 compiled ahead is whole, and of the libraries that are there.

V8 looks at its own version and at lengths only; `code_cache.cjs` writes and reads the file.
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
"""Our own code that every run of a script loads, as installed."""
_READY: Final = "ready"
_VERSION: Final = re.compile(rb"\d+(\.\d+){3}")
_START_LIMIT_S: Final = 30
"""A cold disk, and libraries of some 500 MB."""


class MissingRuntimeError(MachineError):
    """This machine has not got what a check runs on; another agent may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A fixed set of what scripts run on."""

    id: str
    node: Path
    """The program; npm and npx stand beside it."""
    node_version: str
    modules: Path
    """The folder `node_modules` of its libraries, past all links: scripts may read there alone."""
    playwright: str
    """Version of Playwright Test."""
    compile_cache: Path | None
    """For `NODE_COMPILE_CACHE`, read-only. None: there is none."""
    code_cache: Path | None = None
    """What a run of Playwright calls, compiled (`warming`), read-only. None: there is none, or
    none that fits."""
    code_cache_fault: str | None = None
    """Why the code cache that is there is left out. None: it is not."""
    harness: Path = HARNESS
    """Our own code that every run loads; the users of runs can read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """Those of this machine, as found when the process started."""

    by_id: Mapping[str, Runtime] = field(default_factory=lambda: MappingProxyType({}))
    """The newest first."""
    browser: Path | None = None
    """Program of Chromium's headless shell, which said its version. None: there is none."""
    browser_version: str | None = None
    ffmpeg: Path | None = None
    """Records videos of pages. None: there is none."""

    @property
    def installed(self) -> tuple[str, ...]:
        """Their ids, the newest first."""
        return tuple(self.by_id)

    def get(self, runtime_id: str | None) -> Runtime:
        """The runtime of that id; the newest, when the check names none.

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
    """Look at this machine: reads some 15 MB a runtime, and has the browser say its version.

    `folder`: where they are. None: where the installation puts them. `browser`: Chromium's
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
    """None: it is not there, or does not start, for want of a library perhaps."""
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
    """What the index says of one library's file."""

    begin_byte: int
    """Of its code, behind the index."""
    length_bytes: int
    source_crc32: int
    """Of the text that the code was made of."""


def find_code_cache_fault(cache: Path, modules: Path) -> str | None:
    """Why runs must not use it; None: they may. It reads the file and all that it is of.

    `modules`: the folder of the libraries that runs load.
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
"""Where the error begins with it: one may show such words of its target's."""
_MIN_SIMILARITY: Final = 0.8
"""Names of modules are short, and many: `express` is not meant as `expect`."""
_OWN_FILES: Final = (
    "Files of its own a check names in `dependencies`, or in `dependencyFiles` of a check file."
)
_LIBRARIES: Final = (
    "Scripts have the libraries of their runtime alone, which GET /v1/runtimes lists"
)


def suggest_module(message: str) -> str | None:
    """A sentence to be told behind the error. None: it is of something else."""
    found = _MISSING.match(message)
    if found is None:
        return None
    name = found["module"] or found["library"]
    if name.startswith((".", "/")):
        return _OWN_FILES
    libraries = {library for one in RUNTIMES.values() for library in one.libraries}
    meant = suggest_name(name, libraries, alike=_MIN_SIMILARITY)
    return f"{_LIBRARIES}; did you mean {meant}?" if meant else f"{_LIBRARIES}."
