"""Packs the parts of a trace that an interrupted run left into an archive.

Playwright writes the events of a trace and their resources as they come, and packs them at the end.
Where its process did not get that far, the parts are still there.
"""

import itertools
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import msgspec

from contract.agent_api import MAX_ARTIFACT_BYTES
from sandbox.program import Deadline
from sandbox.workspace import Workspace, open_regular_file

PLAIN_TRACES: Final = ".traces"
"""The folder in which plain scripts have their traces, within the output folder."""
_ARTIFACTS: Final = ".playwright-artifacts-*"
_TEST_TRACES: Final = f"{_ARTIFACTS}/traces"
_SHOWN: Final = ("resources", "screencast")
_EVENTS: Final = frozenset({".trace", ".network"})
_MOST_FILES: Final = 5_000
_MOST_FOLDERS: Final = 5_000
_MOST_PARTS: Final = 100
_MOST_STEP_BYTES: Final = 20 * 1024**2
_QUICKLY: Final = 1
"""The compression level, as there is little time."""
_ENTRY_BYTES: Final = 200
"""More than the size of an archive's records about one entry, without its names."""


class PackedTrace(msgspec.Struct, frozen=True):
    """The result of packing the parts of traces."""

    left_off: int
    """The number of parts for which there was no time or no room."""


def is_trace_folder(folder: Path) -> bool:
    """Whether a folder holds parts of traces, which are not kept by themselves. Pure."""
    return folder.name == PLAIN_TRACES or folder.match(_TEST_TRACES)


def is_partial_archive(path: Path) -> bool:
    """Whether a file is an archive that Playwright would have merged into a test's trace. Pure."""
    return path.suffix == ".zip" and is_unfinished(path)


def is_unfinished(path: Path) -> bool:
    """Whether a file is in the folder of those that Playwright is still writing. Pure."""
    return path.parent.match(_ARTIFACTS)


def choose_final_name(path: Path) -> str:
    """Choose the name that Playwright would have given a file in the end. Pure."""
    names = {".webm": "video.webm", ".png": "screenshot.png"}
    return names.get(path.suffix, path.name) if is_unfinished(path) else path.name


def list_trace_folders(output: Path) -> list[Path]:
    """List the folders with parts of traces within an output folder; it blocks."""
    return [output / PLAIN_TRACES, *sorted(output.glob(_TEST_TRACES))]


def find_trace_folders(folder: Path) -> Iterator[Path]:
    """Find the folders with parts of traces anywhere below a suite's folder; it blocks."""
    for inner, names, _ in itertools.islice(os.walk(folder), _MOST_FOLDERS):
        names[:] = [name for name in names if name not in {"node_modules", ".git"}]
        if any(fnmatch(name, _ARTIFACTS) for name in names):
            yield from sorted(Path(inner).glob(_TEST_TRACES))


def pack_partial_traces(
    workspace: Workspace, places: Iterable[Path], target: Path, *, until: Deadline
) -> PackedTrace | None:
    """Pack the parts of unfinished traces into one archive; it blocks. None: there are no parts.

    Events come first, then as many resources as there is time for, which are stored uncompressed:
    nearly all large ones are compressed already. The archive of a test adds its steps. If nothing
    fits, no archive is left.

    Raises:
        OSError: the disk is at fault.
    """
    found = [
        place for place in places if _is_inside(workspace, place) and any(place.glob("*.trace"))
    ]
    if not found:
        return None
    with ZipFile(target, "x", ZIP_DEFLATED, compresslevel=_QUICKLY) as archive:
        packed = PackedTrace(_fill(archive, found, until))
        is_empty = not archive.namelist()
    if is_empty:  # nobody could open it
        target.unlink()
    return packed


def _is_inside(workspace: Workspace, place: Path) -> bool:
    """Whether a folder and its subfolders with resources are the run's own."""
    return all(map(workspace.contains, (place, *(place / kind for kind in _SHOWN))))


def _fill(archive: ZipFile, places: Iterable[Path], until: Deadline) -> int:
    """Write the parts that fit, and count those that do not."""
    left_bytes, left_off = MAX_ARTIFACT_BYTES, 0
    for name, path in _list_members(places):
        if name in archive.NameToInfo:
            continue
        room_bytes = _subtract_entry(left_bytes, name)
        if until.has_passed or _read_size_bytes(path) > room_bytes:
            left_off += 1
            continue
        content = _read_content(path, most_bytes=room_bytes)
        if content is not None:
            left_bytes = room_bytes - len(content)
            _write_member(archive, name, content)
    _add_steps(archive, places, left_bytes, until)
    return left_off


def _add_steps(archive: ZipFile, places: Iterable[Path], left_bytes: int, until: Deadline) -> None:
    """Add the steps of a test whose archive was written before merging was interrupted."""
    parts = (
        part for place in places if place.match(_TEST_TRACES) for part in _list_archives(place)
    )
    most_bytes = min(left_bytes, _MOST_STEP_BYTES)
    in_time = itertools.takewhile(lambda _: not until.has_passed, parts)
    for name, content in itertools.chain.from_iterable(
        read_steps(part, most_bytes=most_bytes) for part in in_time
    ):
        left_bytes = _subtract_entry(left_bytes, name) - len(content)
        if until.has_passed or left_bytes < 0:
            return
        if name not in archive.NameToInfo:
            _write_member(archive, name, content)


def _list_archives(place: Path) -> Iterator[Path]:
    return itertools.islice(place.parent.glob("*.zip"), _MOST_PARTS)


def _subtract_entry(left_bytes: int, name: str) -> int:
    return left_bytes - _ENTRY_BYTES - 2 * len(name.encode())


def _write_member(archive: ZipFile, name: str, content: bytes) -> None:
    if Path(name).suffix in _EVENTS:
        archive.writestr(name, _drop_cut_line(content))
    else:
        archive.writestr(name, content, ZIP_STORED)


def _read_size_bytes(path: Path) -> int:
    """Read the size of a file; 0 if there is none."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _list_members(places: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """List events first, by number, then resources, each with its name in the archive."""
    number = 0
    for place in places:
        for events in sorted(place.glob("*.trace")):
            yield f"{number}-trace.trace", events
            if (network := events.with_suffix(".network")).is_file():
                yield f"{number}-trace.network", network
            number += 1
    shown = (path for place in places for kind in _SHOWN for path in (place / kind).glob("*"))
    for path in itertools.islice(shown, _MOST_FILES):
        yield f"{path.parent.name}/{path.name}", path


def _drop_cut_line(content: bytes) -> bytes:
    """Drop a last line that was cut off while it was being written."""
    return content[: content.rfind(b"\n") + 1]


def _read_content(path: Path, *, most_bytes: int) -> bytes | None:
    """Read a file. None: it is no regular file of the run's own, or too large."""
    try:
        with open_regular_file(path) as file:
            is_ours = os.fstat(file.fileno()).st_nlink == 1
            content = file.read(most_bytes + 1) if is_ours else None
    except OSError:
        return None
    return content if content is not None and len(content) <= most_bytes else None


STEPS: Final = "test.trace"
"""The member with a test's steps, which Playwright keeps in memory until it packs them."""
_END: Final = struct.Struct("<4s6xHII")
_END_BYTES: Final = 22
_END_MARK: Final = b"PK\x05\x06"
_WIDE_PLACE_BYTES: Final = 20
_WIDE_PLACE_MARK: Final = b"PK\x06\x07"
"""Marks a ZIP64 archive; Playwright writes none."""
_LONGEST_COMMENT: Final = 0xFFFF
_MOST_DIRECTORY_BYTES: Final = 4 * 1024**2
"""The central directory is held in memory; an entry of Playwright's takes some 100 bytes."""
_MOST_MEMBERS: Final = 1_000
_PACKINGS: Final = frozenset({ZIP_STORED, ZIP_DEFLATED})
"""Playwright's methods; with others, `zipfile` might decompress a gigabyte at once."""
_UNREADABLE: Final = (OSError, BadZipFile, RuntimeError, NotImplementedError, zlib.error, EOFError)
"""What `zipfile` raises for archives that are damaged, encrypted or unusually compressed."""


def is_whole(archive: Path) -> bool:
    """Whether an archive is complete; it blocks."""
    try:
        with open_regular_file(archive) as file:
            return bool(_open_archive(file).infolist())
    except _UNREADABLE:
        return False


def read_steps(archive: Path, *, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Read a test's steps with their sources and attachments from an archive; it blocks.

    `most_bytes`: larger members are skipped.
    """
    try:
        with open_regular_file(archive) as file:
            if os.fstat(file.fileno()).st_nlink == 1:
                yield from _read_members(_open_archive(file), most_bytes)
    except _UNREADABLE:
        return


def _read_members(opened: ZipFile, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    if STEPS not in opened.NameToInfo:
        return
    for listed in opened.infolist()[:_MOST_MEMBERS]:
        if _is_playwright_member(listed) and listed.file_size <= most_bytes:
            # No more is decompressed than is listed, as the listed size may be too small.
            with opened.open(listed) as member:
                yield listed.filename, member.read(listed.file_size)


def _is_playwright_member(listed: ZipInfo) -> bool:
    """Whether a member has a name and a compression method that Playwright uses."""
    if listed.compress_type not in _PACKINGS:
        return False
    folder, _, name = listed.filename.rpartition("/")
    known = listed.filename == STEPS or folder in {"resources", "attachments", "src"}
    return known and name not in {"", ".", ".."} and "\\" not in name


def _open_archive(file: BinaryIO) -> ZipFile:
    """Open an archive once its central directory is known to be small enough.

    Raises:
        BadZipFile: the directory is too large, or there is none.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _WIDE_PLACE_BYTES - _END_BYTES - _LONGEST_COMMENT))
    tail = file.read()
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise BadZipFile
    _, _, directory_bytes, _ = _END.unpack_from(tail, at)
    is_wide = tail[max(0, at - _WIDE_PLACE_BYTES) : at].startswith(_WIDE_PLACE_MARK)
    if is_wide or directory_bytes > _MOST_DIRECTORY_BYTES:
        raise BadZipFile
    return ZipFile(file)
