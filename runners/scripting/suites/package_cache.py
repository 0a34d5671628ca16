"""A cache of installed packages for the next run of the same project."""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import structlog

from contract.result import CheckFailed, FailureKind
from sandbox.users import revoke_folder
from sandbox.workspace import open_regular_file, remove_folder, remove_path

_EXECUTABLE_BIT: Final = stat.S_IXUSR
_DIGEST: Final = "digest"


class Digests:
    """A digest of each entry, taken when it was kept, in memory, which no script can change.

    For worker threads. Entries from before this process's start have no digest and are not used,
    unless it is beside them on disk.
    """

    def __init__(self, *, on_disk: bool = False) -> None:
        """`on_disk`: whether digests are also kept for other processes, where scripts reach them.

        They then show what a tool has changed, but not what a script has changed on purpose.
        """
        self._known: dict[str, bytes] = {}
        """The digests by the names of entries."""
        self._on_disk = on_disk

    def note(self, entry: Path, digest: bytes) -> None:
        """Note the digest of an entry, and forget those of entries that are gone.

        Raises:
            OSError: the disk refuses it.
        """
        there = set(os.listdir(entry.parent))  # noqa: PTH208 - names are all that is needed
        kept = {name: one for name, one in self._known.items() if name in there}
        self._known = {**kept, entry.name: digest}
        if self._on_disk:
            (entry / _DIGEST).write_bytes(digest)

    def is_intact(self, entry: Path, modules: Path) -> bool:
        """Whether an entry is unchanged since it was kept; it blocks."""
        try:
            known = self._known.get(entry.name) or self._read(entry)
            return known is not None and known == digest_folder(modules)
        except OSError:  # an entry that cannot be read any more was changed
            return False

    def _read(self, entry: Path) -> bytes | None:
        return (entry / _DIGEST).read_bytes() if self._on_disk else None


def digest_folder(modules: Path) -> bytes:
    """Compute a digest of all names, kinds and contents below a folder; it blocks.

    Raises:
        OSError: something cannot be read.
    """
    digest = hashlib.blake2b()
    for path in _walk(modules):
        about = path.lstat()
        name = os.fsencode(path.relative_to(modules))
        digest.update(b"%d %s\0%o\0" % (len(name), name, stat.S_IFMT(about.st_mode)))
        if stat.S_ISLNK(about.st_mode):
            digest.update(os.fsencode(path.readlink()) + b"\0")
        elif stat.S_ISREG(about.st_mode):
            digest.update(b"%o\0" % (about.st_mode & _EXECUTABLE_BIT))
            with open_regular_file(path) as file:
                digest.update(hashlib.file_digest(file, hashlib.blake2b).digest())
    return digest.digest()


def _walk(folder: Path) -> Iterator[Path]:
    """Walk all paths at any depth, always in the same order."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        found = sorted(place.iterdir())
        yield from found
        waiting += [path for path in found if path.is_dir() and not path.is_symlink()]


KEPT_BYTES: Final = 4 * 1024**3
_ENTRY: Final = re.compile(r"([0-9a-f]{64})\.([0-9a-f]{16})")
_MODULES: Final = "node_modules"
_SIZE: Final = "size"
_UNFINISHED: Final = ".part"
_READABLE: Final = 0o755
_STALE_S: Final = 3600.0
"""Longer than taking over packages, or removing them, ever takes."""
_TOOL_FOLDERS: Final = frozenset({".cache", ".vite", ".vite-temp"})
"""Folders in node_modules that tools write to while they run: each run has its own."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BorrowedPackages:
    """Packages that a run uses; they are kept until they are given back."""

    modules: Path
    lock: int
    """The descriptor of a shared lock, which keeps the packages from being removed."""


class PackageCache:
    """Packages on disk, by key; for worker threads, as every method blocks.

    Several processes may share the folder. An entry is a folder `<key>.<creation time>`, which is
    complete as soon as it exists.
    """

    def __init__(
        self, folder: Path, *, kept_bytes: int = KEPT_BYTES, digests: Digests | None = None
    ) -> None:
        """`digests`: needed if runs could change what is kept. None: they cannot."""
        self._folder = folder
        self._kept_bytes = kept_bytes
        self._digests = digests

    def borrow(self, key: str) -> BorrowedPackages | None:
        """Borrow the packages with this key. None: there are none."""
        found = (
            self._require_intact(_lock_shared(path))
            for path, owner, _ in self._entries()
            if owner == key
        )
        return next((lent for lent in found if lent is not None), None)

    def _require_intact(self, lent: BorrowedPackages | None) -> BorrowedPackages | None:
        """Require that borrowed packages are unchanged. None: they are not, or there are none."""
        if lent is None or self._digests is None:
            return lent
        if self._digests.is_intact(lent.modules.parent, lent.modules):
            return lent
        os.close(lent.lock)
        return None

    def keep(self, key: str, modules: Path) -> BorrowedPackages:
        """Keep installed packages, in place of older ones with this key, and lend them.

        Raises:
            UnfitPackagesError: they cannot be kept.
            OSError: the disk fails, or paths are too long.
            RecursionError: folders are nested too deeply.
        """
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=self._folder, suffix=_UNFINISHED))
        try:
            size_bytes = _take_and_move(modules, unfinished)
            (unfinished / _SIZE).write_text(str(size_bytes))
            unfinished.chmod(_READABLE)
            digest = b"" if self._digests is None else digest_folder(unfinished / _MODULES)
            lent = _lock_shared(unfinished)
            entry = self._folder / f"{key}.{time.time_ns():016x}"
            unfinished.rename(entry)
            if self._digests is not None:
                self._digests.note(entry, digest)
        finally:
            remove_folder(unfinished)
        if lent is None:  # nobody else knew its name
            raise OSError(f"The packages at {entry} cannot be locked")
        return BorrowedPackages(entry / _MODULES, lent.lock)

    def give_back(self, borrowed: BorrowedPackages) -> None:
        """Give packages back, and remove old ones above the size limit."""
        os.close(borrowed.lock)
        left_bytes, newest = self._kept_bytes, set[str]()
        for path, key, size_bytes in list(self._entries()):
            left_bytes -= size_bytes or 0
            if left_bytes < 0 or key in newest or size_bytes is None:
                _remove_unless_used(path)
            newest.add(key)

    def sweep(self) -> None:
        """Remove what a killed process left unfinished; failures are only logged."""
        for path in self._folder.glob(f"*{_UNFINISHED}"):
            try:
                if time.time() - path.stat().st_mtime > _STALE_S:
                    remove_folder(path)
            except OSError as problem:
                log.warning("packages.not_swept", folder=path.name, because=str(problem))

    def _entries(self) -> Iterator[tuple[Path, str, int | None]]:
        """List path, key and size of each entry, the most recently used first.

        Entries of one key used at the same time come newest first. No size: the entry is broken.
        """
        found = []
        for path in self._folder.glob(f"{'[0-9a-f]' * 64}.*"):
            parts = _ENTRY.fullmatch(path.name)
            # Another process may remove it in this very moment.
            with contextlib.suppress(FileNotFoundError):
                if parts is not None:
                    found.append((path.stat().st_mtime_ns, parts[2], path, parts[1]))
        for _, _, path, key in sorted(found, reverse=True):
            yield path, key, _read_size(path)


def link_packages(modules: Path, into: Path) -> None:
    """Make a node_modules of links in a run's folder; tools may write files beside the links.

    Each package has one real path, so that nothing is loaded twice.
    """
    own = into / _MODULES
    remove_path(own)
    own.mkdir()
    for path in modules.iterdir():
        if path.name in _TOOL_FOLDERS:
            continue
        if not path.name.startswith("@") or not path.is_dir():
            (own / path.name).symlink_to(path)
            continue
        (own / path.name).mkdir()
        for package in path.iterdir():
            (own / path.name / package.name).symlink_to(package)


def _take_and_move(modules: Path, into: Path) -> int:
    """Take ownership of packages and move them; return the bytes that they use there."""
    size = take_ownership(modules)
    is_copied = modules.stat().st_dev != into.stat().st_dev
    shutil.move(modules, into / _MODULES)
    return size.apparent_bytes if is_copied else size.disk_bytes


def _read_size(entry: Path) -> int | None:
    """Read an entry's size. None: there is none, as after a power cut, which also empties files."""
    try:
        return int((entry / _SIZE).read_text())
    except (FileNotFoundError, ValueError):
        return None


def _lock_shared(entry: Path) -> BorrowedPackages | None:
    """Lock an entry for a run. None: it is being removed, or should be."""
    try:
        lock = os.open(entry / _SIZE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if _try_to_lock(lock, fcntl.LOCK_SH) and _read_size(entry) is not None:
        os.utime(entry)
        return BorrowedPackages(entry / _MODULES, lock)
    os.close(lock)
    return None


def _remove_unless_used(entry: Path) -> None:
    try:
        lock = os.open(entry / _SIZE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # nobody can have locked it
        _remove(entry)
        return
    try:
        if _try_to_lock(lock, fcntl.LOCK_EX):
            _remove(entry)
    finally:
        os.close(lock)


def _remove(entry: Path) -> None:
    # Renamed first, so that a partly removed entry is never lent.
    away = entry.with_name(f"{entry.name}{_UNFINISHED}")
    with contextlib.suppress(FileNotFoundError):  # another process was quicker
        entry.rename(away)
        remove_folder(away)


def _try_to_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_LentT = TypeVar("_LentT", BorrowedPackages, BorrowedPackages | None)
_AnyT = TypeVar("_AnyT")
_TOO_DEEP: Final = "Installing the packages left folders in each other without end."


class AsyncPackageCache:
    """The package cache of all runs of an agent, used in threads."""

    def __init__(self, kept: PackageCache) -> None:
        self._cache = kept

    async def borrow(self, key: str) -> BorrowedPackages | None:
        """Borrow the packages with this key. None: there are none.

        Raises:
            OSError: the disk refuses it.
        """
        return await self._lend_in_thread(partial(self._cache.borrow, key))

    async def keep(self, key: str, place: Path) -> BorrowedPackages:
        """Keep what was installed in a folder, and lend it; the folder is removed.

        Raises:
            CheckFailed: what was installed cannot be kept.
            OSError: the disk refuses it.
        """
        return await self._lend_in_thread(partial(self._keep, key, place))

    async def give_back(self, borrowed: BorrowedPackages) -> None:
        """Give packages back."""
        await asyncio.shield(_run_in_thread(partial(self._cache.give_back, borrowed)))

    async def _lend_in_thread(self, lend: Callable[[], _LentT]) -> _LentT:
        under_way = _run_in_thread(lend)
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            under_way.add_done_callback(self._give_back_unused)
            # Otherwise the run's folder could be removed while packages are moved out of it.
            await asyncio.wait((under_way,))
            raise

    def _give_back_unused(self, lent: asyncio.Future[_LentT]) -> None:
        if lent.cancelled() or lent.exception() is not None:
            return
        borrowed = lent.result()
        if borrowed is not None:
            _run_in_thread(partial(self._cache.give_back, borrowed))

    def _keep(self, key: str, place: Path) -> BorrowedPackages:
        # Its user could have closed it, or set its sticky bit, so that only owners move files.
        revoke_folder(place)
        try:
            return self._cache.keep(key, place / "node_modules")
        except UnfitPackagesError as problem:
            raise CheckFailed(FailureKind.SCRIPT, str(problem)) from problem
        except RecursionError as problem:
            raise CheckFailed(FailureKind.SCRIPT, _TOO_DEEP) from problem
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise CheckFailed(FailureKind.SCRIPT, _TOO_DEEP) from problem
            raise
        finally:
            remove_folder(place)


def _run_in_thread(work: Callable[[], _AnyT]) -> asyncio.Future[_AnyT]:
    """Run work in a thread; unlike a task, it is not cancelled with the loop's tasks."""
    return asyncio.get_running_loop().run_in_executor(None, work)


MOST_BYTES: Final = 4000 * 1024**2
"""The most bytes of packages: as many as an installation may write, sparse files aside."""
_BLOCK_BYTES: Final = 512
_FOLDER: Final = 0o755
_FILE: Final = 0o444
_PROGRAM: Final = 0o555
_FOREIGN: Final = "Installing the packages gave a file of somebody else's a second name, "

_File = tuple[str, os.stat_result]


class UnfitPackagesError(Exception):
    """Packages that cannot be kept, for the reason in the text; the packages' own fault."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of all files of some packages."""

    disk_bytes: int
    """The bytes that they use on disk."""
    apparent_bytes: int
    """The bytes that copies use, in which the holes of sparse files are filled."""


def take_ownership(modules: Path) -> Size:
    """Make all files the agent's, and read-only for everybody else; it blocks.

    Nothing of the run may be running. Pipes, sockets and devices are removed: no package needs
    them, and they cannot be moved to another disk.

    Raises:
        UnfitPackagesError: a file belonged to somebody else before, or they are too large.
        OSError: the disk fails, or paths are too long.
    """
    installer, disk_bytes, apparent_bytes = modules.lstat().st_uid, 0, 0
    for path, about in _list_unique_files(_list_files(modules), installer):
        disk_bytes += about.st_blocks * _BLOCK_BYTES
        apparent_bytes += about.st_size
        _make_read_only(path, about)
    if apparent_bytes > MOST_BYTES:
        message = f"Installing the packages left {apparent_bytes} bytes; they may be {MOST_BYTES}."
        raise UnfitPackagesError(message)
    return Size(disk_bytes, apparent_bytes)


def _list_files(folder: Path) -> Iterator[_File]:
    """List all files below a folder; each folder is made the agent's before it is read."""
    waiting = [str(folder)]
    while waiting:
        place = waiting.pop()
        os.chown(place, os.geteuid(), os.getegid(), follow_symlinks=False)
        os.chmod(place, _FOLDER)  # noqa: PTH101 - the same
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry.path, entry.stat(follow_symlinks=False)


def _list_unique_files(found: Iterator[_File], installer: int) -> Iterator[_File]:
    """List each file once, by one of its hard links; a package may have linked a system file.

    Raises:
        UnfitPackagesError: a file belonged to somebody else before.
    """
    with_names = set[tuple[int, int]]()
    for path, about in found:
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
            os.unlink(path)  # noqa: PTH108 - one of many thousands; a Path each costs more
        elif about.st_nlink == 1:
            yield path, about
        elif (about.st_dev, about.st_ino) not in with_names:
            if about.st_uid != installer:
                raise UnfitPackagesError(f"{_FOREIGN}{Path(path).name}.")
            with_names.add((about.st_dev, about.st_ino))
            yield path, about


def _make_read_only(path: str, about: os.stat_result) -> None:
    os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
    if stat.S_ISREG(about.st_mode):
        os.chmod(path, _PROGRAM if about.st_mode & 0o111 else _FILE)  # noqa: PTH101 - the same
