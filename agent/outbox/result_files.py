"""Files of results that wait on disk: written whole, checked when read, set aside when broken."""

import os
import re
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from contract.result import Result
from contract.wire import UnreadableMessageError, Wire, decode, encode

_NAME: Final = re.compile(r"results-(\d{15})-(\d{6})-(\d+)-[0-9a-f]+\.jsonl")
_BROKEN: Final = ".broken"
_UNFINISHED: Final = ".part"
_ABANDONED_AFTER_S: Final = 60.0

log = structlog.get_logger(__name__)


class UnreadableResultFileError(Exception):
    """A file is not what was written; the text says in what way."""


class Header(Wire, frozen=True, kw_only=True):
    """The first line of a file."""

    count: int
    crc: int
    """The CRC-32 of everything after the first line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """One file of results."""

    path: Path
    put_at_s: float
    """When its oldest result was put. Unix time: the file may be older than this process."""
    count: int
    size_bytes: int


class ResultFolder:
    """The folder of waiting results. All methods block; call them from a thread."""

    def __init__(self, folder: Path, *, agent_id: str) -> None:
        self._folder = folder
        self._mark = re.sub(r"[^0-9a-f]", "", agent_id)[-12:] or "0"
        self._number = 0

    def open(self) -> tuple[list[ResultFile], list[Path]]:
        """What an earlier process left: results to deliver, oldest first, and broken files.

        Raises:
            OSError: nothing can be kept here.
        """
        self._make_folder()
        if not os.access(self._folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(f"{self._folder} may not be written")
        entries = sorted(self._folder.iterdir())
        self.remove(path for path in entries if _is_abandoned(path, now_s=time.time()))
        found = [file for path in entries if (file := _describe(path)) is not None]
        return found, [path for path in entries if path.suffix == _BROKEN]

    def write(self, results: Sequence[bytes], *, put_at_s: float) -> ResultFile:
        """Keep results in one new file, wholly or not at all.

        Raises:
            OSError: it could not be kept.
        """
        self._number += 1
        name = f"results-{int(put_at_s * 1000):015}-{self._number:06}-{len(results)}-{self._mark}"
        path = self._folder / f"{name}.jsonl"
        body = b"\n".join(results)
        content = encode(Header(count=len(results), crc=zlib.crc32(body))) + b"\n" + body
        unfinished = path.with_suffix(_UNFINISHED)
        self._make_folder()  # somebody may have deleted it since
        try:
            _write_through(unfinished, content)
            unfinished.rename(path)
            _sync_folder(self._folder)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        return ResultFile(path=path, put_at_s=put_at_s, count=len(results), size_bytes=len(content))

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def read(self, file: ResultFile) -> list[tuple[Result, bytes]]:
        """The results of a file, each with its bytes.

        Raises:
            UnreadableResultFileError: the file is broken.
            OSError: it is gone, or may not be read.
        """
        first, _, body = file.path.read_bytes().partition(b"\n")
        try:
            header = decode(first, Header)
            if header.crc != zlib.crc32(body):
                raise UnreadableResultFileError("its checksum is wrong")
            return [(decode(line, Result), line) for line in body.split(b"\n")]
        except UnreadableMessageError as problem:
            raise UnreadableResultFileError(str(problem)) from problem

    def set_aside(self, file: ResultFile) -> None:
        """Keep a broken file for whoever wants to look, out of the way."""
        file.path.rename(file.path.with_suffix(_BROKEN))

    def remove(self, paths: Iterable[Path]) -> None:
        """Delete files; one that is gone already does no harm, one that stays is sent again."""
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as problem:
                log.warning("spool.not_removed", file=path.name, because=problem.strerror)


def _describe(path: Path) -> ResultFile | None:
    """What a file's name and size say. None: it is none of ours, or is gone."""
    if (fields := _NAME.fullmatch(path.name)) is None:
        return None
    try:
        size_bytes = path.stat().st_size
    except FileNotFoundError:  # another agent that shares the folder has delivered it
        return None
    return ResultFile(
        path=path,
        put_at_s=int(fields[1]) / 1000,
        count=int(fields[3]),
        size_bytes=size_bytes,
    )


def _is_abandoned(path: Path, *, now_s: float) -> bool:
    """Whether nobody can be writing this unfinished file any more."""
    try:
        return path.suffix == _UNFINISHED and now_s - path.stat().st_mtime > _ABANDONED_AFTER_S
    except FileNotFoundError:
        return False


def _write_through(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make names last through a loss of power; the content alone would be nobody's."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
