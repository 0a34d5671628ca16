"""Results with files, on disk until both are delivered: a folder for each, within the agent's own.

An agent holds a lock on its folder as long as it lives; whoever starts on the same disk takes over
the folders that nobody holds any more, and removes what runs left in them.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from agent.folder_lock import lock_folder
from contract.job import Lease
from contract.result import Result
from contract.wire import Seconds, UnreadableMessageError, Wire, decode, encode
from runners.kit.scrub import Clean, CleanFile

_NAME: Final = re.compile(r"parcel-(\d{15})-\d{6}")
_LETTER: Final = ".letter"
"""No artifact may be called so."""


class UnreadableParcelError(Exception):
    """A parcel is not what was packed; the text says in what way."""


class Letter(Wire, frozen=True, kw_only=True):
    """What lies beside the files: the result that names them."""

    result: msgspec.Raw
    """The bytes that were searched: these are sent."""
    lease_s: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One result with its files; what is not here of `Letter` is read when its turn comes."""

    folder: Path
    put_at_s: float
    """Unix time: the parcel may be older than this process."""
    lease: Lease
    lease_s: float
    files: int
    size_bytes: int

    def file(self, name: str) -> Path:
        """Where a file lies; there is none once it is delivered."""
        return self.folder / name


class ParcelFolder:
    """Where parcels lie. All methods block; call them from a thread."""

    def __init__(self, folder: Path, *, agent_id: str) -> None:
        self._shared = folder
        self._mark = re.sub(r"[^0-9a-f]", "", agent_id)[-12:] or "0"
        self._number = 0
        self._lock: int | None = None
        """Descriptor of `own`. None: not open."""
        self.own: Path | None = None
        """This agent's part, where its runs work too: a file becomes a parcel's by its name.
        None: not open, or elsewhere and nothing was kept there yet."""
        self.lasts = True
        """Whether the next agent will find what is here."""

    def open(self) -> list[Parcel]:
        """What earlier processes left, oldest first.

        Raises:
            OSError: nothing can be kept here.
        """
        own = self._shared / self._mark
        self._lock = lock_folder(own)
        found = [*self._taken_from(own, own)]
        for other in self._shared.iterdir():
            if other != own:
                found += self._taken_over(other, own)
        self.own = own
        return sorted(found, key=lambda parcel: parcel.put_at_s)

    def open_elsewhere(self) -> None:
        """Use the system's folder for temporary files; what is kept there goes with `close`."""
        self.lasts = False

    def close(self) -> None:
        """Let others have what is here."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self.own is None:
            return
        if not self.lasts:
            shutil.rmtree(self.own, ignore_errors=True)
        with suppress(OSError):  # there are parcels in it, which the next agent takes over
            self.own.rmdir()

    def pack(
        self, clean: Clean, files: Sequence[CleanFile], *, lease_s: float, put_at_s: float
    ) -> Parcel:
        """Move files to a new parcel, wholly or not at all: it counts once its letter is there.

        Raises:
            OSError: it could not be kept.
        """
        if self.own is None:
            self.own = Path(tempfile.mkdtemp(prefix="picket-files-"))
        folder = self._new_folder(self.own, put_at_s)
        try:
            folder.mkdir(mode=0o700, parents=True)
            for file in files:
                shutil.move(file.path, folder / file.artifact.name)
            _write_letter(folder, clean, lease_s)
            return _described(folder, put_at_s)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def unpack(self, parcel: Parcel) -> Clean:
        """The result of a parcel.

        Raises:
            UnreadableParcelError: the parcel is gone or broken.
        """
        clean, _ = _letter(parcel.folder)
        return clean

    def repack(self, parcel: Parcel, clean: Clean) -> None:
        """Put another letter in: one of the files was given up.

        Raises:
            OSError: it could not be written.
        """
        _write_letter(parcel.folder, clean, parcel.lease_s)

    def remove(self, parcel: Parcel) -> None:
        """Delete a parcel; one that stays is sent again by the next agent."""
        shutil.rmtree(parcel.folder, ignore_errors=True)

    def _new_folder(self, own: Path, put_at_s: float) -> Path:
        self._number += 1
        return own / f"parcel-{int(put_at_s * 1000):015}-{self._number:06}"

    def _taken_over(self, other: Path, own: Path) -> list[Parcel]:
        """The parcels of an agent that is no more; the rest of what it left goes."""
        try:
            lock = lock_folder(other)
        except OSError:  # it lives, or this is no folder
            return []
        try:
            found = [*self._taken_from(other, own)]
            shutil.rmtree(other, ignore_errors=True)
        finally:
            os.close(lock)
        return found

    def _taken_from(self, folder: Path, own: Path) -> Iterator[Parcel]:
        for path in sorted(folder.iterdir()):
            try:
                found = _described(path, _put_at_s(path))
                yield replace(found, folder=path.rename(self._new_folder(own, found.put_at_s)))
            except (OSError, UnreadableParcelError):
                shutil.rmtree(path, ignore_errors=True)


def _put_at_s(folder: Path) -> float:
    if (fields := _NAME.fullmatch(folder.name)) is None:
        raise UnreadableParcelError("it is none")
    return int(fields[1]) / 1000


def _described(folder: Path, put_at_s: float) -> Parcel:
    clean, lease_s = _letter(folder)
    names = (artifact.name for artifact in clean.result.outcome.artifacts)
    sizes = [*_sizes(folder, names)]
    return Parcel(
        folder=folder,
        put_at_s=put_at_s,
        lease=clean.result.lease,
        lease_s=lease_s,
        files=len(sizes),
        size_bytes=sum(sizes),
    )


def _sizes(folder: Path, names: Iterable[str]) -> Iterator[int]:
    for name in names:
        with suppress(FileNotFoundError):  # it was delivered
            yield (folder / name).stat().st_size


def _letter(folder: Path) -> tuple[Clean, float]:
    """The result, for only clean ones were ever packed, and its lease in seconds."""
    try:
        letter = decode((folder / _LETTER).read_bytes(), Letter)
        body = bytes(letter.result)
        return Clean(decode(body, Result), body), letter.lease_s
    except (OSError, UnreadableMessageError) as problem:
        raise UnreadableParcelError(str(problem)) from problem


def _write_letter(folder: Path, clean: Clean, lease_s: float) -> None:
    letter = Letter(result=msgspec.Raw(clean.body), lease_s=lease_s)
    unfinished = folder / f"{_LETTER}.part"
    unfinished.write_bytes(encode(letter))
    unfinished.replace(folder / _LETTER)
