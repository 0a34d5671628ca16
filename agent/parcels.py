"""A result with its files, in a folder of its own until both are delivered."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from contract.job import Lease
from contract.result import Result
from contract.wire import Seconds, UnreadableMessageError, Wire, decode, encode
from runners.kit.leak_scan.door import Clean, CleanFile, taken_back

_NAME: Final = re.compile(r"parcel-(\d{15})-\d{6}")
_LETTER: Final = ".letter"
"""No artifact may be called so, nor what begins so."""


class UnreadableParcelError(Exception):
    """A parcel is not what was packed, and never will be; the text says in what way."""


class UnfinishedParcelError(UnreadableParcelError):
    """Its agent died before the letter was in, so its run is somebody else's now."""


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
    """How many there were when it was packed or taken over."""
    size_bytes: int

    def file(self, name: str) -> Path:
        """Where a file lies; there is none once it is delivered."""
        return self.folder / name

    def holds(self, name: str) -> bool:
        """Whether a file is still to be delivered."""
        return os.path.lexists(self.folder / name)


def new_name(put_at_s: float, number: int) -> str:
    """What a parcel's folder is called."""
    return f"parcel-{int(put_at_s * 1000):015}-{number:06}"


def put_at_s(folder: Path) -> float | None:
    """When it was put, which its name says. None: this is no parcel."""
    fields = _NAME.fullmatch(folder.name)
    return None if fields is None else int(fields[1]) / 1000


def pack(
    folder: Path, clean: Clean, files: Sequence[CleanFile], *, lease_s: float, at_s: float
) -> Parcel:
    """Move files to a new folder, wholly or not at all: it counts once its letter is there.

    Raises:
        OSError: it could not be kept.
        UnreadableParcelError: what was packed could not be read again.
    """
    try:
        folder.mkdir(mode=0o700, parents=True)
        for file in files:
            shutil.move(file.path, folder / file.artifact.name)
        write_letter(folder, clean, lease_s)
        return described(folder, at_s)
    except (OSError, UnreadableParcelError):
        shutil.rmtree(folder, ignore_errors=True)
        raise


def described(folder: Path, at_s: float) -> Parcel:
    """What is in a folder.

    Raises:
        UnreadableParcelError: no parcel, and it will not become one.
        OSError: it cannot be read now.
    """
    clean, lease_s = _letter(folder)
    sizes = [*_sizes(folder, (one.name for one in clean.result.outcome.artifacts))]
    return Parcel(
        folder=folder,
        put_at_s=at_s,
        lease=clean.result.lease,
        lease_s=lease_s,
        files=len(sizes),
        size_bytes=sum(sizes),
    )


def unpack(parcel: Parcel) -> Clean:
    """The result of a parcel.

    Raises:
        UnreadableParcelError: the parcel is gone or broken.
        OSError: it cannot be read now.
    """
    clean, _ = _letter(parcel.folder)
    return clean


def files_in(folder: Path) -> frozenset[str]:
    """The names of the files that are not delivered yet; of a folder that is gone there is none.

    Raises:
        OSError: they cannot be listed now.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(name for name in names if not name.startswith(_LETTER))


def count_files(folder: Path, *, otherwise: int) -> int:
    """How many files are not delivered yet, or what is thought when they cannot be listed."""
    try:
        return len(files_in(folder))
    except OSError:
        return otherwise


def write_letter(folder: Path, clean: Clean, lease_s: float) -> None:
    """Put a letter in, in the place of the one that was there.

    Raises:
        OSError: it could not be written.
    """
    letter = Letter(result=msgspec.Raw(clean.body), lease_s=lease_s)
    unfinished = folder / f"{_LETTER}.part"
    unfinished.write_bytes(encode(letter))
    unfinished.replace(folder / _LETTER)


def _sizes(folder: Path, names: Iterable[str]) -> Iterator[int]:
    for name in names:
        with suppress(FileNotFoundError):  # it was delivered
            yield (folder / name).lstat().st_size


def _letter(folder: Path) -> tuple[Clean, float]:
    """The result, for only clean ones were ever packed, and its lease in seconds."""
    try:
        letter = decode((folder / _LETTER).read_bytes(), Letter)
        body = bytes(letter.result)
        return taken_back(decode(body, Result), body), letter.lease_s
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise UnfinishedParcelError("it has no letter") from problem
    except (UnreadableMessageError, ValueError, RecursionError) as problem:
        raise UnreadableParcelError(str(problem)) from problem
