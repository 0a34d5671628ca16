"""Reads archives that a run's process was writing when it was ended: it may have meant them ill."""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from runners.kit.isolation.workspace import open_plain

STEPS: Final = "test.trace"
"""The steps of a test itself, which Playwright keeps in memory until it packs them."""
_END: Final = struct.Struct("<4s6xHII")
_END_BYTES: Final = 22
_END_MARK: Final = b"PK\x05\x06"
_WIDE_PLACE_BYTES: Final = 20
_WIDE_PLACE_MARK: Final = b"PK\x06\x07"
"""Before the end of an archive, where others than its own figures count: Playwright's has none."""
_LONGEST_COMMENT: Final = 0xFFFF
_MOST_DIRECTORY_BYTES: Final = 4 * 1024**2
"""The list of members is held in memory; Playwright's take some 100 bytes each."""
_MOST_MEMBERS: Final = 1_000
_PACKINGS: Final = frozenset({ZIP_STORED, ZIP_DEFLATED})
"""Playwright's. Of others `zipfile` unpacks all that it has read at once: it may be a gigabyte."""
_UNREADABLE: Final = (OSError, BadZipFile, RuntimeError, NotImplementedError, zlib.error, EOFError)
"""What `zipfile` says of archives that are broken, encrypted or packed in an unusual way."""


def is_whole(archive: Path) -> bool:
    """Whether an archive was written to its end; it blocks."""
    try:
        with open_plain(archive) as file:
            return bool(_opened(file).infolist())
    except _UNREADABLE:
        return False


def steps_in(archive: Path, *, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """A test's steps with their sources and attachments, where this archive has them; it blocks.

    `most_bytes`: members that are longer are passed over.
    """
    try:
        with open_plain(archive) as file:
            if os.fstat(file.fileno()).st_nlink == 1:
                yield from _members(_opened(file), most_bytes)
    except _UNREADABLE:
        return


def _members(opened: ZipFile, most_bytes: int) -> Iterator[tuple[str, bytes]]:
    if STEPS not in opened.NameToInfo:
        return
    for listed in opened.infolist()[:_MOST_MEMBERS]:
        if _is_ours(listed) and listed.file_size <= most_bytes:
            # No more is unpacked than is asked for: the list may tell of less than there is.
            with opened.open(listed) as member:
                yield listed.filename, member.read(listed.file_size)


def _is_ours(listed: ZipInfo) -> bool:
    """Whether Playwright calls and packs a member so."""
    if listed.compress_type not in _PACKINGS:
        return False
    folder, _, name = listed.filename.rpartition("/")
    known = listed.filename == STEPS or folder in {"resources", "attachments", "src"}
    return known and name not in {"", ".", ".."} and "\\" not in name


def _opened(file: BinaryIO) -> ZipFile:
    """The archive, once its list is known to be short enough to be read.

    Raises:
        BadZipFile: it is not, or there is none.
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
