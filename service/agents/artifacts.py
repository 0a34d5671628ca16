"""Files of runs: uploaded in parts, resumable, handed to the store once they are whole.

Where agents reach the store, they put large files there themselves, by a link.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from weakref import WeakValueDictionary

from starlette.requests import Request

from contract.agent_api import (
    ARTIFACT_DIGEST_HEADER,
    ARTIFACT_FENCE_HEADER,
    ARTIFACT_NAME,
    ARTIFACT_SIZE_HEADER,
    MAX_ARTIFACT_BYTES,
    ArtifactLink,
    ArtifactStored,
)
from contract.scripts import sha256_problem
from service.agents.messages import RangeError
from service.db.engine import Database
from service.http.errors import InvalidError, NoRoomError, NotFoundError, TooLargeError
from service.http.request_body import digest_of, in_time
from service.jobs import actions as jobs
from service.jobs.model import fence_number, job_number
from service.object_store.model import ObjectStore, ObjectStoreError, RemoteObject
from service.results.assets import RunFile

_FENCE: Final = re.compile(r"\d{1,12}", re.ASCII)
_SIZE: Final = re.compile(r"\d{1,12}", re.ASCII)
_RANGE: Final = re.compile(r"bytes (\d{1,12})-(\d{1,12})/(\d{1,12})")
PATIENCE_S: Final = 60.0
"""How long the next bytes may take to arrive."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Which bytes of a file a request brings."""

    first: int
    length: int
    total: int


class ArtifactDoor:
    """Takes files for the jobs of a location."""

    def __init__(self, database: Database, spool: Path, store: ObjectStore) -> None:
        self._database = database
        self._spool = spool
        """The folder of files that are not whole yet."""
        self._store = store
        self._uploads: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    async def put(self, request: Request, location_id: str) -> ArtifactStored:
        """Store a part of a file; parts come in order, each where the one before it ended.

        Raises:
            TooLargeError: the file is longer than an artifact may be.
            RangeError: the part begins elsewhere than where the stored bytes end.
            NotFoundError: the location has no such job, or another agent has it by now.
            InvalidError: name, range, fence or digest do not fit.
            SlowBodyError: nothing came for too long.
            NoRoomError: the disk takes no more.
        """
        part, place = _part(request), _place(request, location_id)
        await self._check(place)
        unfinished = place.unfinished(self._spool)
        # A connection that broke unnoticed must not write beside the one that took its place.
        async with self._uploads.setdefault(unfinished, asyncio.Lock()):
            try:
                return await self._put(request, part, place)
            except ObjectStoreError as problem:
                raise NoRoomError(f"{problem} Send the file again later.") from problem
            except OSError as problem:
                raise NoRoomError(
                    f"The file cannot be stored: {problem.strerror}. Send it again later."
                ) from problem

    async def link(self, request: Request, location_id: str) -> ArtifactLink:
        """A link by which the agent stores a file itself; none where links for agents are off.

        Raises:
            TooLargeError: the file is longer than an artifact may be.
            NotFoundError: the location has no such job, or another agent has it by now.
            InvalidError: name, fence, size or digest do not fit.
            ObjectStoreError: the store cannot be asked.
        """
        place, size, digest = _place(request, location_id), _size_of(request), _digest(request)
        await self._check(place)
        link = await self._store.sign_upload(place.key, size_bytes=size, sha256=digest)
        return (
            ArtifactLink()
            if link is None
            else ArtifactLink(url=link.url, headers=dict(link.headers))
        )

    async def confirm(self, request: Request, location_id: str) -> ArtifactStored:
        """Look at a file that the agent stored itself; another one than was meant goes.

        Raises:
            NotFoundError: the location has no such job, or another agent has it by now.
            InvalidError: it is not there, or not the file with this size and digest.
            ObjectStoreError: the store does not answer.
        """
        place, size, digest = _place(request, location_id), _size_of(request), _digest(request)
        await self._check(place)
        found = await self._store.find(place.key)
        if not await _is_complete(found, size, digest):
            await self._store.remove(place.key, before_ms=float("inf"))
            raise InvalidError(
                "The store does not have this file; send it to the service.", keys=()
            )
        return ArtifactStored(offset=size, complete=True)

    async def _put(self, request: Request, part: _Part, place: RunFile) -> ArtifactStored:
        digest = request.headers.get(ARTIFACT_DIGEST_HEADER, "").lower()
        unfinished = place.unfinished(self._spool)
        if await _is_complete(await self._store.find(place.key), part.total, digest):
            await asyncio.to_thread(unfinished.unlink, missing_ok=True)
            return ArtifactStored(offset=part.total, complete=True)
        held = await asyncio.to_thread(_size, unfinished)
        if digest and held >= part.total > 0:
            # All of it, and the end was not heard; or another file's, which goes.
            return await self._finish(place, digest)
        if held != part.first:
            raise RangeError(
                f"The part begins at {part.first}, but {held} bytes are stored; continue there.",
                attributes={"offset": held},
            )
        parts = in_time(request.stream(), patience_s=PATIENCE_S, remedy="resume where it broke off")
        await _append(unfinished, parts, limit_bytes=part.length)
        stored = await asyncio.to_thread(_size, unfinished)
        if stored < part.total:
            return ArtifactStored(offset=stored, complete=False)
        return await self._finish(place, digest)

    async def _finish(self, place: RunFile, digest: str) -> ArtifactStored:
        """Put a whole file in its place; what earlier claims began goes."""
        unfinished = place.unfinished(self._spool)
        size = await asyncio.to_thread(_size_of_intact, unfinished, digest)
        await self._check(place)  # the job may have gone to another agent while the bytes came
        await self._store.put_file(place.key, unfinished)
        await asyncio.to_thread(_remove_earlier, unfinished.parent, place)
        return ArtifactStored(offset=size, complete=True)

    async def _check(self, place: RunFile) -> None:
        """Whether this claim is the newest of a job of this location."""
        held = await self._database.read(lambda c: jobs.find_held(c, [place.run_id]))
        job = held.get(place.run_id)
        if job is None or job.location_id != place.location_id:
            raise NotFoundError("This location has no such job.")
        if job.fence != place.fence:
            raise NotFoundError("The job went to another agent.")


def _place(request: Request, location_id: str) -> RunFile:
    job_id, name = str(request.path_params["job_id"]), str(request.path_params["name"])
    if not ARTIFACT_NAME.fullmatch(name) or name.endswith(".part"):
        raise InvalidError(
            "The artifact's name is not valid; use letters, digits, dots and dashes.",
            keys=("name",),
            source="path",
        )
    return RunFile(
        location_id=location_id, run_id=job_number(job_id), fence=_fence(request), name=name
    )


def _fence(request: Request) -> int:
    given = request.headers.get(ARTIFACT_FENCE_HEADER, "")
    if _FENCE.fullmatch(given):
        return fence_number(int(given))
    said = f"{ARTIFACT_FENCE_HEADER} is {given[:20]!r}" if given else "The upload has no fence"
    raise InvalidError(
        f"{said}; send the number of the claim under which the file was made "
        f"as {ARTIFACT_FENCE_HEADER}.",
        keys=(ARTIFACT_FENCE_HEADER,),
        source="headers",
    )


def _digest(request: Request) -> str:
    given = request.headers.get(ARTIFACT_DIGEST_HEADER, "").lower()
    if problem := sha256_problem(given):
        raise InvalidError(
            f"{ARTIFACT_DIGEST_HEADER} {problem}.", keys=(ARTIFACT_DIGEST_HEADER,), source="headers"
        )
    return given


def _size_of(request: Request) -> int:
    given = request.headers.get(ARTIFACT_SIZE_HEADER, "")
    if not _SIZE.fullmatch(given):
        raise InvalidError(
            f"The size of the file is missing; send it as {ARTIFACT_SIZE_HEADER}.",
            keys=(ARTIFACT_SIZE_HEADER,),
            source="headers",
        )
    return _require_size(int(given))


def _require_size(size: int) -> int:
    if size > MAX_ARTIFACT_BYTES:
        raise TooLargeError(
            f"The artifact has {size} bytes; use at most {MAX_ARTIFACT_BYTES}.",
            headers={"connection": "close"},
        )
    return size


def _part(request: Request) -> _Part:
    given = request.headers.get("content-range")
    if given is None:
        length = request.headers.get("content-length", "")
        if not length.isdecimal():
            raise InvalidError("The upload requires content-length or content-range.", keys=())
        part = _Part(0, int(length), int(length))
    else:
        found = _RANGE.fullmatch(given)
        if found is None:
            raise InvalidError("The content-range is not valid; use bytes 0-99/1000.", keys=())
        first, last, total = map(int, found.groups())
        part = _Part(first, last - first + 1, total)
    _require_size(part.total)
    if part.length < 0 or part.first + part.length > part.total:
        raise InvalidError("The content-range ends after the file does.", keys=())
    return part


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


async def _is_complete(found: Path | RemoteObject | None, total: int, digest: str) -> bool:
    """Whether this very file is there; another one of its name goes."""
    if isinstance(found, RemoteObject):
        return found.size_bytes == total and (not digest or await _digest_of(found) == digest)
    return found is not None and await asyncio.to_thread(_is_same, found, total, digest)


def _is_same(path: Path, total: int, digest: str) -> bool:
    return _size(path) == total and digest in ("", digest_of(path))


async def _digest_of(found: RemoteObject) -> str:
    seen = hashlib.sha256()
    async for block in found.read(0, found.size_bytes):
        await asyncio.to_thread(seen.update, block)
    return seen.hexdigest()


def _size_of_intact(unfinished: Path, digest: str) -> int:
    """How long the file is, if it is what its sender meant to send; else it begins anew."""
    if digest_of(unfinished) != digest:
        unfinished.unlink()
        raise InvalidError(
            f"The file does not have the sha256 of {ARTIFACT_DIGEST_HEADER}; send it again from 0.",
            keys=(ARTIFACT_DIGEST_HEADER,),
            source="headers",
        )
    return _size(unfinished)


def _remove_earlier(run: Path, place: RunFile) -> None:
    """Remove what earlier claims began of a file, from the folder of its run."""
    of_this = re.compile(rf"{re.escape(place.name)}\.(\d+)\.part")
    for other in run.iterdir():
        if (begun := of_this.fullmatch(other.name)) and int(begun[1]) < place.fence:
            other.unlink(missing_ok=True)
    with suppress(OSError):  # other files of the run are there, or arriving
        run.rmdir()
