"""How endpoints are declared: routes, operations, lazy registration.

Routers whose operations are whole as they are declared.

An application takes their routes as they are. Including a router builds each of its routes anew,
for each application: with a hundred operations half a second, in the first request that comes.

Operations that are built when somebody first asks for them, and not as they are declared.

FastAPI builds validators for each parameter, body and answer of a route in its declaration: of a
hundred operations that is a third of what a start computes, and most services answer few of them.
"""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, compile_path, get_name

from service.http.auth import limit_by_address
from service.http.errors import phrase
from service.http.schema import NO_NUL

SCHEMA_REF: Final = "#/components/schemas/{model}"
"""Where OpenAPI keeps the models that operations refer to."""

ONE: Final = "/{id}"
"""The path of one thing."""
CheckId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]

EVERYWHERE: Final = (400, 401, 403, 408, 413, 415, 429, 500, 503)
"""Refusals that any operation with a key can answer."""


def operation_id(route: BaseRoute) -> str:
    """How programs and the audit log call an operation: `createSnippet`."""
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
    """A ready answer; values that were validated when they were stored are not validated again."""
    return JSONResponse(value, status_code=status, headers=headers)


def json_fast(value: object) -> Response:
    """The same of a long list of plain values, in a sixth of the time."""
    return Response(msgspec.json.encode(value), media_type="application/json")


def json_model(
    value: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A model as its answer."""
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
    """Operations that need none; who asks too often from one address is refused."""
    return APIRouter(
        route_class=LazyRoute,
        prefix=prefix,
        tags=[tag],
        responses=refusals(429, 500),
        dependencies=[Depends(limit_by_address)],
        generate_unique_id_function=operation_id,
    )


_BUILDING: Final = RLock()
"""The document asks for all routes in a thread, while the event loop may need one of them."""


class LazyRoute(APIRoute):
    """A route that knows at first only what routing needs: its path, its methods and its name."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **declared: Any) -> None:
        self._declare: Callable[[], None] = partial(super().__init__, path, endpoint, **declared)
        self.path = path
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.endpoint = endpoint
        self.name = declared.get("name") or get_name(endpoint)
        self.methods = set(declared["methods"])

    def __getattr__(self, name: str) -> Any:
        """Build the route, if it is not built yet, for what it does not know yet."""
        with _BUILDING:
            if declare := self.__dict__.pop("_declare", None):
                self._build(declare)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None

    def _build(self, declare: Callable[[], None]) -> None:
        """What fails, as for want of memory, is tried again when somebody asks the next time."""
        try:
            declare()
            self._build_body()
        except BaseException:
            self._declare = declare
            raise

    def _build_body(self) -> None:
        """Models put building off in turn; here the warning that FastAPI silences stays silent."""
        if self.body_field is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
            self.body_field.validate(None)
