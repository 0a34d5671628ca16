"""The archive of a backup: a tar that is written, and read, once from its first byte to its last.

Its first member says what made it. Its last one has the SHA-256 of every other member, as
`sha256sum` prints them: an archive that was cut off has no such member, and in one that was changed
the sums differ.
"""

import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO, Final

import msgspec

FORMAT: Final = 1
ABOUT: Final = "backup.json"
SUMS: Final = "SHA256SUMS"
BLOCK_BYTES: Final = 256 * 1024
_MOST_ABOUT_BYTES: Final = 64 * 1024
_SUMS_IN_MEMORY_BYTES: Final = 8 * 1024 * 1024
_NO_BACKUP: Final = "is not a backup of Picket"
_CUT_OFF: Final = "is not complete: its end is missing"


class ArchiveError(Exception):
    """An archive cannot be restored; the rest of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an archive says of itself."""

    format: int
    """How the archive is laid out; `FORMAT` of the version that wrote it."""
    release: str
    """The version of Picket that wrote it."""
    revision: str | None
    """The revision of the database. None: the database is not in the archive."""
    created_at: str
    """The time of the backup in UTC, as in 2026-11-21T10:00:00+00:00."""


class _HashedReader:
    """A stream that hashes the bytes that were read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        """At most so many bytes; none at the end."""
        block = self._stream.read(size)
        self._hash.update(block)
        return block

    def sum_line(self, name: str) -> bytes:
        """The line of `sha256sum` for the bytes so far."""
        return f"{self._hash.hexdigest()}  {name}\n".encode()


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file of an archive that is being read."""

    name: str
    changed_s: float
    """When the file was changed, in seconds since 1970."""
    stream: _HashedReader


class ArchiveWriter(ExitStack):
    """Writes members one after the other; nothing is an archive before `finish`."""

    def __init__(self, file: IO[bytes], about: About) -> None:
        super().__init__()
        self._tar = tarfile.TarFile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT)
        self._sums = self.enter_context(_spool())
        described = json.dumps(asdict(about), indent=2).encode() + b"\n"
        with _spool() as stream:
            stream.write(described)
            self._write(ABOUT, stream)

    def add(self, name: str, stream: IO[bytes]) -> None:
        """Write a file whole."""
        self._write(name, stream, changed_s=os.fstat(stream.fileno()).st_mtime)

    def finish(self) -> None:
        """Write the sums, and the end."""
        self._write(SUMS, self._sums)
        self._tar.close()

    def _write(self, name: str, stream: IO[bytes], *, changed_s: float = 0) -> None:
        member = tarfile.TarInfo(name)
        member.mode, member.mtime = 0o600, changed_s
        member.size = stream.seek(0, 2)
        stream.seek(0)
        hashed = _HashedReader(stream)
        self._tar.addfile(member, hashed)
        _forget_members(self._tar)
        if stream is not self._sums:
            self._sums.write(hashed.sum_line(name))


class ArchiveReader(ExitStack):
    """Reads an archive once; what `unpack` wrote counts only if it comes to its end."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the first member.

        Raises:
            ArchiveError: it is no backup, or one of a newer version.
        """
        super().__init__()
        self._sums = self.enter_context(_spool())
        try:
            self._tar = tarfile.TarFile.open(fileobj=file, mode="r|")
            self.about = self._read_about()
        except (tarfile.TarError, EOFError) as problem:
            self.close()
            raise ArchiveError(_NO_BACKUP) from problem
        except ArchiveError:
            self.close()
            raise

    def unpack(self, write: Callable[["ArchivedFile"], None]) -> int:
        """Have each file written, which must be read whole; the number of files.

        Raises:
            ArchiveError: the archive was cut off or changed; most of that is known at its end.
            OSError: a file cannot be written.
        """
        files = 0
        try:
            while (member := self._next()) is not None:
                if member.name == SUMS:
                    self._compare(member.stream)
                    return files
                write(member)
                self._sums.write(member.stream.sum_line(member.name))
                files += 1
        except (tarfile.TarError, EOFError) as problem:
            raise ArchiveError(_CUT_OFF) from problem
        raise ArchiveError(_CUT_OFF)

    def _read_about(self) -> About:
        member = self._next()
        if member is None or member.name != ABOUT:
            raise ArchiveError(_NO_BACKUP)
        described = member.stream.read(_MOST_ABOUT_BYTES)
        try:
            # Of a later format nothing else is known.
            found = msgspec.json.decode(described, type=dict[str, object])
            written = found.get("format")
            if isinstance(written, int) and written > FORMAT:
                raise ArchiveError(_newer(str(found.get("release"))))
            about = msgspec.convert(found, About)
        except msgspec.MsgspecError as problem:
            raise ArchiveError(_NO_BACKUP) from problem
        self._sums.write(member.stream.sum_line(ABOUT))
        return about

    def _next(self) -> "ArchivedFile | None":
        member = self._tar.next()
        _forget_members(self._tar)
        if member is None:
            return None
        stream = self._tar.extractfile(member) if member.isreg() else None
        if stream is None or not _is_plain(member.name):
            raise ArchiveError(f"holds {member.name}, which no backup does")
        return ArchivedFile(member.name, member.mtime, _HashedReader(stream))

    def _compare(self, stream: _HashedReader) -> None:
        """Each file against its sum, in the order in which they were written."""
        self._sums.seek(0)
        for line in self._sums:
            written = stream.read(len(line))
            if written != line:
                name = line.decode().rstrip("\n").partition("  ")[2]
                raise ArchiveError(f"was changed after it was made: {name} is not as it was")
        if stream.read(1):
            raise ArchiveError("was changed after it was made: it has lost files")


def _forget_members(tar: tarfile.TarFile) -> None:
    """It would keep a kilobyte of each, and there may be a million files."""
    tar.members.clear()  # type: ignore[attr-defined]  # where Python's own documentation has it


def _newer(release: str) -> str:
    return f"was made by Picket {release}, which is newer than this one; use that version"


def _is_plain(name: str) -> bool:
    """Whether a name stays in the folder that it is unpacked in."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _spool() -> SpooledTemporaryFile[bytes]:
    return SpooledTemporaryFile(max_size=_SUMS_IN_MEMORY_BYTES)
