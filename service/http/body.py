"""Bodies of the public API: read whole, within a limit, unpacked when they are gzip."""

import asyncio
import zlib
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.error_body import error_response
from service.http.errors import ApiError, InvalidError, SlowBodyError, TooLargeError

LIMIT_BYTES: Final = 1024 * 1024
"""The longest body, before and after unpacking."""
PATIENCE_S: Final = 30.0
"""How long a body may take to arrive."""
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


class BodyGate:
    """In front of the routes under a prefix: no route sees a body that is too large."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        prefix: str,
        streamed: str | None = None,
        limit_bytes: int = LIMIT_BYTES,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self._app = app
        self._prefix = prefix
        self._streamed = streamed
        """Bodies below this path are left to their routes. None: none is."""
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then hand it on in one piece."""
        if scope["type"] != "http" or not self._reads(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            body = _unpacked(
                await self._read_in_time(receive, headers),
                encoding=headers.get("content-encoding", ""),
                limit_bytes=self._limit_bytes,
            )
        except ClientDisconnect:
            return  # half a body is no request, and nobody is there to be told
        except ApiError as refusal:
            await error_response(refusal)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _reads(self, path: str) -> bool:
        is_streamed = self._streamed is not None and path.startswith(self._streamed)
        return path.startswith(self._prefix) and not is_streamed

    async def _read_in_time(self, receive: Receive, headers: Headers) -> bytes:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._read(receive, headers)
        except TimeoutError as problem:
            raise SlowBodyError(
                f"The body did not arrive within {self._patience_s:g} s; send it again.",
                headers={"connection": "close"},
            ) from problem

    async def _read(self, receive: Receive, headers: Headers) -> bytes:
        announced = headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > self._limit_bytes:
            raise _too_large(self._limit_bytes)
        parts, size_bytes, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            size_bytes += len(part)
            if size_bytes > self._limit_bytes:
                raise _too_large(self._limit_bytes)
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)


def _unpacked(body: bytes, *, encoding: str, limit_bytes: int) -> bytes:
    if encoding.strip().lower() in ("", "identity") or not body:
        return body
    if encoding.strip().lower() not in ("gzip", "deflate"):
        raise InvalidError("The body's content-encoding is unknown; use gzip or none.", keys=())
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = inflater.decompress(body, limit_bytes + 1)
    except zlib.error as problem:
        raise InvalidError("The body is not what content-encoding says.", keys=()) from problem
    if len(plain) > limit_bytes:
        raise _too_large(limit_bytes)
    if not inflater.eof:
        raise InvalidError("The packed body ends too early.", keys=())
    return plain


def _too_large(limit_bytes: int) -> TooLargeError:
    return TooLargeError(
        f"The body is too large; use at most {limit_bytes} bytes.",
        attributes={"limitBytes": limit_bytes},
        # What is still on its way is not read.
        headers={"connection": "close"},
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pending.pop() if pending else await receive()

    return next_message
