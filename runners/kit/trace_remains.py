"""Makes an archive of the trace of a run that nobody brought to its end.

Playwright writes a trace's events and what they show as they come, and packs them at the end. Where
its process could not do that any more, they still lie there.
"""

import itertools
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from contract.agent_api import MAX_ARTIFACT_BYTES
from runners.kit.workspace import Workspace, open_plain

PLAIN_TRACES: Final = ".traces"
"""Where plain scripts have theirs, in their folder of output."""
_ARTIFACTS: Final = ".playwright-artifacts-*"
_TEST_TRACES: Final = f"{_ARTIFACTS}/traces"
_SHOWN: Final = ("resources", "screencast")
_MOST_FILES: Final = 5_000
_MOST_FOLDERS: Final = 5_000


def is_remains(folder: Path) -> bool:
    """Whether a folder holds parts of traces, which are no files to keep by themselves. Pure."""
    return folder.name == PLAIN_TRACES or folder.match(_TEST_TRACES)


def remains_in(output: Path) -> list[Path]:
    """Where a run with this folder of output has the parts of its traces; it blocks."""
    return [output / PLAIN_TRACES, *sorted(output.glob(_TEST_TRACES))]


def remains_below(folder: Path) -> Iterator[Path]:
    """The same, wherever below the folder a suite puts its output; it blocks."""
    for inner, names, _ in itertools.islice(os.walk(folder), _MOST_FOLDERS):
        names[:] = [name for name in names if name not in {"node_modules", ".git"}]
        if any(fnmatch(name, _ARTIFACTS) for name in names):
            yield from sorted(Path(inner).glob(_TEST_TRACES))


def pack_remains(workspace: Workspace, places: Iterable[Path], target: Path) -> bool:
    """Write what is there of unfinished traces into one archive; whether there was any; it blocks.

    Raises:
        OSError: the disk is at fault.
    """
    found = [place for place in places if _is_held(workspace, place) and any(place.glob("*.trace"))]
    if not found:
        return False
    with ZipFile(target, "x", ZIP_DEFLATED) as archive:
        _fill(archive, found)
    return True


def is_whole(archive: Path) -> bool:
    """Whether an archive was written to its end; it blocks."""
    try:
        with open_plain(archive) as file, ZipFile(file) as opened:
            return bool(opened.infolist())
    except (OSError, BadZipFile):
        return False


def _is_held(workspace: Workspace, place: Path) -> bool:
    """Whether nothing in it leads elsewhere."""
    return all(map(workspace.holds, (place, *(place / kind for kind in _SHOWN))))


def _fill(archive: ZipFile, places: Iterable[Path]) -> None:
    left_bytes = MAX_ARTIFACT_BYTES
    for name, path in _members(places):
        content = _content(path, most_bytes=left_bytes)
        if content is not None and name not in archive.NameToInfo:
            left_bytes -= len(content)
            archive.writestr(name, _whole_lines(content) if _is_events(path) else content)


def _members(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Events first, by their number; then what they show."""
    number = 0
    for place in places:
        for events in sorted(place.glob("*.trace")):
            yield f"{number}-trace.trace", events
            yield f"{number}-trace.network", events.with_suffix(".network")
            number += 1
    shown = (path for place in places for kind in _SHOWN for path in (place / kind).glob("*"))
    for path in itertools.islice(shown, _MOST_FILES):
        yield f"{path.parent.name}/{path.name}", path


def _is_events(path: Path) -> bool:
    return path.suffix in {".trace", ".network"}


def _whole_lines(content: bytes) -> bytes:
    """Without a last one that was cut off in the midst of being written."""
    return content[: content.rfind(b"\n") + 1]


def _content(path: Path, *, most_bytes: int) -> bytes | None:
    """None: there is no such plain file, or it is too large."""
    try:
        with open_plain(path) as file:
            is_ours = os.fstat(file.fileno()).st_nlink == 1
            content = file.read(most_bytes + 1) if is_ours else None
    except OSError:
        return None
    return content if content is not None and len(content) <= most_bytes else None
