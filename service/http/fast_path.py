"""Faster ways around the framework for the agent API's hot calls."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.metrics import Answered

_METHOD: Final = "POST"
_JSON: Final = (b"content-type", b"application/json")


class JsonAnswer(Response):
    """A success as JSON that is written already; its head is ready but for the length."""

    def __init__(self, body: bytes) -> None:
        self.status_code = HTTPStatus.OK
        self.background = None
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON]


class ShortCut:
    """The application, with some of its routes asked directly.

    Only a POST to exactly their path goes this way; whatever else there is to say about a path
    (405, a slash too many) the application says. It answers refusals and faults by its own table.
    """

    def __init__(
        self,
        app: FastAPI,
        endpoints: Mapping[str, Callable[[Request], Awaitable[Response]]],
        *,
        otherwise: ASGIApp,
        answered: Answered,
        monotonic: Callable[[], float],
    ) -> None:
        self._app = app
        self._endpoints = endpoints
        self._otherwise = otherwise
        """The way of all other requests."""
        self._answered = answered
        self._monotonic = monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is None or scope["method"] != _METHOD:
            await self._otherwise(scope, receive, send)
            return
        began_s = self._monotonic()
        scope["app"] = self._app
        request = Request(scope, receive)
        try:
            response = await endpoint(request)
        except Exception as problem:  # noqa: BLE001 - the API's last resort, as the framework's is
            response = await self._answer(request, problem)
        await response(scope, receive, send)
        took_s = self._monotonic() - began_s
        self._answered(_METHOD, scope["path"], response.status_code, took_s=took_s)

    async def _answer(self, request: Request, problem: Exception) -> Response:
        handlers = self._app.exception_handlers
        handler = next(handlers[kind] for kind in type(problem).__mro__ if kind in handlers)
        response = handler(request, problem)
        return response if isinstance(response, Response) else await response


class GatheringTransport(asyncio.Transport):
    """Hands what is written in one turn of the loop to the real transport in one piece.

    The server writes an answer's head and its body one after the other, and each write would be a
    call of the kernel, a packet and a wake-up of the agent: 8 % of a small answer.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Write what is left, then close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Take nothing more for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take what comes again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the real transport knows."""
        return self._transport.get_extra_info(name, default)


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's protocol on a transport that gathers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """What the loop calls."""
        super().connection_made(GatheringTransport(transport))


def received(receive: Receive) -> Message | None:
    """The next message, if it has come already; one step of the question, no task and no timer.

    None: it has not; ask again, or wait for it.
    """
    question = receive().__await__()
    try:
        next(question)
    except StopIteration as answered:
        message: Message = answered.value
        return message
    finally:
        question.close()
    return None
