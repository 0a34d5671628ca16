"""Operations of the API, carried out for somebody who is signed in.

A page changes nothing by itself: it calls the operation that a program would call, so that roles,
limits, validation, the audit log and its messages are the same.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp, Message

from service.http.auth import KNOWN_CALLER
from service.http.errors import ApiError
from service.sign_in.model import Visitor

_FIRST_ERROR: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """What an operation answered."""

    status: int
    body: Any
    """None: it had no body."""

    @property
    def is_error(self) -> bool:
        """Whether nothing was done."""
        return self.status >= _FIRST_ERROR

    @property
    def message(self) -> str:
        """The sentence of an error; empty when it is none."""
        return str(self.body["message"]) if self.is_error else ""

    @property
    def wrong_fields(self) -> tuple[str, ...]:
        """The paths of the fields that are wrong, as in `request.headers[0].key`."""
        return tuple(self.body.get("validation", {}).get("keys", ())) if self.is_error else ()

    @property
    def refusal(self) -> ApiError:
        """The error, for a page that shows nothing else."""
        refusal = ApiError(self.message)
        refusal.status = self.status
        return refusal


@dataclass(frozen=True, slots=True)
class Content:
    """The body of a request, as it is sent."""

    parts: AsyncIterator[bytes]
    size_bytes: int
    kind: str
    """Its content-type."""


async def call_api(
    request: Request,
    visitor: Visitor,
    operation: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> ApiAnswer:
    """Carry out an operation: `PUT /v1/snippets/42`.

    `request`: the request of the page, on whose behalf it is done.
    `body`: a document, or the content itself, which is then never whole in memory.
    """
    method, _, target = operation.partition(" ")
    path, _, query = target.partition("?")
    content = body if isinstance(body, Content) else _encode(body)
    kind = {"content-type": content.kind} if content.size_bytes else {}
    sent = {**kind, **(headers or {})}
    scope = {
        **{name: request.scope[name] for name in ("client", "server", "scheme", "http_version")},
        "type": "http",
        "asgi": {"version": "3.0"},
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            *((name.encode(), value.encode()) for name, value in sent.items()),
            (b"host", request.headers.get("host", "").encode()),
            (b"content-length", str(content.size_bytes).encode()),
        ],
        KNOWN_CALLER: visitor.caller,
    }
    return await _exchange(request.app, scope, content)


def _encode(body: object) -> Content:
    """A document as JSON; None is no body."""
    encoded = b"" if body is None else msgspec.json.encode(body)

    async def whole() -> AsyncIterator[bytes]:
        yield encoded

    return Content(whole(), len(encoded), "application/json")


async def _exchange(app: ASGIApp, scope: dict[str, Any], content: Content) -> ApiAnswer:
    received = bytearray()
    status = 0

    messages = _messages(content.parts)

    async def receive() -> Message:
        return await anext(messages, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            received.extend(message.get("body", b""))

    await app(scope, receive, send)
    return ApiAnswer(status=status, body=msgspec.json.decode(bytes(received)) if received else None)


async def _messages(parts: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    async for part in parts:
        yield {"type": "http.request", "body": part, "more_body": True}
    yield {"type": "http.request", "body": b"", "more_body": False}
