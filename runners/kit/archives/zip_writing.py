"""Writes a zip archive whose members come partly packed already."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final

from isal import isal_zlib

from runners.kit.archives.zip_directory import DEFLATED, Member

_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_LISTED: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END: Final = struct.Struct("<4sHHHHIIH")
_WIDE_END: Final = struct.Struct("<4sQHHIIQQQQ")
_WIDE_PLACE: Final = struct.Struct("<4sIQI")
_VERSION: Final = 20
_UNIX: Final = 3 << 8
_UTF8_NAME: Final = 0x800
_MOST_MEMBERS: Final = 0xFFFF
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Packed:
    """A content that was packed."""

    content: bytes
    crc: int
    """Of what it unpacks to."""
    size_bytes: int


def packed_of(content: bytes) -> Packed:
    """The content as a member's is packed."""
    packer = _packer()
    packed = packer.compress(content) + packer.flush()
    return Packed(packed, isal_zlib.crc32(content), len(content))


@dataclass(frozen=True, slots=True)
class _Written:
    member: Member
    at: int


class ZipWriter:
    """Appends members to a file, and their list at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written: list[_Written] = []
        self.names: set[str] = set()

    def add_packed(self, member: Member, pieces: Iterable[bytes]) -> None:
        """A member whose bytes are packed as it says."""
        at = self._begin(member)
        for piece in pieces:
            self._file.write(piece)
        self._end(member, at)

    def add_held(self, member: Member, held: Packed) -> None:
        """A member that was packed; what it says of its content's size is not read."""
        described = replace(
            member,
            method=DEFLATED,
            crc=held.crc,
            size_bytes=held.size_bytes,
            packed_bytes=len(held.content),
        )
        self.add_packed(described, (held.content,))

    def add(self, member: Member, pieces: Iterable[bytes]) -> None:
        """A member that is to be packed; what it says of its content's size is not read."""
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
        """Call the last member by a name of the same length; without it, if there is such a one."""
        last = self._written.pop()
        self.names.discard(last.member.name)
        if name in self.names:
            self._file.seek(last.at)
            self._file.truncate()
            return
        self._end(replace(last.member, name=name), last.at)

    def close(self, comment: bytes) -> None:
        """Write the list; the file stays open."""
        begins = self._file.tell()
        for one in self._written:
            self._file.write(_listed(one))
        size = self._file.tell() - begins
        count = len(self._written)
        if count > _MOST_MEMBERS - 1:
            self._write_wide_end(count, size, begins)
        few = min(count, _MOST_MEMBERS)
        self._file.write(_END.pack(b"PK\5\6", 0, 0, few, few, size, begins, len(comment)))
        self._file.write(comment)

    def _begin(self, member: Member) -> int:
        at = self._file.tell()
        self._file.write(_local(member))
        return at

    def _end(self, member: Member, at: int) -> None:
        """Now that all is known of it, say so where it begins."""
        end = self._file.seek(0, 2)
        self._file.seek(at)
        self._file.write(_local(member))
        self._file.seek(end)
        self._written.append(_Written(member, at))
        self.names.add(member.name)

    def _write_wide_end(self, count: int, size: int, begins: int) -> None:
        at = self._file.tell()
        wide = (b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, begins)
        self._file.write(_WIDE_END.pack(*wide) + _WIDE_PLACE.pack(b"PK\6\7", 0, at, 1))


def _packer() -> Any:
    return isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)


def _local(member: Member) -> bytes:
    name = member.name.encode("utf-8", "surrogateescape")
    time, date = _dos_time(member)
    head = (b"PK\3\4", _VERSION, _UTF8_NAME, member.method, time, date, member.crc)
    return _LOCAL.pack(*head, member.packed_bytes, member.size_bytes, len(name), 0) + name


def _listed(one: _Written) -> bytes:
    member = one.member
    name = member.name.encode("utf-8", "surrogateescape")
    time, date = _dos_time(member)
    head = (b"PK\1\2", _UNIX | _VERSION, _VERSION, _UTF8_NAME, member.method, time, date)
    sizes = (member.crc, member.packed_bytes, member.size_bytes)
    rest = (len(name), 0, len(member.comment), 0, 0, member.attributes, one.at)
    return _LISTED.pack(*head, *sizes, *rest) + name + member.comment


def _dos_time(member: Member) -> tuple[int, int]:
    year, month, day, hour, minute, second = member.time
    return (hour << 11 | minute << 5 | second // 2), (year - 1980 << 9 | month << 5 | day)
