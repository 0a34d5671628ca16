"""Refusals as pages, for whoever asks with a browser outside the API."""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from service.http.errors import ApiError
from service.web.page_routing import Pages
from service.web.status_page.custom_domains import DOMAIN

_FORMS: Final = "A form sends to this address; there is no page to look at."
_BODY_HEADERS: Final = frozenset({"content-length", "content-type"})

Handler = Callable[[Request, Exception], Awaitable[Response]]


def install_error_pages(app: FastAPI, pages: Pages, *, api: tuple[str, ...]) -> None:
    """Have browsers be shown a page where programs are sent the one error body.

    `api`: what the paths of the API begin with; there the body is the same for everybody.
    """
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _as_page(handler, pages, api))


def _as_page(handler: Any, pages: Pages, api: tuple[str, ...]) -> Handler:
    async def handle(request: Request, error: Exception) -> Response:
        answer: Response = await handler(request, error)
        if not _wants_page(request, api):
            return answer
        visitor = None
        if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            visitor = await pages.find_visitor(request)
        message = _say(request, json.loads(bytes(answer.body)), error)
        page = pages.explain(request, answer.status_code, message, visitor)
        kept = {name: value for name, value in answer.headers.items() if name not in _BODY_HEADERS}
        page.headers.update(kept)
        return page

    return handle


def _wants_page(request: Request, api: tuple[str, ...]) -> bool:
    """Whether a browser asks; at a status page's own domain there is none of the service's."""
    is_api = any(request.url.path == one or request.url.path.startswith(f"{one}/") for one in api)
    accepts = request.headers.get("accept", "")
    return "text/html" in accepts and not is_api and DOMAIN not in request.scope


def _say(request: Request, body: Mapping[str, Any], error: Exception) -> str:
    """The sentence for people: the router's own ones are about methods and the API."""
    if not isinstance(error, ApiError) and request.method in ("GET", "HEAD"):
        if body["statusCode"] == HTTPStatus.NOT_FOUND:
            return f"There is no page at {request.url.path}."
        if body["statusCode"] == HTTPStatus.METHOD_NOT_ALLOWED:
            return _FORMS
    return str(body["message"])
