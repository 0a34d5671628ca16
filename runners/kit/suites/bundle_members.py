"""Reads what a bundle's archive holds, one by one and within bounds: a stranger packed it."""

import gzip
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

MAX_MEMBERS: Final = 50_000
MAX_UNPACKED_BYTES: Final = 1024**3
MAX_DEPTH: Final = 100
_LONGEST_NAME: Final = 4096
_HEADERS_BYTES: Final = 4096
"""What the headers of a member may take on average; padding included."""
_LARGEST_READ_BYTES: Final = 1024**2
"""`tarfile` reads a header of whatever size at once, and files in parts smaller than this."""
_SHOWN_CHARS: Final = 200
# `ValueError`, `OverflowError` and `KeyError`: numbers of a header that are none. `RecursionError`:
# headers of headers. `UnicodeError` is a `ValueError`.
_BROKEN: Final = (
    tarfile.TarError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    ValueError,
    OverflowError,
    KeyError,
    RecursionError,
)


class BadBundleError(Exception):
    """The archive cannot be unpacked; the text says why. The fault of whoever packed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How much a bundle may unpack to."""

    members: int = MAX_MEMBERS
    """Files, folders and links, also folders that it does not name."""
    size_bytes: int = MAX_UNPACKED_BYTES
    depth: int = MAX_DEPTH


CAPS: Final = Caps()


@contextmanager
def opened(archive: Path, caps: Caps) -> Iterator[tarfile.TarFile]:
    """The archive for reading; it blocks.

    Raises:
        BadBundleError: it is none, or what is read of it is not as it should be.
        OSError: the disk fails.
    """
    try:
        with gzip.open(archive) as plain:
            source = cast("IO[bytes]", _Bounded(cast("IO[bytes]", plain), caps))
            with tarfile.open(fileobj=source, mode="r:") as tar:
                yield tar
    except _BROKEN as problem:
        sentence = f"The code bundle is no readable tar.gz: {shown(str(problem))}."
        raise BadBundleError(sentence) from problem


def named(tar: tarfile.TarFile, caps: Caps) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Each member with its name within the folder; the folder itself is left out.

    Raises:
        BadBundleError: one leaves the folder, or they are too many, too large or too deep.
    """
    for member in _capped(_one_by_one(tar), caps):
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\0" in f"{member.name}{member.linkname}":
            raise BadBundleError(f"The code bundle holds {member.name!r}, which leaves its folder.")
        if max(len(member.name), len(member.linkname)) > _LONGEST_NAME:
            raise BadBundleError(f"The code bundle holds {shown(member.name)}, too long a name.")
        if len(path.parts) > caps.depth:
            raise BadBundleError(f"The code bundle has more than {caps.depth} folders in a row.")
        if path.parts:
            yield path.as_posix(), member


def shown(name: str) -> str:
    """A name as a sentence can hold it, whatever it is made of."""
    if name.isprintable() and len(name) <= _SHOWN_CHARS:
        return name
    return repr(name[:_SHOWN_CHARS]) + ("…" if len(name) > _SHOWN_CHARS else "")


class _Bounded:
    """The archive as `tarfile` reads it; ends where its headers or all of it are too large."""

    def __init__(self, source: IO[bytes], caps: Caps) -> None:
        self._source = source
        self._limit_bytes = caps.size_bytes + caps.members * _HEADERS_BYTES + tarfile.RECORDSIZE
        self._because = f"The code bundle unpacks to more than {caps.size_bytes} bytes."

    def read(self, size_bytes: int) -> bytes:
        if size_bytes > _LARGEST_READ_BYTES:
            raise BadBundleError(
                f"The code bundle has a header of more than {_LARGEST_READ_BYTES} bytes."
            )
        self._require(self._source.tell() + size_bytes)
        return self._source.read(size_bytes)

    def seek(self, place_bytes: int) -> int:
        self._require(place_bytes)
        return self._source.seek(place_bytes)

    def tell(self) -> int:
        return self._source.tell()

    def _require(self, place_bytes: int) -> None:
        if place_bytes > self._limit_bytes:
            raise BadBundleError(self._because)


def _one_by_one(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Without keeping them: their headers may be large."""
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # the list that it iterates over
        yield member


def _capped(members: Iterable[tarfile.TarInfo], caps: Caps) -> Iterator[tarfile.TarInfo]:
    size_bytes, folders = 0, set[PurePosixPath]()
    for count, member in enumerate(members, start=1):
        size_bytes += member.size if member.isreg() else 0
        folders.update(_new_folders(member, folders))
        if count + len(folders) > caps.members:
            raise BadBundleError(f"The code bundle holds more than {caps.members} files.")
        if size_bytes > caps.size_bytes:
            raise BadBundleError(f"The code bundle unpacks to more than {caps.size_bytes} bytes.")
        yield member


def _new_folders(member: tarfile.TarInfo, known: set[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Folders above a member that were not there before, but for the bundle's own."""
    path = PurePosixPath(member.name[:_LONGEST_NAME])
    for folder in list(path.parents)[:-1]:
        if folder in known:
            return
        yield folder
