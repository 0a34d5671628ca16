"""What a run left in its folder: traces, videos, screenshots, and what it said of itself.

The folder was the script's own: a name in it may be a link to anywhere, so only plain files count.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from contract.result import Artifact, ArtifactKind
from runners.kit.isolation.run_time import Until
from runners.kit.isolation.workspace import Workspace, open_plain
from runners.kit.playwright.file_names import FileNames
from runners.kit.playwright.trace_remains import is_part, is_remains, is_unfinished, known_name
from runners.kit.secrets.cut_texts import cut

MOST_FILES: Final = 50
_DEGRADED_BYTES: Final = 64 * 1024
_DEGRADED_CHARS: Final = 500
_MOST_LOOKED_AT: Final = 10_000
_KINDS: Final[dict[str, ArtifactKind]] = {
    ".zip": "trace",
    ".webm": "video",
    ".png": "screenshot",
    ".jpg": "screenshot",
    ".jpeg": "screenshot",
}


class _Degraded(msgspec.Struct):
    """The file by which a script calls its check degraded."""

    messages: list[str]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept of a run."""

    artifacts: tuple[Artifact, ...]
    out_of_time: int
    """Files that there was no time for."""


def degraded_because(folder: Path) -> str | None:
    """What the script wrote into `degraded.json`. None: nothing that can be read."""
    try:
        with open_plain(folder / "degraded.json") as file:
            said = msgspec.json.decode(file.read(_DEGRADED_BYTES), type=_Degraded)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    return cut(" ".join(said.messages), _DEGRADED_CHARS) or None


def keep_files(
    workspace: Workspace, *folders: Path, into: Workspace, until: Until, names: FileNames
) -> Kept:
    """Put the files that results keep where artifacts are; it blocks while it reads them.

    `workspace`: the one that the folders are in. `into`: the one to keep them.

    Raises:
        OSError: the disk is at fault.
    """
    wanted = list(_named(filter(workspace.holds, folders), names).items())[:MOST_FILES]
    artifacts: dict[str, Artifact] = {}
    for number, (name, path) in enumerate(wanted):
        if until.is_over:
            return Kept(artifacts=tuple(artifacts.values()), out_of_time=len(wanted) - number)
        shutil.move(path, into.folder / name)
        made = into.artifact(name, _KINDS[path.suffix.lower()])
        is_copied = is_unfinished(path) and made.sha256 in {a.sha256 for a in artifacts.values()}
        if is_copied:
            (into.folder / name).unlink()
        else:
            artifacts[name] = made
    return Kept(artifacts=tuple(artifacts.values()), out_of_time=0)


def _named(folders: Iterable[Path], names: FileNames) -> dict[str, Path]:
    """What is in the folders, by the names under which it is kept."""
    named: dict[str, Path] = {}
    for folder in folders:
        # What Playwright was still writing comes last: it may have been copied to its place.
        for path in sorted(found_files(folder), key=is_unfinished):
            named.setdefault(_free_name(path, folder, names, taken=set(named)), path)
    return named


def found_files(folder: Path) -> Iterator[Path]:
    """The plain files of kinds that results keep; it blocks."""
    looked_at, waiting = 0, [folder]
    while waiting:
        folders, files = _listed(waiting.pop())
        waiting += reversed(folders)
        for path in files:
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            if path.suffix.lower() in _KINDS and not is_part(path) and _is_plain(path):
                yield path
        looked_at += len(folders)


def _listed(folder: Path) -> tuple[list[Path], list[Path]]:
    """Its folders, but for packages and parts of traces, and its other entries.

    Nothing, where no path leads to it.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return [], []
    folders, others = [], []
    for one in found:
        if not one.is_dir(follow_symlinks=False):
            others.append(Path(one.path))
        elif one.name != "node_modules" and not is_remains(Path(one.path)):
            folders.append(Path(one.path))
    return folders, others


def _is_plain(path: Path) -> bool:
    try:
        with open_plain(path) as file:
            return os.fstat(file.fileno()).st_nlink == 1
    except OSError:
        return False


def _free_name(path: Path, folder: Path, names: FileNames, *, taken: set[str]) -> str:
    """The file's own name; where there are several of it, with the folders that it is in.

    Where none of these can be told, its kind with a number.
    """
    known = path.with_name(known_name(path))
    parts = known.relative_to(folder).parts
    told = [names.fit(known, *parts[-depth:]) for depth in range(1, len(parts) + 1)]
    suffix = path.suffix.lower()
    by_number = f"{_KINDS[suffix]}-{len(taken) + 1}{suffix}"
    fit = [*filter(None, told), by_number]
    return next((name for name in fit if name not in taken), f"{len(taken)}-{by_number}")
