"""The snapshots of a browser check: put where Playwright compares with them, or written anew."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from contract.checks import BrowserSpec, MultiStepSpec
from contract.evidence import SnapshotSeen
from contract.result import Artifact
from contract.scripts import MAX_SNAPSHOTS
from runners.scripting.harness import Harness
from runners.scripting.node.files import resolve_in_folder
from sandbox.workspace import Workspace, open_regular_file

_FOLDER: Final = re.compile(r".-snapshots\Z")
"""The folders that Playwright makes beside a script."""
_SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,10}\Z")
_MOST_FOLDERS: Final = 10_000
_MOST_READ: Final = 2 * MAX_SNAPSHOTS
"""How many files are read: those that were placed, and as many new ones."""
_MAX_BYTES: Final = 16 * 1024 * 1024
_PICTURE: Final = ".png"


class PlacedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot that is on this machine."""

    path: str
    """Relative to the folder of the run."""
    sha256: str
    source: Path
    """The file with its bytes, which belongs to whoever fetched it."""


class NewSnapshots(msgspec.Struct, frozen=True):
    """What a run wrote anew."""

    seen: tuple[SnapshotSeen, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


async def fetch_snapshots(
    spec: BrowserSpec | MultiStepSpec, harness: Harness
) -> tuple[PlacedSnapshot, ...]:
    """Fetch what a script compares with; the digest of each is verified.

    Raises:
        BundleError: one is not available now.
        MissingRuntimeError: there is no source of them.
        CheckFailed: of kind SCRIPT: a path leaves the folder.
    """
    if not isinstance(spec, BrowserSpec) or not spec.snapshots:
        return ()
    source = harness.require_suites().bundles
    return tuple(
        [
            PlacedSnapshot(
                str(resolve_in_folder(one.path)), one.sha256, await source.fetch(one.sha256)
            )
            for one in spec.snapshots
        ]
    )


def place_snapshots(root: Path, snapshots: tuple[PlacedSnapshot, ...]) -> None:
    """Copy snapshots into the folder of a run; it blocks.

    Raises:
        OSError: they cannot be written.
    """
    for one in snapshots:
        target = root / one.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one.source, target)


def take_snapshots(
    workspace: Workspace,
    root: Path,
    placed: tuple[PlacedSnapshot, ...],
    *,
    into: Workspace,
    are_updated: bool,
) -> NewSnapshots:
    """Take all snapshots out of the folder of a run that has ended; it blocks.

    `are_updated`: those that are new or differ become artifacts in `into`.

    Raises:
        OSError: the disk is at fault.
    """
    if not workspace.contains(root):
        return NewSnapshots()
    known = {one.path: one.sha256 for one in placed}
    found = sorted({*known, *_list_written(root)})
    seen: list[SnapshotSeen] = []
    artifacts: list[Artifact] = []
    read = 0
    for path in found:
        if not workspace.contains(root / path):
            continue  # the script has put a link on its way, perhaps out of the folder
        # A script can leave any number of large files, which take time to read and no disk.
        body = _read(root / path) if are_updated and read < _MOST_READ else None
        read += body is not None
        (root / path).unlink(missing_ok=True)
        is_new = body is not None and hashlib.sha256(body).hexdigest() != known.get(path)
        if body is None or not is_new or len(seen) == MAX_SNAPSHOTS:
            continue
        suffix = _SUFFIX.search(path)
        name = f"snapshot-{len(seen) + 1}{suffix.group() if suffix else ''}"
        (into.folder / name).write_bytes(body)
        is_picture = name.endswith(_PICTURE)
        artifacts.append(into.artifact(name, "screenshot" if is_picture else "file"))
        seen.append(SnapshotSeen(path=path, artifact=name))
    return NewSnapshots(tuple(seen), tuple(artifacts))


def _list_written(root: Path) -> Iterator[str]:
    """List the files in folders of snapshots, whoever wrote them."""
    for folder, folders, files in islice(os.walk(root), _MOST_FOLDERS):
        folders[:] = [one for one in folders if one != "node_modules"]
        within = Path(folder).relative_to(root)
        if any(_FOLDER.search(part) for part in within.parts):
            yield from (str(within / one) for one in files)


def _read(path: Path) -> bytes | None:
    """Read a file that a script may have replaced. None: it is no regular file, or too large."""
    try:
        with open_regular_file(path) as file:
            is_own = os.fstat(file.fileno()).st_nlink == 1
            body = file.read(_MAX_BYTES + 1) if is_own else b""
    except OSError:
        return None
    return body if 0 < len(body) <= _MAX_BYTES else None
