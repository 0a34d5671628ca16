"""Reads the members of archives, by name and content."""

import io
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, Final, NamedTuple

from redaction.clean import MemberKind, UnscannableError

_PIECE_BYTES: Final = 256 * 1024
_DESCRIPTOR_BYTES: Final = 24
"""The longest data descriptor (sizes and checksum) between two members."""
_LENGTHS_AT: Final = 26
"""The offset of the name's length in a local header."""
_MEMBER: Final = b"PK\x03\x04"
_LISTED: Final = b"PK\x01\x02"
_END: Final = struct.Struct("<4s8xI6x")
_END_MARK: Final = b"PK\x05\x06"
_ZIP64_END: Final = struct.Struct("<4s36xQ8x")
_ZIP64_END_MARK: Final = b"PK\x06\x06"
_ZIP64_LOCATOR_BYTES: Final = 20
_END_WITHIN_BYTES: Final = _END.size + 0xFFFF
"""How far from the file's end the end record may begin: a comment follows it."""
_ENCRYPTED: Final = 1
_FAULTS: Final = (
    zipfile.BadZipFile, tarfile.TarError, NotImplementedError, EOFError, ValueError, OSError,
    RuntimeError, struct.error,
)  # fmt: skip
_KINDS: Final = (
    ("resources/src@", MemberKind.SOURCE), ("src/", MemberKind.SOURCE),
    ("screencast/", MemberKind.SCREEN_PICTURE), ("attachments/", MemberKind.ATTACHMENT),
    ("resources/", MemberKind.RESOURCE),
)  # fmt: skip
_ENDINGS: Final = (
    (".network", MemberKind.NETWORK_LOG), (".trace", MemberKind.TRACE_EVENT),
    (".stacks", MemberKind.TRACE_EVENT),
)  # fmt: skip


class Member(NamedTuple):
    """A member of an archive."""

    name: bytes
    """The member's name with its comment and other texts of its header."""
    kind: MemberKind
    place: str
    content: Iterator[bytes]
    path: str = ""
    """The member's name alone; empty in tar archives."""


def is_zip(file: IO[bytes]) -> bool:
    """Whether programs would open it as a zip archive, whatever it begins with."""
    return zipfile.is_zipfile(file)


def begins_as_zip(file: IO[bytes]) -> bool:
    """Whether it begins with its first member."""
    file.seek(0)
    return file.read(4) == _MEMBER


def read_members(file: IO[bytes], *, most: int) -> Iterator[Member]:
    """Yield an archive's members; read each before the next.

    Raises:
        UnscannableError: it is broken or encrypted, or has too many members.
    """
    try:
        yield from _read_zip(file, most) if is_zip(file) else _read_tar(file, most)
    except _FAULTS as problem:
        raise UnscannableError("an archive in it is broken or encrypted") from problem


def _read_zip(file: IO[bytes], most: int) -> Iterator[Member]:
    if _marks_in(file) > most:
        raise UnscannableError(f"an archive in it has more than {most} members")
    with zipfile.ZipFile(file) as archive:
        _check_that_nothing_follows(file, archive.comment)
        known = archive.infolist()
        _check_that_nothing_lies_between(file, known, archive.start_dir)
        for number, one in enumerate(known, start=1):
            name = b"\n".join((one.filename.encode("utf-8", "surrogateescape"), one.comment))
            place = f"member {number} of {len(known)}"
            if one.flag_bits & _ENCRYPTED:
                raise UnscannableError(f"{place} is encrypted")
            with archive.open(one) as content:
                yield Member(name, _kind(one.filename), place, _pieces(content), one.orig_filename)


def _marks_in(file: IO[bytes]) -> int:
    """Count the marks of directory entries from where the directory may begin.

    End records may lie about the directory, which zipfile reads into memory as a whole.
    """
    file.seek(_list_begins(file))
    marks, before = 0, b""
    while piece := file.read(_PIECE_BYTES):
        marks += (before + piece).count(_LISTED)
        before = piece[-len(_LISTED) + 1 :]
    return marks


def _list_begins(file: IO[bytes]) -> int:
    """The first place where the directory may begin: end records may name two sizes."""
    size = file.seek(0, io.SEEK_END)
    tail_at = max(0, size - _END_WITHIN_BYTES)
    file.seek(tail_at)
    tail = file.read()
    ends = {tail.rfind(_END_MARK), len(tail) - _END.size}
    begins = (
        tail_at + at - stated
        for at in ends
        if at >= 0 and tail.startswith(_END_MARK, at) and len(tail) - at >= _END.size
        for stated in _directory_sizes(file, tail_at + at)
    )
    return max(0, min(begins, default=0))


def _directory_sizes(file: IO[bytes], end_at: int) -> Iterator[int]:
    """The directory's size, with the ZIP64 records after it, by each kind of end record."""
    file.seek(end_at)
    _, stated = _END.unpack(file.read(_END.size))
    yield int(stated)
    behind = _ZIP64_END.size + _ZIP64_LOCATOR_BYTES
    file.seek(max(0, end_at - behind))
    mark, wide = _ZIP64_END.unpack(file.read(_ZIP64_END.size).ljust(_ZIP64_END.size))
    if mark == _ZIP64_END_MARK:
        yield behind + int(wide)


def _check_that_nothing_lies_between(
    file: IO[bytes], known: list[zipfile.ZipInfo], end: int
) -> None:
    """Check that no member is missing in the directory, which other programs could read."""
    ordered = sorted(known, key=lambda one: one.header_offset)
    spans = [(one.header_offset, _end_of(file, one)) for one in ordered]
    if begins_as_zip(file):
        spans.insert(0, (0, 0))  # it begins with one, and with no program that unpacks it
    for (_, left), (right, _) in pairwise([*spans, (end, end)]):
        if not 0 <= right - left <= _DESCRIPTOR_BYTES:
            raise UnscannableError("an archive in it holds more than its directory lists")


def _check_that_nothing_follows(file: IO[bytes], comment: bytes) -> None:
    """Check that nothing but the comment follows the end record."""
    file.seek(-_END.size - len(comment), io.SEEK_END)
    if file.read(len(_END_MARK)) != _END_MARK:
        raise UnscannableError("an archive in it continues after its end")


def _check_that_zeros_follow(file: IO[bytes], at: int) -> None:
    file.seek(at)
    while piece := file.read(_PIECE_BYTES):
        if piece.strip(b"\0"):
            raise UnscannableError("an archive in it continues after its end")


def _end_of(file: IO[bytes], one: zipfile.ZipInfo) -> int:
    file.seek(one.header_offset + _LENGTHS_AT)
    name, extra = struct.unpack("<HH", file.read(4))
    return one.header_offset + _LENGTHS_AT + 4 + int(name) + int(extra) + one.compress_size


def _read_tar(file: IO[bytes], most: int) -> Iterator[Member]:
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for number, one in enumerate(archive, start=1):
            if number > most:
                raise UnscannableError(f"an archive in it has more than {most} members")
            texts = (one.name, one.linkname, one.uname, one.gname, *one.pax_headers.values())
            name = "\n".join(texts).encode("utf-8", "surrogateescape")
            decompressor = archive.extractfile(one) if one.isfile() else None
            content = iter(()) if decompressor is None else _pieces(decompressor)
            yield Member(name, MemberKind.ARCHIVE_MEMBER, f"member {number}", content)
        _check_that_zeros_follow(file, archive.offset)


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    while piece := content.read(_PIECE_BYTES):
        yield piece


def _kind(name: str) -> MemberKind:
    ends = (kind for ending, kind in _ENDINGS if name.endswith(ending))
    starts = (kind for start, kind in _KINDS if name.startswith(start))
    return next(ends, next(starts, MemberKind.ARCHIVE_MEMBER))
