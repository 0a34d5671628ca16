"""Collects the files that a run leaves: traces, videos, screenshots, and `degraded.json`.

The script could write to the folder, where a name may be a link to anywhere: only regular files
count.
"""

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from contract.result import Artifact, ArtifactKind
from redaction.policy import cut, is_secret, select_usable
from redaction.replacer import SecretPattern
from runners.runner import RunContext
from runners.scripting.playwright.partial_trace import (
    choose_final_name,
    is_partial_archive,
    is_trace_folder,
    is_unfinished,
    is_whole,
    list_trace_folders,
    pack_partial_traces,
)
from runners.scripting.playwright.place import RunFolders
from sandbox.program import Deadline
from sandbox.workspace import Workspace, open_regular_file

_MOST_CHARS: Final = 150
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FileNames:
    """Turns the paths of a run's files into names of artifacts.

    Redaction finds a secret in a name only if it is complete: it no longer recognises one that was
    cut or had characters replaced. A file with such a name gets a number instead.
    """

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = select_usable(secrets)
        self._pattern: SecretPattern | None = None
        """Matches the secrets; compiled on first use. None: it was not needed yet."""

    @classmethod
    def of(cls, ctx: RunContext) -> Self:
        """Make the names of a run, from its secrets and those that its scripts added."""
        own = (one.value for one in ctx.variables if is_secret(one))
        return cls((*own, *ctx.location_secrets.values(), *ctx.workspace.secrets))

    def fit(self, path: Path, *parts: str) -> str | None:
        """Join parts of a path to a name. None: it would be too long, or might reveal a secret."""
        name = _UNUSUAL.sub("-", "-".join(parts)).lstrip(".-")
        return (
            name if name and len(name) <= _MOST_CHARS and self._is_free_of_secrets(path) else None
        )

    def _is_free_of_secrets(self, path: Path) -> bool:
        text = str(path)
        is_changed = _UNUSUAL.search(text.replace("/", "")) is not None
        if not is_changed and not any("/" in secret for secret in self._secrets):
            return True
        return not (self._secrets and self._get_pattern().hide_in_text(text)[1])

    def _get_pattern(self) -> SecretPattern:
        if self._pattern is None:
            self._pattern = SecretPattern(self._secrets)
        return self._pattern


MOST_FILES: Final = 50
_DEGRADED_BYTES: Final = 64 * 1024
_DEGRADED_CHARS: Final = 500
_NO_MESSAGE: Final = "The script declared its check degraded, without a message."
_MOST_LOOKED_AT: Final = 10_000
_KINDS: Final[dict[str, ArtifactKind]] = {
    ".zip": "trace",
    ".webm": "video",
    ".png": "screenshot",
    ".jpg": "screenshot",
    ".jpeg": "screenshot",
}
_ERROR_CONTEXT: Final = "error-context.md"
"""Playwright's description of a failure, with what its page showed."""
_TEST_SOURCE: Final = "\n# Test source\n"
"""The heading of its last section."""
_CONTEXT_CHARS: Final = 1_000_000


class _Degraded(msgspec.Struct):
    """The content of `degraded.json`, by which a script reports its check as degraded."""

    messages: list[str]


class KeptFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a run that are kept."""

    artifacts: tuple[Artifact, ...]
    out_of_time: int
    """The number of files for which there was no time."""


def read_degraded(folder: Path) -> str | None:
    """Read the messages of a script's `degraded.json`. None: there is no such file."""
    try:
        with open_regular_file(folder / "degraded.json") as file:
            said = msgspec.json.decode(file.read(_DEGRADED_BYTES), type=_Degraded)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    return cut(" ".join(said.messages), _DEGRADED_CHARS) or _NO_MESSAGE


def keep_files(
    workspace: Workspace,
    *folders: Path,
    into: Workspace,
    until: Deadline,
    names: FileNames,
    failed: tuple[str, ...] = (),
) -> KeptFiles:
    """Move the files that results keep into a workspace as artifacts; it blocks.

    `workspace`: holds the folders. `into`: gets the files. `failed`: the folders of failed tests
    within the output folder, whose files come first.

    Raises:
        OSError: the disk is at fault.
    """
    own = filter(workspace.contains, folders)
    wanted = list(_name_files(own, names, failed).items())[:MOST_FILES]
    artifacts: dict[str, Artifact] = {}
    for number, (name, path) in enumerate(wanted):
        if until.has_passed:
            return KeptFiles(artifacts=tuple(artifacts.values()), out_of_time=len(wanted) - number)
        _move(path, into.folder / name)
        made = into.artifact(name, _KINDS.get(path.suffix.lower(), "file"))
        is_copied = is_unfinished(path) and made.sha256 in {a.sha256 for a in artifacts.values()}
        if is_copied:
            (into.folder / name).unlink()
        else:
            artifacts[name] = made
    return KeptFiles(artifacts=tuple(artifacts.values()), out_of_time=0)


def _move(path: Path, place: Path) -> None:
    if path.name == _ERROR_CONTEXT:
        # Without the script, which shows the values that it gives to headers.
        with path.open(errors="replace") as file:
            told, _, _ = file.read(_CONTEXT_CHARS).partition(_TEST_SOURCE)
        path.write_text(told)
    shutil.move(path, place)


def _name_files(
    folders: Iterable[Path], names: FileNames, failed: tuple[str, ...]
) -> dict[str, Path]:
    """Map the names under which files are kept to their paths."""
    named: dict[str, Path] = {}
    for folder in folders:

        def rank(path: Path, folder: Path = folder) -> tuple[bool, int]:
            # Unfinished files come last: Playwright may already have copied them to their place.
            of_test = path.relative_to(folder).parts[0]
            return is_unfinished(path), [*failed, of_test].index(of_test)

        for path in sorted(find_files(folder), key=rank):
            named.setdefault(_free_name(path, folder, names, taken=set(named)), path)
    return named


def find_files(folder: Path) -> Iterator[Path]:
    """Find the regular files of kinds that results keep; it blocks."""
    looked_at, waiting = 0, [folder]
    while waiting:
        folders, files = _list_folder(waiting.pop())
        waiting += reversed(folders)
        for path in files:
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            is_kept = path.suffix.lower() in _KINDS or path.name == _ERROR_CONTEXT
            if is_kept and not is_partial_archive(path) and _is_regular(path):
                yield path
        looked_at += len(folders)


def _list_folder(folder: Path) -> tuple[list[Path], list[Path]]:
    """List a folder's subfolders, without packages and parts of traces, and its other entries.

    Both are empty where the folder cannot be opened.
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
        elif one.name != "node_modules" and not is_trace_folder(Path(one.path)):
            folders.append(Path(one.path))
    return folders, others


def _is_regular(path: Path) -> bool:
    try:
        with open_regular_file(path) as file:
            return os.fstat(file.fileno()).st_nlink == 1
    except OSError:
        return False


def _free_name(path: Path, folder: Path, names: FileNames, *, taken: set[str]) -> str:
    """Choose a file's name: its own, or one with as many of its folders as make it unique.

    Where no such name may be used, it is the file's kind with a number.
    """
    known = path.with_name(choose_final_name(path))
    parts = known.relative_to(folder).parts
    told = [names.fit(known, *parts[-depth:]) for depth in range(1, len(parts) + 1)]
    suffix = path.suffix.lower()
    by_number = f"{_KINDS.get(suffix, 'file')}-{len(taken) + 1}{suffix}"
    fit = [*filter(None, told), by_number]
    return next((name for name in fit if name not in taken), f"{len(taken)}-{by_number}")


_UNFINISHED = "The script's process could not end its trace: it shows what was written before."
_SHOWS_LESS = "The trace does not show all: {} of its parts are missing, for want of time or room."
_NO_TRACE = "There is no trace: for what there is of it, there was not enough time or room."
_NONE = "There is no {}: the script's process ended before it had written any."
_NO_TIME = "Not all files are kept: the run's time was up, and {} missing."


class CollectedOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of a run."""

    degraded_because: str | None
    """The messages of the script's `degraded.json`. None: it wrote none."""
    artifacts: tuple[Artifact, ...]
    notes: tuple[str, ...]
    """Sentences for the run's log about missing or incomplete files."""


def collect_outputs(  # noqa: PLR0913 - of one run
    place: RunFolders,
    workspace: Workspace,
    *,
    kept_in: Workspace,
    is_ended: bool,
    records_video: bool,
    until: Deadline,
    names: FileNames,
    failed: tuple[str, ...] = (),
) -> CollectedOutputs:
    """Collect the outputs of a run for which there is time; it blocks.

    `workspace`: the one that it ran in. `kept_in`: the one that gets the artifacts. `is_ended`:
    whether its traces and videos are complete. `records_video`: whether it records videos.
    `failed`: the folders of failed tests within the output folder, whose files come first.

    Raises:
        OSError: the disk is at fault.
    """
    degraded = read_degraded(place.root) if workspace.contains(place.root) else None
    broken = _remove_broken(workspace, place.output, until.halve(), is_ended=is_ended)
    packed = Path(tempfile.mkdtemp(dir=workspace.folder))
    of_trace = () if is_ended else _pack_traces(workspace, place.output, packed, until.halve())
    kept = keep_files(
        workspace,
        place.output,
        packed,
        place.root,
        into=kept_in,
        until=until,
        names=names,
        failed=failed,
    )
    notes = (*broken, *_describe_packed_trace(kept, of_trace))
    if kept.out_of_time:
        notes += (_NO_TIME.format(_count_files(kept.out_of_time)),)
    elif not is_ended:
        notes += _describe_missing_kinds(kept.artifacts, notes, records_video=records_video)
    return CollectedOutputs(degraded_because=degraded, artifacts=kept.artifacts, notes=notes)


def _describe_packed_trace(kept: KeptFiles, told: tuple[str, ...]) -> tuple[str, ...]:
    """Describe a trace that was packed from its parts, or why there is none. Pure."""
    if not told or any(one.kind == "trace" for one in kept.artifacts):
        return told
    return (_NO_TRACE,)


def _count_files(files: int) -> str:
    return "1 is" if files == 1 else f"{files} are"


def _describe_missing_kinds(
    artifacts: tuple[Artifact, ...], notes: tuple[str, ...], *, records_video: bool
) -> tuple[str, ...]:
    """Describe the kinds of files that a sudden end cost, unless a note already does. Pure."""
    kept = {one.kind for one in artifacts}
    due = ("trace", "video") if records_video else ("trace",)
    lost = [kind for kind in due if kind not in kept and not any(kind in one for one in notes)]
    return (_NONE.format(" and no ".join(lost)),) if lost else ()


def _pack_traces(
    workspace: Workspace, output: Path, into: Path, until: Deadline
) -> tuple[str, ...]:
    """Pack the parts of unfinished traces into an archive, and describe it."""
    packed = pack_partial_traces(
        workspace, list_trace_folders(output), into / "trace.zip", until=until
    )
    if packed is None:
        return ()
    if not packed.left_off:
        return (_UNFINISHED,)
    return (_UNFINISHED, _SHOWS_LESS.format(packed.left_off))


def _remove_broken(
    workspace: Workspace, output: Path, until: Deadline, *, is_ended: bool
) -> tuple[str, ...]:
    """Remove files that nobody could open, and name them, until the deadline."""
    if not workspace.contains(output):
        return ()
    notes = []
    for path in itertools.takewhile(lambda _: not until.has_passed, list(find_files(output))):
        is_broken = path.suffix.lower() == ".zip" and not is_ended and not is_whole(path)
        if is_broken or path.stat().st_size == 0:
            path.unlink()
            what = "video" if path.suffix.lower() == ".webm" else "file"
            notes.append(
                f"The {what} {choose_final_name(path)} is not kept: nothing in it can be shown, "
                "since the script's process could not bring it to its end."
            )
    return tuple(notes)
