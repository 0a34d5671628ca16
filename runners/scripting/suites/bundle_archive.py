"""The archive of a suite's code bundle: packed from a folder, and unpacked within limits.

Unpacking writes regular files and folders first and links last, so nothing is written through a
link. It refuses all that `tarfile.data_filter` refuses, which not every Python has.
"""

import errno
import gzip
import os
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple, cast

MAX_MEMBERS: Final = 50_000
MAX_UNPACKED_BYTES: Final = 1024**3
MAX_DEPTH: Final = 100
_LONGEST_NAME: Final = 4096
_HEADERS_BYTES: Final = 4096
"""The average size that the headers of a member may have, padding included."""
_MAX_READ_BYTES: Final = 1024**2
"""`tarfile` reads a header of any size at once, and files in parts smaller than this."""
_MAX_NAME_CHARS: Final = 200
# `ValueError`, `OverflowError`, `KeyError`: malformed numbers in a header. `RecursionError`:
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
    """The archive cannot be unpacked, for the reason in the text; the fault of who packed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackLimits:
    """The limits of what a bundle may unpack to."""

    members: int = MAX_MEMBERS
    """The number of files, folders and links, including folders that it does not list."""
    size_bytes: int = MAX_UNPACKED_BYTES
    depth: int = MAX_DEPTH


UNPACK_LIMITS: Final = UnpackLimits()


@contextmanager
def open_archive(archive: Path, limits: UnpackLimits) -> Iterator[tarfile.TarFile]:
    """Open an archive for reading; it blocks.

    Raises:
        BadBundleError: it is no tar.gz, or is malformed where it is read.
        OSError: the disk fails.
    """
    try:
        with gzip.open(archive) as plain:
            source = cast("IO[bytes]", _BoundedReader(cast("IO[bytes]", plain), limits))
            with tarfile.open(fileobj=source, mode="r:") as tar:
                yield tar
    except _BROKEN as problem:
        sentence = f"The code bundle is no readable tar.gz: {render(str(problem))}."
        raise BadBundleError(sentence) from problem


def list_members(
    tar: tarfile.TarFile, limits: UnpackLimits
) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """List the members with their names within the folder, without the folder itself.

    Raises:
        BadBundleError: a member leaves the folder, or they exceed a limit.
    """
    for member in _require_limits(_read_members(tar), limits):
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\0" in f"{member.name}{member.linkname}":
            raise BadBundleError(f"The code bundle holds {member.name!r}, which leaves its folder.")
        if max(len(member.name), len(member.linkname)) > _LONGEST_NAME:
            raise BadBundleError(
                f"The code bundle holds {render(member.name)}, a name that is too long."
            )
        if len(path.parts) > limits.depth:
            raise BadBundleError(f"The code bundle has more than {limits.depth} nested folders.")
        if path.parts:
            yield path.as_posix(), member


def render(name: str) -> str:
    """Render a name for a message, whatever characters it has."""
    if name.isprintable() and len(name) <= _MAX_NAME_CHARS:
        return name
    return repr(name[:_MAX_NAME_CHARS]) + ("…" if len(name) > _MAX_NAME_CHARS else "")


class _BoundedReader:
    """The stream that `tarfile` reads; it fails where headers, or the whole, are too large."""

    def __init__(self, source: IO[bytes], limits: UnpackLimits) -> None:
        self._source = source
        self._limit_bytes = limits.size_bytes + limits.members * _HEADERS_BYTES + tarfile.RECORDSIZE
        self._because = f"The code bundle unpacks to more than {limits.size_bytes} bytes."

    def read(self, size_bytes: int) -> bytes:
        if size_bytes > _MAX_READ_BYTES:
            raise BadBundleError(
                f"The code bundle has a header of more than {_MAX_READ_BYTES} bytes."
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


def _read_members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Read members without keeping them, as their headers may be large."""
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # the list that it iterates over
        yield member


def _require_limits(
    members: Iterable[tarfile.TarInfo], limits: UnpackLimits
) -> Iterator[tarfile.TarInfo]:
    size_bytes, folders = 0, set[PurePosixPath]()
    for count, member in enumerate(members, start=1):
        size_bytes += member.size if member.isreg() else 0
        folders.update(_list_new_folders(member, folders))
        if count + len(folders) > limits.members:
            raise BadBundleError(f"The code bundle holds more than {limits.members} files.")
        if size_bytes > limits.size_bytes:
            raise BadBundleError(f"The code bundle unpacks to more than {limits.size_bytes} bytes.")
        yield member


def _list_new_folders(
    member: tarfile.TarInfo, known: set[PurePosixPath]
) -> Iterator[PurePosixPath]:
    """List the folders above a member that are not known yet, without the bundle's own."""
    path = PurePosixPath(member.name[:_LONGEST_NAME])
    for folder in list(path.parents)[:-1]:
        if folder in known:
            return
        yield folder


LEFT_OUT: Final = frozenset(
    {"node_modules", ".git", "test-results", "playwright-report", "blob-report"}
)
"""Folders that are not packed: a suite's results, and what its lock file installs."""

_NAME_ERRNOS: Final = frozenset(
    {
        errno.EEXIST,
        errno.EILSEQ,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
    }
)
"""Errors of a name that no disk could write, whatever its state."""


class _Link(NamedTuple):
    name: str
    target: str
    is_symbolic: bool


def unpack(archive: Path, into: Path, limits: UnpackLimits = UNPACK_LIMITS) -> None:
    """Unpack a tar.gz into a folder that is there and empty; it blocks.

    Raises:
        BadBundleError: it is no such archive, is too large, or leaves the folder.
        OSError: it cannot be written.
    """
    with open_archive(archive, limits) as tar:
        _unpack(tar, into, limits)


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder into a tar.gz, with equal bytes for equal files; it blocks.

    Raises:
        OSError: a file cannot be read, or the archive cannot be written.
    """
    # The gzip header has neither name nor time, so that equal folders have equal hashes.
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in _list_packed_paths(folder, archive):
            name = path.relative_to(folder).as_posix()
            tar.add(path, arcname=name, recursive=False, filter=_strip_owner)


def _list_packed_paths(folder: Path, archive: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        found = (Path(parent) / name for name in (*folders, *sorted(files)))
        yield from (path for path in found if path != archive)


def _strip_owner(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Remove what differs between machines. None: it is a pipe or a device."""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _unpack(tar: tarfile.TarFile, into: Path, limits: UnpackLimits) -> None:
    links: list[_Link] = []
    left_bytes = limits.size_bytes
    for name, member in list_members(tar, limits):
        if member.issym() or member.islnk():
            links.append(_Link(name, member.linkname, member.issym()))
        elif member.isdir():
            with _map_name_errors(name):
                _make_folder(into, name)
        elif member.isreg():
            _write(tar, member, into, name)
            left_bytes -= member.size
        else:
            raise BadBundleError(
                f"The code bundle holds {render(name)}, which is no file, folder or link."
            )
    _make_links([one for one in links if one.is_symbolic], into)
    for link in links:
        if not link.is_symbolic:
            left_bytes -= _copy(link, into, limit_bytes=left_bytes)


@contextmanager
def _map_name_errors(name: str) -> Iterator[None]:
    """Map errors of a name that no disk could write; other errors are the disk's."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _NAME_ERRNOS:
            message = f"The code bundle holds {render(name)}: {problem.strerror}."
            raise BadBundleError(message) from problem
        raise


def _make_folder(into: Path, name: str) -> Path:
    folder = into / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as problem:
        raise BadBundleError(_describe_duplicate(name)) from problem
    return folder


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path, name: str) -> None:
    with _map_name_errors(name):
        folder = _make_folder(into, str(PurePosixPath(name).parent))
        path = folder / PurePosixPath(name).name
        if path.is_dir():
            raise BadBundleError(_describe_duplicate(name))
        source = tar.extractfile(member)
        if source is None:  # a plain file always has one
            raise BadBundleError(f"The code bundle holds {render(name)}, which cannot be read.")
        with source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)


def _make_links(links: Iterable[_Link], into: Path) -> None:
    made = [(link, _make_link(link, into)) for link in links]
    # Checked only now, as a link may lead through another one that comes later.
    for link, path in made:
        if not _is_inside(path, into):
            raise BadBundleError(_describe_leaving_link(link))


def _make_link(link: _Link, into: Path) -> Path:
    place = posixpath.dirname(link.name)
    target = posixpath.normpath(posixpath.join(place, link.target))
    if posixpath.isabs(link.target) or target.split("/")[0] == "..":
        raise BadBundleError(_describe_leaving_link(link))
    with _map_name_errors(link.name):
        path = _find_free_path(into, link.name)
        path.symlink_to(link.target)
    return path


def _copy(link: _Link, into: Path, *, limit_bytes: int) -> int:
    """Copy the target of a hard link, and return its size, which counts like any other."""
    source = into / link.target
    if ".." in PurePosixPath(link.target).parts or not _is_inside(source, into):
        raise BadBundleError(_describe_leaving_link(link))
    with _map_name_errors(link.name):
        if not source.is_file():
            raise BadBundleError(
                f"The code bundle holds {render(link.name)}, a link to a file that does not exist."
            )
        size_bytes = source.stat().st_size
        if size_bytes > limit_bytes:
            raise BadBundleError("The code bundle unpacks to too much: hard links count as files.")
        shutil.copy2(source, _find_free_path(into, link.name))
    return size_bytes


def _find_free_path(into: Path, name: str) -> Path:
    above = PurePosixPath(name).parents
    if any((into / one).is_symlink() for one in above):
        raise BadBundleError(f"The code bundle holds {render(name)}, which lies behind a link.")
    path = _make_folder(into, str(PurePosixPath(name).parent)) / PurePosixPath(name).name
    if path.is_symlink() or path.exists():
        raise BadBundleError(_describe_duplicate(name))
    return path


def _is_inside(path: Path, into: Path) -> bool:
    """Whether a path leads into the folder, also through links."""
    try:
        return path.resolve().is_relative_to(into.resolve())
    except RuntimeError:  # links in a circle lead nowhere
        return True


def _describe_leaving_link(link: _Link) -> str:
    return (
        f"The code bundle's link {render(link.name)} points to {link.target[:200]!r}, outside its "
        "folder."
    )


def _describe_duplicate(name: str) -> str:
    return f"The code bundle holds {render(name)} twice."
