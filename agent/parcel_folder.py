"""The folder of an agent's parcels, on a disk that it may share with others.

An agent holds a lock on its folder as long as it lives; whoever starts on the same disk takes over
the parcels in folders that nobody holds any more, and removes what runs left there.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from agent import parcels
from agent.folder_lock import NoLocksError, alone, lock_folder, lock_left_folder
from agent.parcels import Parcel, UnfinishedParcelError, UnreadableParcelError
from runners.kit.isolation.folder_owner import shut_way
from runners.kit.isolation.process_limits import can_have_own_users
from runners.kit.isolation.removal import clear_place, remove_folder
from runners.kit.isolation.sweeping import sweep_folders
from runners.kit.isolation.workspace import FILES, Workspace
from runners.kit.leak_scan.door import Clean, CleanFile

_DOOR: Final = ".lock"
"""Locked while an agent makes its folder and looks through the others."""
_DOOR_LIMIT_S: Final = 30.0
_SILENT_S: Final = 3600.0
"""On a disk without locks, an agent that has not touched its folder for so long is no more; it
does so with each `look_again`."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A parcel that nobody will ever read."""

    because: str
    files: int
    is_finished: bool
    """Whether a result was lost; the run of an unfinished one is somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Legacy:
    """What agents left that are no more."""

    parcels: tuple[Parcel, ...] = ()
    """Oldest first."""
    broken: tuple[Broken, ...] = ()


class ParcelFolder:
    """Where parcels lie. All methods block; call them from a thread, one at a time."""

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
        """Where runs work: this agent's part, as files become a parcel's by their name then.
        None: in the system's folder for temporary files, which every user can get to."""
        self.lasts = True
        """Whether the next agent will find what is here."""

    def open(self) -> Legacy:
        """Have a folder, and take over what earlier processes left.

        Raises:
            OSError: nothing can be kept here.
        """
        sweep_folders(Path(tempfile.gettempdir()), (FILES,))
        self._shared.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = self._shared / self._mark
        with alone(self._shared / _DOOR, limit_s=_DOOR_LIMIT_S) as is_alone:
            self._lock = lock_folder(own)
            self.own = own
            _let_pass(self._shared, own)
            self.runs = None if can_have_own_users() and shut_way(own / "run") else own
            self._unread = self._cleared(own)
            self._has_seen_all = False
            if is_alone:
                self._take_from_others(own)
        return self._read()

    def look_again(self) -> Legacy:
        """Show that this agent lives, and try again what could not be taken over before."""
        if self.own is None or not self.lasts:
            return Legacy()
        with suppress(OSError):
            os.utime(self.own)
            if not self._has_seen_all:
                with alone(self._shared / _DOOR, limit_s=0) as is_alone:
                    if is_alone:
                        self._take_from_others(self.own)
        return self._read()

    def open_elsewhere(self) -> None:
        """Use the system's folder for temporary files; what is kept there goes with `close`."""
        self.lasts = False

    def close(self) -> None:
        """Let others have what is here."""
        if self.own is not None:
            if not self.lasts:
                remove_folder(self.own)
                self._elsewhere.remove()
            with suppress(OSError):  # there are parcels in it, which the next agent takes over
                self.own.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def pack(
        self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float, put_at_s: float
    ) -> Parcel:
        """Make a parcel of files and the result that names them, wholly or not at all.

        Raises:
            OSError: it could not be kept.
            UnreadableParcelError: what was packed could not be read again.
        """
        if self.own is None:
            self.own = self._elsewhere.folder
        folder = self._new_folder(self.own, put_at_s)
        return parcels.pack(folder, clean, files, lease_s=lease_s, at_s=put_at_s)

    def remove(self, parcel: Parcel) -> None:
        """Delete a parcel; one that stays is sent again by the next agent."""
        shutil.rmtree(parcel.folder, ignore_errors=True)

    def _new_folder(self, own: Path, put_at_s: float) -> Path:
        while True:
            self._number += 1
            folder = own / parcels.new_name(put_at_s, self._number)
            if not os.path.lexists(folder):  # an earlier process may have had this folder
                return folder

    def _take_from_others(self, own: Path) -> None:
        self._has_seen_all = True
        for other in self._shared.iterdir():
            if other not in (own, self._shared / _DOOR):
                self._take_from(other, own)

    def _take_from(self, other: Path, own: Path) -> None:
        """Move the parcels of an agent that is no more; the rest of what it left goes."""
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
            for parcel in self._cleared(other):
                self._move(parcel, own)
            other.rmdir()
        except OSError as problem:
            self._put_off(other, problem)

    def _move(self, parcel: Path, own: Path) -> None:
        with suppress(FileNotFoundError):  # without locks another agent may be quicker
            put_at_s = parcels.put_at_s(parcel) or 0.0
            self._unread.append(parcel.rename(self._new_folder(own, put_at_s)))

    def _put_off(self, other: Path, problem: OSError) -> None:
        log.warning("artifacts.not_taken_over", folder=other.name, because=str(problem))
        self._has_seen_all = False

    def _cleared(self, folder: Path) -> list[Path]:
        """The parcels of a folder; what else is there goes."""
        entries = sorted(folder.iterdir())
        for path in entries:
            if parcels.put_at_s(path) is None:
                _remove(path)
        return [path for path in entries if parcels.put_at_s(path) is not None]

    def _read(self) -> Legacy:
        """What is in the parcels that came to us; those that cannot be read now wait."""
        found: list[Parcel] = []
        broken: list[Broken] = []
        later: list[Path] = []
        for folder in self._unread:
            try:
                found.append(parcels.described(folder, parcels.put_at_s(folder) or 0.0))
            except UnreadableParcelError as problem:
                broken.append(_broken(folder, problem))
                _remove(folder)
            except OSError as problem:
                log.warning("artifacts.not_read", parcel=folder.name, because=str(problem))
                later.append(folder)
        self._unread = later
        oldest_first = sorted(found, key=lambda parcel: parcel.put_at_s)
        return Legacy(parcels=tuple(oldest_first), broken=tuple(broken))


def _broken(folder: Path, problem: UnreadableParcelError) -> Broken:
    is_finished = not isinstance(problem, UnfinishedParcelError)
    files = parcels.count_files(folder, otherwise=0)
    return Broken(because=str(problem), files=files, is_finished=is_finished)


def _remove(path: Path) -> None:
    with suppress(OSError):
        clear_place(path)


def _let_pass(*folders: Path) -> None:
    """Runs work below, as users of their own: these may pass through, and list nothing."""
    for folder in folders:
        folder.chmod(0o711)
