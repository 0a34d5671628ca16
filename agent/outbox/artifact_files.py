"""Artifacts on disk: batches, their manifests, and their folder, on a disk that agents may share.

An agent holds a lock on its folder as long as it lives; whoever starts on the same disk takes over
the batches in folders that nobody holds any more, and removes what runs left there.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import structlog

from agent.data_folder import NoLocksError, alone, lock_folder, lock_left_folder
from contract.job import Lease
from contract.result import Result
from contract.wire import Seconds, UnreadableMessageError, Wire, decode, encode
from redaction.clean import Clean, CleanFile, restore_clean
from sandbox.cleanup import sweep_folders
from sandbox.spawn import can_have_own_users
from sandbox.users import find_impassable_parent
from sandbox.workspace import FILES, Workspace, remove_folder, remove_path

_NAME: Final = re.compile(r"parcel-(\d{15})-\d{6}")
_MANIFEST: Final = ".letter"
"""No artifact may be called so, nor what begins so."""


class UnreadableBatchError(Exception):
    """A batch is not what was packed, and never will be; the text says in what way."""


class UnfinishedBatchError(UnreadableBatchError):
    """Its agent died before the manifest was in, so its run is somebody else's now."""


class Manifest(Wire, frozen=True, kw_only=True):
    """The file beside the artifacts: the result that names them."""

    result: msgspec.Raw
    """The bytes that were searched: these are sent."""
    lease_s: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactBatch:
    """One result with its files; what is not here of `Manifest` is read when its turn comes."""

    folder: Path
    put_at_s: float
    """Unix time: the batch may be older than this process."""
    lease: Lease
    lease_s: float
    files: int
    """How many there were when it was packed or taken over."""
    size_bytes: int

    def file(self, name: str) -> Path:
        """Where a file lies; there is none once it is delivered."""
        return self.folder / name

    def holds(self, name: str) -> bool:
        """Whether a file is still to be delivered."""
        return os.path.lexists(self.folder / name)


def new_name(put_at_s: float, number: int) -> str:
    """What a batch's folder is called."""
    return f"parcel-{int(put_at_s * 1000):015}-{number:06}"


def read_put_at_s(folder: Path) -> float | None:
    """When it was put, which its name says. None: this is no batch."""
    fields = _NAME.fullmatch(folder.name)
    return None if fields is None else int(fields[1]) / 1000


def pack(
    folder: Path, clean: Clean, files: Sequence[CleanFile], *, lease_s: float, at_s: float
) -> ArtifactBatch:
    """Move files to a new folder, wholly or not at all: it counts once its manifest is there.

    Raises:
        OSError: it could not be kept.
        UnreadableBatchError: what was packed could not be read again.
    """
    try:
        folder.mkdir(mode=0o700, parents=True)
        for file in files:
            shutil.move(file.path, folder / file.artifact.name)
        write_manifest(folder, clean, lease_s)
        return describe(folder, at_s)
    except (OSError, UnreadableBatchError):
        shutil.rmtree(folder, ignore_errors=True)
        raise


def describe(folder: Path, at_s: float) -> ArtifactBatch:
    """What is in a folder.

    Raises:
        UnreadableBatchError: no batch, and it will not become one.
        OSError: it cannot be read now.
    """
    clean, lease_s = _read_manifest(folder)
    sizes = [*_read_sizes(folder, (one.name for one in clean.result.outcome.artifacts))]
    return ArtifactBatch(
        folder=folder,
        put_at_s=at_s,
        lease=clean.result.lease,
        lease_s=lease_s,
        files=len(sizes),
        size_bytes=sum(sizes),
    )


def unpack(batch: ArtifactBatch) -> Clean:
    """The result of a batch.

    Raises:
        UnreadableBatchError: the batch is gone or broken.
        OSError: it cannot be read now.
    """
    clean, _ = _read_manifest(batch.folder)
    return clean


def list_files(folder: Path) -> frozenset[str]:
    """The names of the files that are not delivered yet; of a folder that is gone there is none.

    Raises:
        OSError: they cannot be listed now.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(name for name in names if not name.startswith(_MANIFEST))


def count_files(folder: Path, *, otherwise: int) -> int:
    """How many files are not delivered yet, or what is thought when they cannot be listed."""
    try:
        return len(list_files(folder))
    except OSError:
        return otherwise


def write_manifest(folder: Path, clean: Clean, lease_s: float) -> None:
    """Put a manifest in, in the place of the one that was there.

    Raises:
        OSError: it could not be written.
    """
    manifest = Manifest(result=msgspec.Raw(clean.body), lease_s=lease_s)
    unfinished = folder / f"{_MANIFEST}.part"
    unfinished.write_bytes(encode(manifest))
    unfinished.replace(folder / _MANIFEST)


def _read_sizes(folder: Path, names: Iterable[str]) -> Iterator[int]:
    for name in names:
        with suppress(FileNotFoundError):  # it was delivered
            yield (folder / name).lstat().st_size


def _read_manifest(folder: Path) -> tuple[Clean, float]:
    """The result, for only clean ones were ever packed, and its lease in seconds."""
    try:
        manifest = decode((folder / _MANIFEST).read_bytes(), Manifest)
        body = bytes(manifest.result)
        return restore_clean(decode(body, Result), body), manifest.lease_s
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise UnfinishedBatchError("it has no manifest") from problem
    except (UnreadableMessageError, ValueError, RecursionError) as problem:
        raise UnreadableBatchError(str(problem)) from problem


_LOCK: Final = ".lock"
"""Locked while an agent makes its folder and looks through the others."""
_LOCK_LIMIT_S: Final = 30.0
_SILENT_S: Final = 3600.0
"""On a disk without locks, an agent that has not touched its folder for so long is no more; it
does so with each `retry_take_over`."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenBatch:
    """A batch that nobody will ever read."""

    because: str
    files: int
    is_finished: bool
    """Whether a result was lost; the run of an unfinished one is somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """What agents that have ended left behind."""

    batches: tuple[ArtifactBatch, ...] = ()
    """Oldest first."""
    broken: tuple[BrokenBatch, ...] = ()


class ArtifactFolder:
    """Where batches lie. All methods block; call them from a thread, one at a time."""

    def __init__(self, folder: Path, *, agent_id: str) -> None:
        self._shared = folder
        self._mark = re.sub(r"[^0-9a-f]", "", agent_id)[-12:] or "0"
        self._number = 0
        self._elsewhere = Workspace(prefix=FILES)
        self._lock: int | None = None
        """Descriptor of `own`. None: not open."""
        self._unread: list[Path] = []
        """Parcels of ours by now, which could not be read yet."""
        self._has_seen_all = True
        """Whether no folder of another agent has to be looked at again."""
        self.own: Path | None = None
        """This agent's part. None: not open, or elsewhere and nothing was kept there yet."""
        self.runs: Path | None = None
        """Where runs work: this agent's part, as files become a batch's by their name then.
        None: in the system's folder for temporary files, which every user can get to."""
        self.lasts = True
        """Whether the next agent will find what is here."""

    def open(self) -> TakenOver:
        """Have a folder, and take over what earlier processes left.

        Raises:
            OSError: nothing can be kept here.
        """
        sweep_folders(Path(tempfile.gettempdir()), (FILES,))
        self._shared.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = self._shared / self._mark
        with alone(self._shared / _LOCK, limit_s=_LOCK_LIMIT_S) as is_alone:
            self._lock = lock_folder(own)
            self.own = own
            _allow_passage(self._shared, own)
            self.runs = (
                None if can_have_own_users() and find_impassable_parent(own / "run") else own
            )
            self._unread = self._clear_rest(own)
            self._has_seen_all = False
            if is_alone:
                self._take_from_others(own)
        return self._describe_unread()

    def retry_take_over(self) -> TakenOver:
        """Show that this agent lives, and try again what could not be taken over before."""
        if self.own is None or not self.lasts:
            return TakenOver()
        with suppress(OSError):
            os.utime(self.own)
            if not self._has_seen_all:
                with alone(self._shared / _LOCK, limit_s=0) as is_alone:
                    if is_alone:
                        self._take_from_others(self.own)
        return self._describe_unread()

    def open_elsewhere(self) -> None:
        """Use the system's folder for temporary files; what is kept there goes with `close`."""
        self.lasts = False

    def close(self) -> None:
        """Let others have what is here."""
        if self.own is not None:
            if not self.lasts:
                remove_folder(self.own)
                self._elsewhere.remove()
            with suppress(OSError):  # there are batches in it, which the next agent takes over
                self.own.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def pack(
        self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float, put_at_s: float
    ) -> ArtifactBatch:
        """Make a batch of files and the result that names them, wholly or not at all.

        Raises:
            OSError: it could not be kept.
            UnreadableBatchError: what was packed could not be read again.
        """
        if self.own is None:
            self.own = self._elsewhere.folder
        folder = self._new_folder(self.own, put_at_s)
        return pack(folder, clean, files, lease_s=lease_s, at_s=put_at_s)

    def remove(self, batch: ArtifactBatch) -> None:
        """Delete a batch; one that stays is sent again by the next agent."""
        shutil.rmtree(batch.folder, ignore_errors=True)

    def _new_folder(self, own: Path, put_at_s: float) -> Path:
        while True:
            self._number += 1
            folder = own / new_name(put_at_s, self._number)
            if not os.path.lexists(folder):  # an earlier process may have had this folder
                return folder

    def _take_from_others(self, own: Path) -> None:
        self._has_seen_all = True
        for other in self._shared.iterdir():
            if other not in (own, self._shared / _LOCK):
                self._take_from(other, own)

    def _take_from(self, other: Path, own: Path) -> None:
        """Move the batches of an agent that is no more; the rest of what it left goes."""
        try:
            lock = lock_left_folder(other)
        except NoLocksError:
            if self._is_silent(other, own):
                self._empty(other, own)
            else:
                self._has_seen_all = False
        except (BlockingIOError, FileNotFoundError, NotADirectoryError):
            return  # it lives, or this is no folder
        except OSError as problem:
            self._put_off(other, problem)
        else:
            try:
                self._empty(other, own)
            finally:
                os.close(lock)

    def _is_silent(self, other: Path, own: Path) -> bool:
        """Whether an agent has not shown for long that it lives, by the disk's own clock."""
        os.utime(own)
        return own.stat().st_mtime - other.stat().st_mtime > _SILENT_S

    def _empty(self, other: Path, own: Path) -> None:
        try:
            for batch in self._clear_rest(other):
                self._move(batch, own)
            other.rmdir()
        except OSError as problem:
            self._put_off(other, problem)

    def _move(self, batch: Path, own: Path) -> None:
        with suppress(FileNotFoundError):  # without locks another agent may be quicker
            put_at_s = read_put_at_s(batch) or 0.0
            self._unread.append(batch.rename(self._new_folder(own, put_at_s)))

    def _put_off(self, other: Path, problem: OSError) -> None:
        log.warning("artifacts.not_taken_over", folder=other.name, because=str(problem))
        self._has_seen_all = False

    def _clear_rest(self, folder: Path) -> list[Path]:
        """The batches of a folder; what else is there goes."""
        entries = sorted(folder.iterdir())
        for path in entries:
            if read_put_at_s(path) is None:
                _remove(path)
        return [path for path in entries if read_put_at_s(path) is not None]

    def _describe_unread(self) -> TakenOver:
        """What is in the batches that came to us; those that cannot be read now wait."""
        found: list[ArtifactBatch] = []
        broken: list[BrokenBatch] = []
        later: list[Path] = []
        for folder in self._unread:
            try:
                found.append(describe(folder, read_put_at_s(folder) or 0.0))
            except UnreadableBatchError as problem:
                broken.append(_describe_broken(folder, problem))
                _remove(folder)
            except OSError as problem:
                log.warning("artifacts.not_read", parcel=folder.name, because=str(problem))
                later.append(folder)
        self._unread = later
        oldest_first = sorted(found, key=lambda batch: batch.put_at_s)
        return TakenOver(batches=tuple(oldest_first), broken=tuple(broken))


def _describe_broken(folder: Path, problem: UnreadableBatchError) -> BrokenBatch:
    is_finished = not isinstance(problem, UnfinishedBatchError)
    files = count_files(folder, otherwise=0)
    return BrokenBatch(because=str(problem), files=files, is_finished=is_finished)


def _remove(path: Path) -> None:
    with suppress(OSError):
        remove_path(path)


def _allow_passage(*folders: Path) -> None:
    """Runs work below, as users of their own: these may pass through, and list nothing."""
    for folder in folders:
        folder.chmod(0o711)
