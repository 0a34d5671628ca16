"""What is kept of a run that is over, and what the reader of its result has to know of it."""

import itertools
import tempfile
from pathlib import Path

import msgspec

from contract.result import Artifact
from runners.kit.isolation.run_time import Until
from runners.kit.isolation.workspace import Workspace
from runners.kit.playwright.file_names import FileNames
from runners.kit.playwright.files import Kept, degraded_because, found_files, keep_files
from runners.kit.playwright.place import Place
from runners.kit.playwright.trace_parts import is_whole
from runners.kit.playwright.trace_remains import known_name, pack_remains, remains_in

_UNFINISHED = "The script's process could not end its trace: it shows what was written before."
_SHOWS_LESS = "The trace does not show all: {} of its parts are missing, for want of time or room."
_NO_TRACE = "There is no trace: for what there is of it, there was not enough time or room."
_NONE = "There is no {}: the script's process ended before it had written any."
_NO_TIME = "Not all files are kept: the run's time was up, and {} missing."


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a run left."""

    degraded_because: str | None
    """What the script said in `degraded.json`. None: nothing."""
    artifacts: tuple[Artifact, ...]
    notes: tuple[str, ...]
    """What the reader has to know beside it."""


def left_in(  # noqa: PLR0913 - of one run
    place: Place,
    workspace: Workspace,
    *,
    keeper: Workspace,
    is_ended: bool,
    films: bool,
    until: Until,
    names: FileNames,
) -> Left:
    """Keep what there is of a run, and there is time for; it blocks.

    `workspace`: the one that it ran in. `is_ended`: whether it came to an end by itself, with all
    its files. `films`: whether there are videos of it. `names`: what they may be called.

    Raises:
        OSError: the disk is at fault.
    """
    degraded = degraded_because(place.root) if workspace.holds(place.root) else None
    broken = _without_broken(workspace, place.output, until.half(), is_ended=is_ended)
    packed = Path(tempfile.mkdtemp(dir=workspace.folder))
    of_trace = () if is_ended else _packed(workspace, place.output, packed, until.half())
    kept = keep_files(
        workspace, place.output, packed, place.root, into=keeper, until=until, names=names
    )
    notes = (*broken, *_of_trace(kept, of_trace))
    if kept.out_of_time:
        notes += (_NO_TIME.format(_many(kept.out_of_time)),)
    elif not is_ended:
        notes += _lost(kept.artifacts, notes, films=films)
    return Left(degraded_because=degraded, artifacts=kept.artifacts, notes=notes)


def _of_trace(kept: Kept, told: tuple[str, ...]) -> tuple[str, ...]:
    """What to say of one that was packed from its remains. Pure."""
    if not told or any(one.kind == "trace" for one in kept.artifacts):
        return told
    return (_NO_TRACE,)


def _many(files: int) -> str:
    return "1 is" if files == 1 else f"{files} are"


def _lost(
    artifacts: tuple[Artifact, ...], notes: tuple[str, ...], *, films: bool
) -> tuple[str, ...]:
    """What its sudden end took, if nothing else says so. Pure."""
    kept = {one.kind for one in artifacts}
    due = ("trace", "video") if films else ("trace",)
    lost = [kind for kind in due if kind not in kept and not any(kind in one for one in notes)]
    return (_NONE.format(" and no ".join(lost)),) if lost else ()


def _packed(workspace: Workspace, output: Path, into: Path, until: Until) -> tuple[str, ...]:
    """Make an archive of what there is of traces, and say so."""
    packed = pack_remains(workspace, remains_in(output), into / "trace.zip", until=until)
    if packed is None:
        return ()
    if not packed.left_off:
        return (_UNFINISHED,)
    return (_UNFINISHED, _SHOWS_LESS.format(packed.left_off))


def _without_broken(
    workspace: Workspace, output: Path, until: Until, *, is_ended: bool
) -> tuple[str, ...]:
    """Remove files that nobody could open, and say which; it ends where time is up."""
    if not workspace.holds(output):
        return ()
    notes = []
    for path in itertools.takewhile(lambda _: not until.is_over, list(found_files(output))):
        is_broken = path.suffix.lower() == ".zip" and not is_ended and not is_whole(path)
        if is_broken or path.stat().st_size == 0:
            path.unlink()
            what = "video" if path.suffix.lower() == ".webm" else "file"
            notes.append(
                f"The {what} {known_name(path)} is not kept: nothing in it can be shown, since the "
                "script's process could not bring it to its end."
            )
    return tuple(notes)
