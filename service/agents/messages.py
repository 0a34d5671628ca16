"""What agents send and are answered: bodies, submissions, refusals."""

import asyncio
import re
import zlib
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from contract import agent_api as wire
from contract.job import JobHead, Lease
from contract.result import Result
from contract.wire import UnreadableMessageError, decode
from service.http.errors import ApiError, InvalidError, SlowBodyError, TooLargeError
from service.jobs.model import fence_number, job_number
from service.results.ingest import Arrived, Verdict

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

LIMIT_BYTES: Final = 1024 * 1024
PATIENCE_S: Final = 60.0
"""How long 8 MiB of results may take to arrive, over whatever line there is."""
_GZIP_WINDOW: Final = 31
_ESCAPED_NUL: Final = rb"\u0000"
_NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""Not after a backslash that stands for itself."""
_IN_THREAD_BYTES: Final = 256 * 1024
"""Larger bodies are unpacked in a thread, because the event loop would stand still."""


async def read_message(
    receive: Receive,
    kind: type[MessageT],
    *,
    encoding: bytes | None,
    limit_bytes: int = LIMIT_BYTES,
) -> MessageT:
    """The body as one message; `encoding` is its content-encoding. None: it has none.

    Raises:
        InvalidError: it does not fit; says where.
        TooLargeError: it is longer than the limit, packed or unpacked.
        SlowBodyError: it did not arrive in time.
    """
    body = await _read_in_time(receive, limit_bytes)
    if encoding is not None:
        body = await _unpack(body, encoding.decode("latin-1"), limit_bytes)
    body = replace_nul(body)
    try:
        return decode(body, kind)
    except UnreadableMessageError as problem:
        raise InvalidError(f"The body is not valid: {problem}", keys=()) from problem
    except RecursionError as problem:
        raise InvalidError("The body is nested too deeply.", keys=()) from problem


def replace_nul(body: bytes) -> bytes:
    """JSON in which U+FFFD stands for U+0000, which no text in PostgreSQL can hold.

    A target may well have answered with one; its result must not be refused for that.
    """
    return _NUL.sub(rb"\1\\ufffd", body) if _ESCAPED_NUL in body else body


async def _read_in_time(receive: Receive, limit_bytes: int) -> bytes:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _read(receive, limit_bytes)
    except TimeoutError as problem:
        raise SlowBodyError(
            f"The body did not arrive within {PATIENCE_S:g} s; send it again.",
            headers={"connection": "close"},
        ) from problem


async def _read(receive: Receive, limit_bytes: int) -> bytes:
    message = await receive()
    parts = [_part(message)]
    left = limit_bytes - len(parts[0])
    while left >= 0 and message.get("more_body"):
        message = await receive()
        parts.append(_part(message))
        left -= len(parts[-1])
    return _join(parts, limit_bytes)


def _part(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    body: bytes = message.get("body", b"")
    return body


def _join(parts: Sequence[bytes], limit_bytes: int) -> bytes:
    if sum(map(len, parts)) > limit_bytes:
        raise _too_large(limit_bytes)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _unpack(body: bytes, given: str, limit_bytes: int) -> bytes:
    encoding = given.strip().lower()
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise InvalidError(f"The content-encoding is {encoding[:20]}; use gzip or none.", keys=())
    if len(body) < _IN_THREAD_BYTES:
        return _inflate(body, limit_bytes)
    return await asyncio.to_thread(_inflate, body, limit_bytes)


def _inflate(body: bytes, limit_bytes: int) -> bytes:
    """Never more than the limit, whatever a small body claims to unpack to."""
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    try:
        plain = inflater.decompress(body, limit_bytes + 1)
    except zlib.error as problem:
        raise InvalidError("The body is not valid gzip.", keys=()) from problem
    if len(plain) > limit_bytes:
        raise _too_large(limit_bytes)
    if not inflater.eof:
        raise InvalidError("The gzip body ends too early.", keys=())
    return plain


def _too_large(limit_bytes: int) -> TooLargeError:
    return TooLargeError(
        f"The body is too large; send at most {limit_bytes} bytes at once.",
        attributes={"limitBytes": limit_bytes},
        headers={"connection": "close"},  # what is still on its way is not read
    )


_REASONS: Final = {
    Verdict.UNKNOWN_JOB: "there is no such job; its check may have been deleted",
    Verdict.FOREIGN_JOB: "the job is not one that this location was given for this check",
    Verdict.UNSTORABLE: "the service cannot store it; its log says why",
}


def read_result(place: int, body: bytes) -> Arrived | wire.Rejected:
    """A result, or why it will never be taken.

    Raises:
        InvalidError: not even its job can be read.
    """
    try:
        result = decode(body, Result)
    except UnreadableMessageError as problem:
        # At the top of a message the path is left out.
        where = str(problem) if "$" in str(problem) else f"{problem} - at `$`"
        reason = where.replace("$", f"$.results[{place}]", 1)
        try:
            head = decode(body, JobHead)
        except UnreadableMessageError:
            raise InvalidError(f"The body is not valid: {reason}", keys=()) from problem
        return wire.Rejected(job_id=head.job_id, fence=head.fence, reason=reason)
    if not fence_number(result.fence):
        return wire.Rejected(
            job_id=result.job_id,
            fence=result.fence,
            reason="the fence was not issued by this service",
        )
    return Arrived(result, body, job_number(result.job_id))


def answer_submission(
    arrived: Sequence[Arrived], verdicts: Sequence[Verdict], rejected: Sequence[wire.Rejected]
) -> wire.SubmissionAnswer:
    """What became of each result of a submission, as its agent reads it."""
    by_verdict: dict[Verdict, list[Lease]] = {verdict: [] for verdict in Verdict}
    for one, verdict in zip(arrived, verdicts, strict=True):
        by_verdict[verdict].append(one.result.lease)
    refused = [
        wire.Rejected(job_id=lease.job_id, fence=lease.fence, reason=reason)
        for verdict, reason in _REASONS.items()
        for lease in by_verdict[verdict]
    ]
    return wire.SubmissionAnswer(
        accepted=tuple(by_verdict[Verdict.ACCEPTED]),
        duplicates=tuple(by_verdict[Verdict.DUPLICATE]),
        rejected=(*rejected, *refused),
    )


class TooOldError(ApiError):
    """426: this agent speaks an older language than the service."""

    status = HTTPStatus.UPGRADE_REQUIRED


class RangeError(ApiError):
    """416: the part does not begin where the stored bytes end; says where that is."""

    status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
