"""Request bodies, read within limits."""

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.error_responses import error_response
from service.http.errors import (
    ApiError,
    InvalidError,
    MediaTypeError,
    SlowBodyError,
    TooLargeError,
)

LIMIT_BYTES: Final = 1024 * 1024
"""The longest body, before and after unpacking."""
LARGE_BYTES: Final = 16 * LIMIT_BYTES
"""The longest body of a deployment, which has the scripts of many checks."""
_MOST_LARGE: Final = 2
"""Bodies above `LIMIT_BYTES` that are read into objects at a time: one of 14 MB can take 450 MB."""
PATIENCE_S: Final = 30.0
"""How long a body may take to arrive."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_MOST_LETTERS: Final = 100
_PACKINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


class BodyGate:
    """Middleware for the routes under some prefixes: refuses bodies that are too large."""

    def __init__(  # noqa: PLR0913 - what a gate may be told
        self,
        app: ASGIApp,
        *,
        prefixes: tuple[str, ...],
        streamed: tuple[str, ...] = (),
        large: frozenset[str] = frozenset(),
        require_key: Callable[[Scope], Awaitable[None]] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self._app = app
        self._require_key = require_key
        """Raises for an invalid key before the body is read. None: the routes check it."""
        self._prefixes = prefixes
        self._streamed = streamed
        """Routes whose paths begin so read their bodies themselves."""
        self._large = large
        """Paths whose bodies may have up to `LARGE_BYTES`: they hold the scripts of many checks."""
        self._large_turns = asyncio.Semaphore(_MOST_LARGE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then hand it on in one piece."""
        if scope["type"] != "http" or not self._reads(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            await self._require(scope)
            most_bytes = LARGE_BYTES if scope["path"] in self._large else LIMIT_BYTES
            packed = await self._read_in_time(receive, headers, most_bytes=most_bytes)
            encoding = headers.get("content-encoding", "")
            body = _unpack(packed, encoding=encoding, most_bytes=most_bytes)
            _require_json(scope, headers, body)
        except ClientDisconnect:
            return  # half a body is no request, and nobody is there to be told
        except ApiError as refusal:
            await error_response(refusal)(scope, receive, send)
            return
        if len(body) <= LIMIT_BYTES:
            await self._app(scope, _replay(body, receive), send)
            return
        async with self._large_turns:
            await self._app(scope, _replay(body, receive), send)

    async def _require(self, scope: Scope) -> None:
        if self._require_key is None or scope["method"] not in _WITH_BODY:
            return
        try:
            await self._require_key(scope)
        except ApiError as refusal:
            refusal.headers["connection"] = "close"  # what is still on its way is not read
            raise

    def _reads(self, path: str) -> bool:
        return path.startswith(self._prefixes) and not path.startswith(self._streamed)

    async def _read_in_time(self, receive: Receive, headers: Headers, *, most_bytes: int) -> bytes:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._read(receive, headers, most_bytes=most_bytes)
        except TimeoutError as problem:
            raise SlowBodyError(
                f"The body did not arrive within {self._patience_s:g} s; send it again.",
                headers={"connection": "close"},
            ) from problem

    async def _read(self, receive: Receive, headers: Headers, *, most_bytes: int) -> bytes:
        announced = headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > most_bytes:
            raise _too_large(most_bytes)
        parts, size_bytes, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            size_bytes += len(part)
            if size_bytes > most_bytes:
                raise _too_large(most_bytes)
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)


def _require_json(scope: Scope, headers: Headers, body: bytes) -> None:
    """Refuse a body whose content-type is not JSON; without a content-type it is JSON."""
    if not body or scope["method"] not in _WITH_BODY:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind:
        scope["headers"] = [*scope["headers"], (b"content-type", b"application/json")]
    elif kind != "application/json" and not kind.endswith("+json"):
        raise MediaTypeError(
            f"The body is {kind[:_MOST_LETTERS]}; send JSON, and content-type: application/json."
        )


def _unpack(body: bytes, *, encoding: str, most_bytes: int) -> bytes:
    if encoding.strip().lower() in ("", "identity") or not body:
        return body
    if encoding.strip().lower() not in _PACKINGS:
        raise MediaTypeError(
            "The body's content-encoding is unknown; use gzip or none.",
            headers={"accept-encoding": "gzip, deflate"},
        )
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = inflater.decompress(body, most_bytes + 1)
    except zlib.error as problem:
        raise InvalidError("The body does not match its content-encoding.", keys=()) from problem
    if len(plain) > most_bytes:
        raise _too_large(most_bytes)
    if not inflater.eof:
        raise InvalidError("The compressed body ends too early.", keys=())
    if inflater.unused_data:
        raise InvalidError(
            "The compressed body continues after its end; compress it in one piece.", keys=()
        )
    return plain


def _too_large(most_bytes: int) -> TooLargeError:
    return TooLargeError(
        f"The body is too large; use at most {most_bytes} bytes.",
        attributes={"limitBytes": most_bytes},
        # What is still on its way is not read.
        headers={"connection": "close"},
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pending.pop() if pending else await receive()

    return next_message


_BLOCK_BYTES: Final = 1024 * 1024


async def in_time(
    parts: AsyncIterator[bytes], *, patience_s: float, remedy: str
) -> AsyncIterator[bytes]:
    """The parts of a body, none of which may take longer than `patience_s` to come.

    Raises:
        SlowBodyError: nothing came for too long.
    """
    while True:
        try:
            async with asyncio.timeout(patience_s):
                part = await anext(parts, None)
        except TimeoutError as problem:
            raise SlowBodyError(
                f"No data arrived for {patience_s:g} s; {remedy}.", headers={"connection": "close"}
            ) from problem
        if part is None:
            return
        yield part


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            seen.update(block)
    return seen.hexdigest()
