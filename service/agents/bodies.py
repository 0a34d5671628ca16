"""Reading what agents send: within a limit, unpacked, and refused with the wrong field's path."""

import asyncio
import zlib
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request

from contract.wire import UnreadableMessageError, decode
from service.http.errors import InvalidError, SlowBodyError, TooLargeError

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

LIMIT_BYTES: Final = 1024 * 1024
PATIENCE_S: Final = 60.0
"""How long 8 MiB of results may take to arrive, over whatever line there is."""
_GZIP_WINDOW: Final = 31
_IN_THREAD_BYTES: Final = 256 * 1024
"""Unpacking more than this would hold up everyone else."""


async def read_message(
    request: Request, kind: type[MessageT], *, limit_bytes: int = LIMIT_BYTES
) -> MessageT:
    """The body as one message.

    Raises:
        InvalidError: it does not fit; says where.
        TooLargeError: it is longer than the limit, packed or unpacked.
        SlowBodyError: it did not arrive in time.
    """
    body = await _read_in_time(request, limit_bytes)
    try:
        return decode(await _unpack(request, body, limit_bytes), kind)
    except UnreadableMessageError as problem:
        raise InvalidError(f"The body does not fit: {problem}", keys=()) from problem
    except RecursionError as problem:
        raise InvalidError("The body is nested too deeply.", keys=()) from problem


async def _read_in_time(request: Request, limit_bytes: int) -> bytes:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _read(request, limit_bytes)
    except TimeoutError as problem:
        raise SlowBodyError(
            f"The body did not arrive within {PATIENCE_S:g} s; send it again.",
            headers={"connection": "close"},
        ) from problem


async def _read(request: Request, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = limit_bytes
    async for part in request.stream():
        left -= len(part)
        if left < 0:
            raise _too_large(limit_bytes)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _unpack(request: Request, body: bytes, limit_bytes: int) -> bytes:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
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
        raise InvalidError("The body is not the gzip that it says it is.", keys=()) from problem
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
