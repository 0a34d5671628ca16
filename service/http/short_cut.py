"""A way past the framework's layers, for the few routes that a fleet calls all the time."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.stopwatch import Answered

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
