"""A suite's code bundle as a file: packed from a folder, unpacked with caps.

Unpacking writes plain files and folders first and links last, so nothing is written through a link;
what `tarfile.data_filter` refuses is refused here as well, also by Pythons that do not have it.
"""

import gzip
import os
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

MAX_MEMBERS: Final = 50_000
MAX_UNPACKED_BYTES: Final = 1024**3
LEFT_OUT: Final = frozenset({"node_modules", ".git"})
"""Folders that are not packed: dependencies are installed by the lock file."""

_BROKEN: Final = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)


class BadBundleError(Exception):
    """The archive cannot be unpacked; the text says why. The fault of whoever packed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How much a bundle may unpack to."""

    members: int = MAX_MEMBERS
    size_bytes: int = MAX_UNPACKED_BYTES


def unpack(archive: Path, into: Path, caps: Caps = Caps()) -> None:
    """Unpack a tar.gz into a folder that is there and empty; it blocks.

    Raises:
        BadBundleError: it is no such archive, is too large, or leaves the folder.
        OSError: it cannot be written.
    """
    try:
        with tarfile.open(archive, "r:gz") as opened:
            _unpack(opened, into, caps)
    except _BROKEN as problem:
        raise BadBundleError(f"The code bundle is no readable tar.gz: {problem}.") from problem


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder into a tar.gz, the same bytes for the same files; it blocks.

    Raises:
        OSError: a file cannot be read, or the archive cannot be written.
    """
    # Neither the name nor the time stands in the gzip header: equal folders have equal hashes.
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as opened,
    ):
        for path in _packed_paths(folder, archive):
            name = path.relative_to(folder).as_posix()
            opened.add(path, arcname=name, recursive=False, filter=_nameless)


def _packed_paths(folder: Path, archive: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        found = (Path(parent) / name for name in (*folders, *sorted(files)))
        yield from (path for path in found if path != archive)


def _nameless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs from one machine to the next."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _unpack(opened: tarfile.TarFile, into: Path, caps: Caps) -> None:
    links: list[tuple[str, tarfile.TarInfo]] = []
    left_bytes = caps.size_bytes
    for name, member in _named(_capped(opened, caps)):
        if member.issym() or member.islnk():
            links.append((name, member))
        elif member.isdir():
            _make_folder(into, name)
        elif member.isreg():
            _write(opened, member, into, name)
            left_bytes -= member.size
        else:
            raise BadBundleError(f"The code bundle holds {name}, which is no file, folder or link.")
    _make_links([one for one in links if one[1].issym()], into)
    for name, member in links:
        if member.islnk():
            left_bytes -= _copy(name, member, into, limit_bytes=left_bytes)


def _capped(members: Iterable[tarfile.TarInfo], caps: Caps) -> Iterator[tarfile.TarInfo]:
    size_bytes = 0
    for count, member in enumerate(members, start=1):
        size_bytes += member.size if member.isreg() else 0
        if count > caps.members:
            raise BadBundleError(f"The code bundle holds more than {caps.members} files.")
        if size_bytes > caps.size_bytes:
            raise BadBundleError(f"The code bundle unpacks to more than {caps.size_bytes} bytes.")
        yield member


def _named(members: Iterable[tarfile.TarInfo]) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Each member with its name within the folder; the folder itself is left out."""
    for member in members:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\0" in member.name:
            raise BadBundleError(f"The code bundle holds {member.name!r}, which leaves its folder.")
        if path.parts:
            yield path.as_posix(), member


def _make_folder(into: Path, name: str) -> Path:
    folder = into / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as problem:
        raise BadBundleError(f"The code bundle holds {name} twice.") from problem
    return folder


def _write(opened: tarfile.TarFile, member: tarfile.TarInfo, into: Path, name: str) -> None:
    folder = _make_folder(into, str(PurePosixPath(name).parent))
    path = folder / PurePosixPath(name).name
    if path.is_dir():
        raise BadBundleError(f"The code bundle holds {name} twice.")
    source = opened.extractfile(member)
    if source is None:  # a plain file always has one
        raise BadBundleError(f"The code bundle holds {name}, which cannot be read.")
    with source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)


def _make_links(links: Iterable[tuple[str, tarfile.TarInfo]], into: Path) -> None:
    made = [(name, member, _link(name, member, into)) for name, member in links]
    # Only now: a link may lead over another one that comes later.
    for name, member, path in made:
        if not _stays(path, into):
            raise BadBundleError(_leaving(name, member))


def _link(name: str, member: tarfile.TarInfo, into: Path) -> Path:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
    if posixpath.isabs(member.linkname) or target.split("/")[0] == "..":
        raise BadBundleError(_leaving(name, member))
    path = _free_place(into, name)
    path.symlink_to(member.linkname)
    return path


def _copy(name: str, member: tarfile.TarInfo, into: Path, *, limit_bytes: int) -> int:
    """A second name of a file becomes a copy of it; its size, which counts like any other."""
    source = into / member.linkname
    if ".." in PurePosixPath(member.linkname).parts or not _stays(source, into):
        raise BadBundleError(_leaving(name, member))
    if not source.is_file():
        raise BadBundleError(f"The code bundle holds {name}, a name of a file that is not there.")
    size_bytes = source.stat().st_size
    if size_bytes > limit_bytes:
        raise BadBundleError("The code bundle unpacks to too much: files with many names.")
    shutil.copy2(source, _free_place(into, name))
    return size_bytes


def _free_place(into: Path, name: str) -> Path:
    above = PurePosixPath(name).parents
    if any((into / one).is_symlink() for one in above):
        raise BadBundleError(f"The code bundle holds {name}, which stands behind a link.")
    path = _make_folder(into, str(PurePosixPath(name).parent)) / PurePosixPath(name).name
    if path.is_symlink() or path.exists():
        raise BadBundleError(f"The code bundle holds {name} twice.")
    return path


def _stays(path: Path, into: Path) -> bool:
    """Whether the path leads into the folder, also over links."""
    try:
        return path.resolve().is_relative_to(into.resolve())
    except RuntimeError:  # links in a circle lead nowhere
        return True


def _leaving(name: str, member: tarfile.TarInfo) -> str:
    return f"The code bundle's link {name} points to {member.linkname!r}, outside its folder."
