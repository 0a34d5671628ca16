"""How endpoints are declared: routers, operations, responses.

An application takes the routers' routes as they are: `include_router` would build each of the
hundred operations anew for each application, which takes half a second.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from service.http.auth import limit_by_address
from service.http.errors import phrase
from service.http.performance.lazy_routes import LazyRoute
from service.http.schema import NO_NUL
from service.http.validation import check_repeated

SCHEMA_REF: Final = "#/components/schemas/{model}"
"""Where OpenAPI keeps the models that operations refer to."""

ONE: Final = "/{id}"
"""The path of one item of a collection."""
CheckId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]

EVERYWHERE: Final = (400, 401, 403, 408, 413, 415, 429, 500, 503)
"""Error statuses that any operation with a key can return."""


def operation_id(route: BaseRoute) -> str:
    """An operation's name for programs and in the audit log, such as `createSnippet`."""
    return to_camel(str(getattr(route, "name", "")))


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries: these statuses have the one error body.

    By reference: FastAPI would compile a model anew for each status of each operation.
    """
    content = {"application/json": {"schema": {"$ref": SCHEMA_REF.format(model="ErrorBody")}}}
    return {status: {"description": phrase(status), "content": content} for status in statuses}


def answers(
    status: int, model: Any, description: str, *also: int
) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries of an operation: its success, and the refusals of its own."""
    return {status: {"model": model, "description": description}, **refusals(*also)}


def json(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response; stored values were validated before and are not validated again."""
    return JSONResponse(value, status_code=status, headers=headers)


def json_fast(value: object) -> Response:
    """A long list of plain values as a response, six times as fast as `json`."""
    return Response(msgspec.json.encode(value), media_type="application/json")


def json_model(
    value: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A model as a response."""
    body = value.model_dump_json(by_alias=True)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def keyed_operations(tag: str, *, prefix: str = "") -> APIRouter:
    """Operations that need an API key."""
    return APIRouter(
        route_class=LazyRoute,
        prefix=prefix,
        tags=[tag],
        responses=refusals(*EVERYWHERE),
        generate_unique_id_function=operation_id,
    )


def open_operations(tag: str, *, prefix: str = "") -> APIRouter:
    """Operations that need no key; addresses that send too many requests are refused."""
    return APIRouter(
        route_class=LazyRoute,
        prefix=prefix,
        tags=[tag],
        responses=refusals(429, 500),
        dependencies=[Depends(limit_by_address), Depends(check_repeated)],
        generate_unique_id_function=operation_id,
    )
