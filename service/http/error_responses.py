"""Errors as responses of the public API."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from http import HTTPStatus
from typing import Final

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route

from service.http.docs_page import PAGE_PATH
from service.http.errors import ApiError, InvalidError, NotFoundError, Source, phrase
from service.http.schema import sendable
from service.http.validation import problems_of

log = structlog.get_logger(__name__)


class Validation(BaseModel):
    """Which fields of a 400 are wrong."""

    source: Source = Field(description="The part of the request with the wrong fields.")
    keys: list[str] = Field(
        description="Paths of the wrong fields, as in `request.headers[0].key`."
    )


class ErrorBody(BaseModel):
    """The body of every error."""

    status_code: int = Field(alias="statusCode", description="The HTTP status.")
    error: str = Field(description="The status text.")
    message: str = Field(description="What is wrong and how to fix it.")
    attributes: dict[str, str | int | float] = Field(
        description="Values for programs, such as `retryAfter` in seconds."
    )
    validation: Validation | None = Field(
        default=None, description="The wrong fields; with status 400 only."
    )


def error_response(error: ApiError) -> JSONResponse:
    """A refusal as a response."""
    return JSONResponse(body_of(error), status_code=int(error.status), headers=error.headers)


def body_of(error: ApiError) -> dict[str, object]:
    """A refusal as a response body."""
    body: dict[str, object] = {
        "statusCode": int(error.status),
        "error": phrase(error.status),
        "message": sendable(error.message),
        "attributes": error.attributes,
        **error.facts,
    }
    if isinstance(error, InvalidError):
        body["validation"] = {
            "source": error.source,
            "keys": [sendable(key) for key in error.keys],
        }
    return body


def install_errors(app: FastAPI, routes: Iterable[BaseRoute]) -> None:
    """Give the application the one error body; FastAPI's 422 and `detail` never show.

    `routes`: what may be meant by a path that is not there.
    """
    app.state.routes = tuple(route for route in routes if isinstance(route, Route))
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return error_response(error)


async def _invalid(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    problems = problems_of(error.errors())
    sentences = [problem.sentence for problem in problems]
    return error_response(
        InvalidError(
            " ".join(sentences),
            keys=tuple(problem.path for problem in problems if problem.path),
            source=problems[0].source,
        )
    )


async def _http(request: Request, error: Exception) -> Response:
    """The router's own refusals: no such path, wrong method, unreadable body."""
    if not isinstance(error, HTTPException):
        raise error
    return error_response(_router_refusal(request, error))


def _router_refusal(request: Request, error: HTTPException) -> ApiError:
    if error.status_code in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED} and (
        meant := suggest_path(request.url.path, _paths_for(request))
    ):
        # POST /v1/checks/browsr is a typo of `browser`, and no wrong method at the check `browsr`.
        return NotFoundError(f"There is nothing at {request.url.path}; did you mean {meant}?")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _wrong_method(request)
    sentences = {
        404: f"There is nothing at {request.url.path}; {PAGE_PATH} lists what there is.",
        413: "The body is too large.",
    }
    refusal = ApiError(sentences.get(error.status_code, str(error.detail)), headers=error.headers)
    refusal.status = error.status_code
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return InvalidError("The body cannot be read as JSON.", keys=())
    return refusal


def _wrong_method(request: Request) -> ApiError:
    """The 405, which lists what is allowed: not everybody sees the header."""
    allowed = _allowed(request)
    sentence = f"{request.method} is not supported at {request.url.path}"
    if allowed:
        sentence += f"; use {' or '.join(allowed)}"
    if siblings := _sibling_names(request):
        last = request.url.path.rpartition("/")[2]
        sentence += f", or one of {', '.join(siblings)} in place of {last}"
    refusal = ApiError(f"{sentence}.", headers={"allow": ", ".join(allowed)})
    refusal.status = HTTPStatus.METHOD_NOT_ALLOWED
    return refusal


def _sibling_names(request: Request) -> list[str]:
    """Last parts of paths that differ in that alone, and take this method.

    `POST /v1/checks/http`: somebody looks for the name of a type, and not for a check.
    """
    start = request.url.path.rpartition("/")[0]
    ends = (path.rpartition("/") for path in _paths_for(request))
    return sorted({end for before, _, end in ends if before == start and not end.startswith("{")})


def _paths_for(request: Request) -> list[str]:
    """The paths of all routes that take this method."""
    known: tuple[Route, ...] = request.app.state.routes
    return [route.path for route in known if request.method in (route.methods or ())]


def _allowed(request: Request) -> list[str]:
    """The methods allowed at this path; the router knows only the first of several routes.

    `/v1/checks/api` is no check of that id, though the router would take it for one.
    """
    known: tuple[Route, ...] = request.app.state.routes
    exact = [route for route in known if route.path == request.url.path]
    return [
        method
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in exact or request.app.routes
        )
    ]


def _route(request: Request) -> str:
    """The path with its parameters' names: a ping's token is a secret that must not be logged."""
    if route := request.scope.get("route"):
        return str(route.path_format)
    for route in request.app.routes:
        if route.matches(request.scope)[0] is Match.FULL:
            return str(getattr(route, "path_format", "?"))
    return "?"


async def _unexpected(request: Request, error: Exception) -> Response:
    """The API's last resort: our own fault, reported without details; the log has them."""
    log.error("http.failed", method=request.method, route=_route(request), exc_info=error)
    refusal = ApiError("An internal error occurred; the service's log has it.")
    refusal.status = 500
    return error_response(refusal)


_LEAST: Final = 0.75
"""How alike each part of a path must be to be suggested; 1 means equal."""


def suggest_path(path: str, known: Iterable[str]) -> str | None:
    """The known path that is most like this one. None: no path is like it.

    `known`: paths with `{names}` for parts that may be anything. A slash at the end is no part.
    """
    parts = path.rstrip("/").split("/")
    plain = [part.lower() for part in parts]
    of_length = [names for one in known if len(names := one.split("/")) == len(parts)]
    alike = ((_likeness(plain, names), _fill(parts, names)) for names in of_length)
    likeness, meant = max(alike, default=(0.0, parts))
    return "/".join(meant) if likeness >= _LEAST and "/".join(meant) != path else None


def _likeness(plain: list[str], names: list[str]) -> float:
    """How alike the least alike part is; 1 means equal, capitals aside."""
    pairs = zip(plain, names, strict=True)
    return min(_alike(part, name.lower()) for part, name in pairs if not _is_any(name))


def _alike(part: str, name: str) -> float:
    """0 where the lengths differ too much: whoever sends a part may have made it huge."""
    matcher = SequenceMatcher(None, part, name)
    return matcher.ratio() if matcher.real_quick_ratio() >= _LEAST else 0.0


def _fill(parts: list[str], names: list[str]) -> list[str]:
    pairs = zip(parts, names, strict=True)
    return [part if _is_any(name) else name for part, name in pairs]


def _is_any(name: str) -> bool:
    return name.startswith("{")
