"""Answers the agents' calls without FastAPI's router, middleware and exception handling.

It earns its place by `sqlite_b1` of `make bench-queue`: without it a claim and its result cost 1.3
times the CPU time (fourteen alternating pairs with FastAPI 0.165 and Starlette 1.10).
Measure it again before you update one of them.
"""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.metrics import Metrics

_METHOD: Final = "POST"
_JSON: Final = (b"content-type", b"application/json")


class EncodedJson(Response):
    """A success whose body is encoded already; only the length is missing in its headers."""

    def __init__(self, body: bytes) -> None:
        self.status_code = HTTPStatus.OK
        self.background = None
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), _JSON]


class FastPath:
    """The application, with some of its endpoints called directly.

    Only a POST to exactly their path goes this way; the application answers everything else about
    the path (405, a slash too many). Its own exception handlers answer refusals and faults.
    """

    def __init__(
        self,
        app: FastAPI,
        endpoints: Mapping[str, Callable[[Request], Awaitable[Response]]],
        *,
        otherwise: ASGIApp,
        metrics: Metrics,
        monotonic: Callable[[], float],
    ) -> None:
        self._app = app
        self._endpoints = endpoints
        self._otherwise = otherwise
        """Serves all other requests."""
        self._metrics = metrics
        self._monotonic = monotonic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
            response = await self._handle(request, problem)
        await response(scope, receive, send)
        took_s = self._monotonic() - began_s
        self._metrics.count_request(_METHOD, scope["path"], response.status_code, took_s=took_s)

    async def _handle(self, request: Request, problem: Exception) -> Response:
        handlers = self._app.exception_handlers
        handler = next(handlers[kind] for kind in type(problem).__mro__ if kind in handlers)
        response = handler(request, problem)
        return response if isinstance(response, Response) else await response
