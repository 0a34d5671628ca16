"""The files of a scripted check in the folder of its run."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from contract.result import FailureKind
from contract.scripted import BrowserSpec, Dependency, MultiStepSpec
from runners.kit.failures import CheckFailed

EDITOR_SCRIPT: Final = "script.js"
_OURS: Final = "node_modules"
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
    return _inside(spec.script_path or EDITOR_SCRIPT)


def script_files(spec: BrowserSpec | MultiStepSpec) -> tuple[ScriptFile, ...]:
    """The script, its snippets beside it, its dependencies at their paths.

    Raises:
        CheckFailed: of kind SCRIPT, when one would leave the folder or stand in another's way.
    """
    script = script_path(spec)
    files = {_inside(one.path): one.content for one in spec.dependencies}
    files |= _snippets(script, spec.snippets)
    files[script] = spec.script
    for path in files:
        if not files.keys().isdisjoint(path.parents):
            raise _refused(str(path), "goes through a file, as if it were a folder")
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


def _snippets(script: PurePosixPath, snippets: Iterable[Dependency]) -> dict[PurePosixPath, str]:
    """At their paths from the script's folder."""
    return {_inside(str(script.parent / one.path.lstrip("/"))): one.content for one in snippets}


def _inside(given: str) -> PurePosixPath:
    """A path of the check as one in the folder: `/` is the folder itself."""
    path = PurePosixPath(os.path.normpath(given.lstrip("/")))
    if not path.name or path.parts[0] == "..":
        raise _refused(given, "leaves the folder of the check")
    if _OURS in path.parts:
        raise _refused(given, f"is in {_OURS}, where the libraries of the runtime are")
    if "\0" in given or any(len(os.fsencode(part)) > _SEGMENT_BYTES for part in path.parts):
        raise _refused(given, "is no path of a file")
    return path


def _refused(path: str, because: str) -> CheckFailed:
    return CheckFailed(
        FailureKind.SCRIPT, f"The file {path[:200]!r} {because}.", {"code": "FILE_PATH"}
    )
