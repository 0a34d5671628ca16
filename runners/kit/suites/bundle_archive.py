"""A suite's code bundle as a file: packed from a folder, unpacked with caps.

Unpacking writes plain files and folders first and links last, so nothing is written through a link;
what `tarfile.data_filter` refuses is refused here as well, also by Pythons that do not have it.
"""

import errno
import gzip
import os
import posixpath
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from runners.kit.suites.bundle_members import CAPS, BadBundleError, Caps, named, opened, shown

LEFT_OUT: Final = frozenset(
    {"node_modules", ".git", "test-results", "playwright-report", "blob-report"}
)
"""Folders that are not packed: what a suite brings back, or installs by its lock file."""

_OF_NAMES: Final = frozenset(
    {
        errno.EEXIST,
        errno.EILSEQ,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
    }
)
"""What the system says of a name that cannot be written, whatever the state of the disk."""


class _Link(NamedTuple):
    name: str
    target: str
    is_symbolic: bool


def unpack(archive: Path, into: Path, caps: Caps = CAPS) -> None:
    """Unpack a tar.gz into a folder that is there and empty; it blocks.

    Raises:
        BadBundleError: it is no such archive, is too large, or leaves the folder.
        OSError: it cannot be written.
    """
    with opened(archive, caps) as tar:
        _unpack(tar, into, caps)


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder into a tar.gz, the same bytes for the same files; it blocks.

    Raises:
        OSError: a file cannot be read, or the archive cannot be written.
    """
    # Neither the name nor the time stands in the gzip header: equal folders have equal hashes.
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in _packed_paths(folder, archive):
            name = path.relative_to(folder).as_posix()
            tar.add(path, arcname=name, recursive=False, filter=_nameless)


def _packed_paths(folder: Path, archive: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        found = (Path(parent) / name for name in (*folders, *sorted(files)))
        yield from (path for path in found if path != archive)


def _nameless(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without what differs from one machine to the next. None: a pipe or a device."""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _unpack(tar: tarfile.TarFile, into: Path, caps: Caps) -> None:
    links: list[_Link] = []
    left_bytes = caps.size_bytes
    for name, member in named(tar, caps):
        if member.issym() or member.islnk():
            links.append(_Link(name, member.linkname, member.issym()))
        elif member.isdir():
            with _writing(name):
                _make_folder(into, name)
        elif member.isreg():
            _write(tar, member, into, name)
            left_bytes -= member.size
        else:
            raise BadBundleError(
                f"The code bundle holds {shown(name)}, which is no file, folder or link."
            )
    _make_links([one for one in links if one.is_symbolic], into)
    for link in links:
        if not link.is_symbolic:
            left_bytes -= _copy(link, into, limit_bytes=left_bytes)


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """Tell apart a name that no disk takes, and a disk that fails."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _OF_NAMES:
            message = f"The code bundle holds {shown(name)}: {problem.strerror}."
            raise BadBundleError(message) from problem
        raise


def _make_folder(into: Path, name: str) -> Path:
    folder = into / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as problem:
        raise BadBundleError(_twice(name)) from problem
    return folder


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path, name: str) -> None:
    with _writing(name):
        folder = _make_folder(into, str(PurePosixPath(name).parent))
        path = folder / PurePosixPath(name).name
        if path.is_dir():
            raise BadBundleError(_twice(name))
        source = tar.extractfile(member)
        if source is None:  # a plain file always has one
            raise BadBundleError(f"The code bundle holds {shown(name)}, which cannot be read.")
        with source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)


def _make_links(links: Iterable[_Link], into: Path) -> None:
    made = [(link, _make_link(link, into)) for link in links]
    # Only now: a link may lead over another one that comes later.
    for link, path in made:
        if not _stays(path, into):
            raise BadBundleError(_leaving(link))


def _make_link(link: _Link, into: Path) -> Path:
    place = posixpath.dirname(link.name)
    target = posixpath.normpath(posixpath.join(place, link.target))
    if posixpath.isabs(link.target) or target.split("/")[0] == "..":
        raise BadBundleError(_leaving(link))
    with _writing(link.name):
        path = _free_place(into, link.name)
        path.symlink_to(link.target)
    return path


def _copy(link: _Link, into: Path, *, limit_bytes: int) -> int:
    """A second name of a file becomes a copy of it; its size, which counts like any other."""
    source = into / link.target
    if ".." in PurePosixPath(link.target).parts or not _stays(source, into):
        raise BadBundleError(_leaving(link))
    with _writing(link.name):
        if not source.is_file():
            raise BadBundleError(
                f"The code bundle holds {shown(link.name)}, a name of a file that is not there."
            )
        size_bytes = source.stat().st_size
        if size_bytes > limit_bytes:
            raise BadBundleError("The code bundle unpacks to too much: files with many names.")
        shutil.copy2(source, _free_place(into, link.name))
    return size_bytes


def _free_place(into: Path, name: str) -> Path:
    above = PurePosixPath(name).parents
    if any((into / one).is_symlink() for one in above):
        raise BadBundleError(f"The code bundle holds {shown(name)}, which stands behind a link.")
    path = _make_folder(into, str(PurePosixPath(name).parent)) / PurePosixPath(name).name
    if path.is_symlink() or path.exists():
        raise BadBundleError(_twice(name))
    return path


def _stays(path: Path, into: Path) -> bool:
    """Whether the path leads into the folder, also over links."""
    try:
        return path.resolve().is_relative_to(into.resolve())
    except RuntimeError:  # links in a circle lead nowhere
        return True


def _leaving(link: _Link) -> str:
    return (
        f"The code bundle's link {shown(link.name)} points to {link.target[:200]!r}, outside its "
        "folder."
    )


def _twice(name: str) -> str:
    return f"The code bundle holds {shown(name)} twice."
