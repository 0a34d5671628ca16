"""Reads and writes the ZIP format: central directory, local headers, members."""

import errno
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, cast

from isal import isal_zlib

from redaction.archives.limits import Bounds, Budget, TooMuchError, UnsearchableFileError

PIECE_BYTES: Final = 1 << 14
_OUTPUT_BYTES: Final = 1 << 18
"""The fastest sizes for decompression: the working set stays in the CPU's caches."""
_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_LOCAL_MARK: Final = b"PK\x03\x04"
_END_RECORD: Final = struct.Struct("<4sHHHHIIH")
_END_MARK: Final = b"PK\x05\x06"
_END_SEARCH_BYTES: Final = _END_RECORD.size + 0xFFFF
_ZIP64_END: Final = struct.Struct("<4sQHHIIQQQQ")
_ZIP64_LOCATOR: Final = struct.Struct("<4sIQI")
_ZIP64_LOCATOR_MARK: Final = b"PK\x06\x07"
_IN_ZIP64: Final = 0xFFFFFFFF
"""Marks a field whose value is in the ZIP64 record."""
_ENTRY_MARK: Final = b"PK\x01\x02"
_DIRECTORY_PIECE_BYTES: Final = 1 << 18
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_BROKEN: Final = (cast("type[Exception]", isal_zlib.error), ValueError)
_NOT_AN_ARCHIVE: Final = (
    zipfile.BadZipFile,
    NotImplementedError,
    struct.error,
    ValueError,
    OverflowError,
)
STORED: Final = zipfile.ZIP_STORED
DEFLATED: Final = zipfile.ZIP_DEFLATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member, as the central directory lists it."""

    name: str
    method: int
    crc: int
    packed_bytes: int
    size_bytes: int
    content_at: int
    """The offset of its compressed bytes in the file."""
    time: tuple[int, int, int, int, int, int]
    attributes: int
    comment: bytes

    @property
    def is_folder(self) -> bool:
        """Whether it is an empty entry for a folder."""
        return self.name.endswith("/") and self.size_bytes == 0


def read_members(file: BinaryIO, bounds: Bounds) -> tuple[list[Member], bytes]:
    """Read the members, in the order of the file, and the archive's comment.

    Raises:
        UnsearchableFileError: it is broken, or made to mislead.
        OSError: the disk is at fault.
    """
    try:
        _check_size(file, bounds)
        with zipfile.ZipFile(file) as archive:
            members = [_member(file, one) for one in archive.infolist()]
            comment = archive.comment
    except _NOT_AN_ARCHIVE as problem:
        raise UnsearchableFileError("it is a broken zip archive") from problem
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # that is of a place before the file's beginning
            raise
        raise UnsearchableFileError("it is a broken zip archive") from problem
    members.sort(key=lambda member: member.content_at)
    _check(members, bounds)
    return members, comment


def read_compressed(file: BinaryIO, member: Member) -> Iterator[bytes]:
    """Read a member's compressed bytes.

    Raises:
        UnsearchableFileError: there are fewer of them than the archive says.
    """
    left, at = member.packed_bytes, member.content_at
    while left:
        file.seek(at)
        piece = file.read(min(left, PIECE_BYTES))
        if not piece:
            raise UnsearchableFileError("it is a broken zip archive")
        left, at = left - len(piece), at + len(piece)
        yield piece


def decompress_member(file: BinaryIO, member: Member, budget: Budget) -> Iterator[bytes]:
    """Decompress a member.

    Raises:
        UnsearchableFileError: that is too long, or not what the archive says.
    """
    budget.check_ratio(member.packed_bytes, member.size_bytes)
    crc = size = 0
    raw = read_compressed(file, member)
    for piece in raw if member.method == STORED else _inflate(raw):
        size += len(piece)
        if size > member.size_bytes:
            break
        crc = isal_zlib.crc32(piece, crc)
        yield piece
    if size != member.size_bytes or crc != member.crc:
        raise UnsearchableFileError("it holds a zip member that is not what the archive says")


def read_start(file: BinaryIO, member: Member, size: int) -> bytes:
    """Read the first bytes of a member's content; empty if it cannot be decompressed."""
    raw = next(read_compressed(file, member), b"")
    if member.method == STORED:
        return raw[:size]
    try:
        return isal_zlib.decompressobj(-15).decompress(raw, size)
    except _BROKEN:
        return b""


def _inflate(pieces: Iterable[bytes]) -> Iterator[bytes]:
    inflater = isal_zlib.decompressobj(-15)
    try:
        for piece in pieces:
            left = piece
            while left:
                if inflater.eof:
                    raise UnsearchableFileError("it holds a zip member with more than its content")
                yield inflater.decompress(left, _OUTPUT_BYTES)
                left = inflater.unconsumed_tail or inflater.unused_data
        while not inflater.eof and (rest := inflater.decompress(b"", _OUTPUT_BYTES)):
            yield rest
    except _BROKEN as problem:
        raise UnsearchableFileError("it holds a broken zip member") from problem
    if not inflater.eof:
        raise UnsearchableFileError("it holds a broken zip member")


def _check_size(file: BinaryIO, bounds: Bounds) -> None:
    """Check the central directory's size before it is read into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SEARCH_BYTES))
    tail = file.read()
    at = tail.rfind(_END_MARK)
    if at < 0:
        raise zipfile.BadZipFile
    end_at = max(0, size - _END_SEARCH_BYTES) + at
    stated = _END_RECORD.unpack_from(tail, at)[5]
    directory = max(
        (*_zip64_sizes(file, end_at), *([] if stated == _IN_ZIP64 else [stated])), default=None
    )
    if directory is None:
        raise zipfile.BadZipFile
    begins = end_at - _ZIP64_END.size - _ZIP64_LOCATOR.size - directory
    is_long = directory > bounds.directory_bytes
    if is_long or _count_entries(file, begins, end_at) > bounds.members:
        raise TooMuchError(f"it is an archive of over {bounds.members} members")


def _zip64_sizes(file: BinaryIO, end_at: int) -> Iterator[int]:
    """The directory's size by ZIP64 records, which readers prefer to the usual one."""
    place_at = end_at - _ZIP64_LOCATOR.size
    if place_at < 0:
        return
    file.seek(place_at)
    mark, _, stated_at, _ = _ZIP64_LOCATOR.unpack(file.read(_ZIP64_LOCATOR.size))
    if mark != _ZIP64_LOCATOR_MARK:
        return
    # Some readers go where they are told, others look right before.
    for at in {stated_at, place_at - _ZIP64_END.size}:
        if 0 <= at <= place_at - _ZIP64_END.size:
            file.seek(at)
            yield _ZIP64_END.unpack(file.read(_ZIP64_END.size))[8]


def _count_entries(file: BinaryIO, begins: int, ends: int) -> int:
    """Count the entries of the directory, whatever its record says."""
    file.seek(max(0, begins))
    count, left, end = 0, ends - max(0, begins), b""
    while left > 0 and (piece := file.read(min(left, _DIRECTORY_PIECE_BYTES))):
        count += (end + piece).count(_ENTRY_MARK)
        left, end = left - len(piece), piece[1 - len(_ENTRY_MARK) :]
    return count


def _member(file: BinaryIO, listed: zipfile.ZipInfo) -> Member:
    if listed.flag_bits & _ENCRYPTED:
        raise UnsearchableFileError("it holds an encrypted zip member")
    if listed.compress_type not in (STORED, DEFLATED):
        raise UnsearchableFileError("it holds a zip member that is compressed in an unusual way")
    file.seek(listed.header_offset)
    fields = _LOCAL.unpack(file.read(_LOCAL.size))
    if fields[0] != _LOCAL_MARK:
        raise zipfile.BadZipFile
    return Member(
        name=listed.orig_filename,
        method=listed.compress_type,
        crc=listed.CRC,
        packed_bytes=listed.compress_size,
        size_bytes=listed.file_size,
        content_at=listed.header_offset + _LOCAL.size + fields[9] + fields[10],
        time=listed.date_time,
        attributes=listed.external_attr,
        comment=listed.comment,
    )


def _check(members: list[Member], bounds: Bounds) -> None:
    if len(members) > bounds.members:
        raise TooMuchError(f"it is an archive of over {bounds.members} members")
    names = Counter(member.name for member in members)
    if len(names) < len(members):
        raise UnsearchableFileError("it holds two zip members of the same name")
    if any(map(_leads_elsewhere, names)):
        raise UnsearchableFileError("it holds a zip member whose name leads out of the archive")
    for one, following in pairwise(members):
        if one.content_at + one.packed_bytes > following.content_at:
            raise UnsearchableFileError("it holds overlapping zip members")


def _leads_elsewhere(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return not name or "\0" in name or path.is_absolute() or ".." in path.parts or ":" in name[1:2]


_ENTRY: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_VERSION: Final = 20
_UNIX: Final = 3 << 8
_UTF8_NAME: Final = 0x800
_MOST_MEMBERS: Final = 0xFFFF
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class CompressedContent:
    """A compressed content."""

    content: bytes
    crc: int
    """CRC-32 of the decompressed content."""
    size_bytes: int


def compress_content(content: bytes) -> CompressedContent:
    """Compress a content as members are."""
    packer = _packer()
    packed = packer.compress(content) + packer.flush()
    return CompressedContent(packed, isal_zlib.crc32(content), len(content))


@dataclass(frozen=True, slots=True)
class _Written:
    member: Member
    at: int


class ZipWriter:
    """Writes members to a file, and the central directory at its end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written: list[_Written] = []
        self.names: set[str] = set()

    def add_compressed(self, member: Member, pieces: Iterable[bytes]) -> None:
        """Write a member whose bytes are compressed as it says."""
        at = self._begin(member)
        for piece in pieces:
            self._file.write(piece)
        self._end(member, at)

    def add_content(self, member: Member, held: CompressedContent) -> None:
        """Write a member with a content compressed here; its own sizes are ignored."""
        described = replace(
            member,
            method=DEFLATED,
            crc=held.crc,
            size_bytes=held.size_bytes,
            packed_bytes=len(held.content),
        )
        self.add_compressed(described, (held.content,))

    def add(self, member: Member, pieces: Iterable[bytes]) -> None:
        """Compress and write a member; its own sizes are ignored."""
        at = self._begin(member)
        packer = _packer()
        crc = size = packed = 0
        for piece in pieces:
            crc, size = isal_zlib.crc32(piece, crc), size + len(piece)
            packed += self._file.write(packer.compress(piece))
        packed += self._file.write(packer.flush())
        described = replace(member, method=DEFLATED, crc=crc, size_bytes=size, packed_bytes=packed)
        self._end(described, at)

    def rename_last(self, name: str) -> None:
        """Rename the last member to a name of the same length; drop it if the name is taken."""
        last = self._written.pop()
        self.names.discard(last.member.name)
        if name in self.names:
            self._file.seek(last.at)
            self._file.truncate()
            return
        self._end(replace(last.member, name=name), last.at)

    def close(self, comment: bytes) -> None:
        """Write the central directory; the file stays open."""
        begins = self._file.tell()
        for one in self._written:
            self._file.write(_directory_entry(one))
        size = self._file.tell() - begins
        count = len(self._written)
        if count > _MOST_MEMBERS - 1:
            self._write_zip64_end(count, size, begins)
        few = min(count, _MOST_MEMBERS)
        self._file.write(_END_RECORD.pack(b"PK\5\6", 0, 0, few, few, size, begins, len(comment)))
        self._file.write(comment)

    def _begin(self, member: Member) -> int:
        at = self._file.tell()
        self._file.write(_local_header(member))
        return at

    def _end(self, member: Member, at: int) -> None:
        """Write the local header again, now with sizes and checksum."""
        end = self._file.seek(0, 2)
        self._file.seek(at)
        self._file.write(_local_header(member))
        self._file.seek(end)
        self._written.append(_Written(member, at))
        self.names.add(member.name)

    def _write_zip64_end(self, count: int, size: int, begins: int) -> None:
        at = self._file.tell()
        zip64 = (b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, begins)
        self._file.write(_ZIP64_END.pack(*zip64) + _ZIP64_LOCATOR.pack(b"PK\6\7", 0, at, 1))


def _packer() -> Any:
    return isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)


def _local_header(member: Member) -> bytes:
    name = member.name.encode("utf-8", "surrogateescape")
    time, date = _dos_time(member)
    head = (b"PK\3\4", _VERSION, _UTF8_NAME, member.method, time, date, member.crc)
    return _LOCAL.pack(*head, member.packed_bytes, member.size_bytes, len(name), 0) + name


def _directory_entry(one: _Written) -> bytes:
    member = one.member
    name = member.name.encode("utf-8", "surrogateescape")
    time, date = _dos_time(member)
    head = (b"PK\1\2", _UNIX | _VERSION, _VERSION, _UTF8_NAME, member.method, time, date)
    sizes = (member.crc, member.packed_bytes, member.size_bytes)
    rest = (len(name), 0, len(member.comment), 0, 0, member.attributes, one.at)
    return _ENTRY.pack(*head, *sizes, *rest) + name + member.comment


def _dos_time(member: Member) -> tuple[int, int]:
    year, month, day, hour, minute, second = member.time
    return (hour << 11 | minute << 5 | second // 2), (year - 1980 << 9 | month << 5 | day)
