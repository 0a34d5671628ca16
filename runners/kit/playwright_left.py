"""What is kept of a run that is over, and what the reader of its result has to know of it."""

import tempfile
from pathlib import Path

import msgspec

from contract.result import Artifact
from runners.kit.playwright_files import degraded_because, found_files, keep_files
from runners.kit.playwright_place import Place
from runners.kit.trace_remains import is_whole, pack_remains, remains_in
from runners.kit.workspace import Workspace

_UNFINISHED = "The script's process could not end its trace: it shows what was written before."


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a run left."""

    degraded_because: str | None
    """What the script said in `degraded.json`. None: nothing."""
    artifacts: tuple[Artifact, ...]
    notes: tuple[str, ...]
    """What the reader has to know beside it."""


def left_in(place: Place, workspace: Workspace, *, keeper: Workspace, is_ended: bool) -> Left:
    """Keep what there is of a run; it blocks.

    `workspace`: the one that it ran in. `is_ended`: whether it came to an end by itself, with all
    its files.

    Raises:
        OSError: the disk is at fault.
    """
    notes = _without_broken(workspace, place.output, is_ended=is_ended)
    further: tuple[Path, ...] = ()
    if not is_ended:
        folder = Path(tempfile.mkdtemp(dir=workspace.folder))
        if pack_remains(workspace, remains_in(place.output), folder / "trace.zip"):
            notes, further = (*notes, _UNFINISHED), (folder,)
    degraded = degraded_because(place.root) if workspace.holds(place.root) else None
    artifacts = keep_files(workspace, place.output, *further, place.root, into=keeper)
    return Left(degraded_because=degraded, artifacts=artifacts, notes=notes)


def _without_broken(workspace: Workspace, output: Path, *, is_ended: bool) -> tuple[str, ...]:
    """Remove files that nobody could open, and say which."""
    if not workspace.holds(output):
        return ()
    notes = []
    for path in list(found_files(output)):
        is_broken = path.suffix.lower() == ".zip" and not is_ended and not is_whole(path)
        if is_broken or path.stat().st_size == 0:
            path.unlink()
            what = "video" if path.suffix.lower() == ".webm" else "file"
            notes.append(
                f"The {what} {path.name} is not kept: nothing in it can be shown, since the "
                "script's process could not bring it to its end."
            )
    return tuple(notes)
