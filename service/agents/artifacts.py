"""Files of runs: uploaded in parts, resumable, kept under the data directory."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from weakref import WeakValueDictionary

from starlette.requests import Request

from contract.agent_api import (
    ARTIFACT_DIGEST_HEADER,
    ARTIFACT_FENCE_HEADER,
    ARTIFACT_NAME,
    MAX_ARTIFACT_BYTES,
    ArtifactStored,
)
from service.agents.refusals import NoRoomError, RangeError
from service.db.engine import Database
from service.http.errors import InvalidError, NotFoundError, SlowBodyError, TooLargeError
from service.jobs import actions as jobs
from service.jobs.model import job_number

_RANGE: Final = re.compile(r"bytes (\d{1,12})-(\d{1,12})/(\d{1,12})")
PATIENCE_S: Final = 60.0
"""How long the next bytes may take to arrive."""
_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Part:
    """Which bytes of a file a request brings."""

    first: int
    length: int
    total: int


class ArtifactDoor:
    """Takes files for the jobs of a location."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._uploads: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    async def put(self, request: Request, location_id: str) -> ArtifactStored:
        """Store a part of a file; parts come in order, each where the one before it ended.

        Raises:
            TooLargeError: the file is longer than an artifact may be.
            RangeError: the part begins elsewhere than where the stored bytes end.
            NotFoundError: the location has no such job, or another agent has it by now.
            InvalidError: name, range or digest do not fit.
            SlowBodyError: nothing came for too long.
            NoRoomError: the disk takes no more.
        """
        part = _part(request)
        path = await self._path(request, location_id)
        # A connection that broke unnoticed must not write beside the one that took its place.
        async with self._uploads.setdefault(path, asyncio.Lock()):
            try:
                return await self._put(request, part, path)
            except OSError as problem:
                raise NoRoomError(
                    f"The file cannot be kept: {problem.strerror}. Send it again later."
                ) from problem

    async def _put(self, request: Request, part: _Part, path: Path) -> ArtifactStored:
        digest = request.headers.get(ARTIFACT_DIGEST_HEADER, "").lower()
        if await asyncio.to_thread(_is_complete, path, part.total, digest):
            return ArtifactStored(offset=part.total, complete=True)
        unfinished = path.with_name(f"{path.name}.part")
        held = await asyncio.to_thread(_size, unfinished)
        if digest and held >= part.total > 0:
            # All of it, and the end was not heard; or another file's, which goes.
            await asyncio.to_thread(_finish, unfinished, path, digest)
            return ArtifactStored(offset=held, complete=True)
        if held != part.first:
            raise RangeError(
                f"The part begins at {part.first}, but {held} bytes are stored; go on there.",
                attributes={"offset": held},
            )
        parts = _in_time(request.stream(), patience_s=PATIENCE_S)
        await _append(unfinished, parts, limit_bytes=part.length)
        stored = await asyncio.to_thread(_size, unfinished)
        if stored < part.total:
            return ArtifactStored(offset=stored, complete=False)
        await asyncio.to_thread(_finish, unfinished, path, digest)
        return ArtifactStored(offset=stored, complete=True)

    async def _path(self, request: Request, location_id: str) -> Path:
        job_id, name = str(request.path_params["job_id"]), str(request.path_params["name"])
        if not ARTIFACT_NAME.fullmatch(name) or name.endswith(".part"):
            raise InvalidError(
                "The artifact's name does not fit; use letters, digits, dots, dashes.",
                keys=("name",),
                source="path",
            )
        number = job_number(job_id)
        job = (await self._database.read(lambda c: jobs.held(c, [number]))).get(number)
        if job is None or job.location_id != location_id:
            raise NotFoundError("This location has no such job.")
        if request.headers.get(ARTIFACT_FENCE_HEADER, str(job.fence)) != str(job.fence):
            raise NotFoundError("The job went to another agent.")
        return self._folder / location_id / str(number) / name


def _part(request: Request) -> _Part:
    given = request.headers.get("content-range")
    if given is None:
        length = request.headers.get("content-length", "")
        if not length.isdecimal():
            raise InvalidError("The upload needs content-length or content-range.", keys=())
        part = _Part(0, int(length), int(length))
    else:
        found = _RANGE.fullmatch(given)
        if found is None:
            raise InvalidError("The content-range does not fit; use bytes 0-99/1000.", keys=())
        first, last, total = map(int, found.groups())
        part = _Part(first, last - first + 1, total)
    if part.total > MAX_ARTIFACT_BYTES:
        raise TooLargeError(
            f"The artifact has {part.total} bytes; use at most {MAX_ARTIFACT_BYTES}.",
            headers={"connection": "close"},
        )
    if part.length < 0 or part.first + part.length > part.total:
        raise InvalidError("The content-range ends after the file does.", keys=())
    return part


async def _in_time(parts: AsyncIterator[bytes], *, patience_s: float) -> AsyncIterator[bytes]:
    """The parts of a body, as long as none lets us wait for too long."""
    while True:
        try:
            async with asyncio.timeout(patience_s):
                part = await anext(parts, None)
        except TimeoutError as problem:
            raise SlowBodyError(
                f"Nothing came for {patience_s:g} s; go on where it broke.",
                headers={"connection": "close"},
            ) from problem
        if part is None:
            return
        yield part


async def _append(path: Path, parts: AsyncIterator[bytes], *, limit_bytes: int) -> None:
    """Whatever arrives stays, so that a broken upload goes on where it broke."""
    left = limit_bytes
    file = await asyncio.to_thread(_open_for_appending, path)
    try:
        async for part in parts:
            left -= len(part)
            if left < 0:
                raise InvalidError("The body is longer than its content-range.", keys=())
            await asyncio.to_thread(file.write, part)
    finally:
        await asyncio.to_thread(file.close)


def _open_for_appending(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_complete(path: Path, total: int, digest: str) -> bool:
    """Whether this very file is there; an attempt's file may replace one of an earlier attempt."""
    return _size(path) == total and path.is_file() and digest in ("", _digest(path))


def _finish(unfinished: Path, path: Path, digest: str) -> None:
    """Move the file to its place if it is what its sender meant to send; else begin anew."""
    if _digest(unfinished) != digest:
        unfinished.unlink()
        raise InvalidError(
            f"The file does not have the sha256 of {ARTIFACT_DIGEST_HEADER}; send it again from 0.",
            keys=(ARTIFACT_DIGEST_HEADER,),
            source="headers",
        )
    unfinished.replace(path)


def _digest(path: Path) -> str:
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            seen.update(block)
    return seen.hexdigest()
