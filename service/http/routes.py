"""How routes of the public API are declared: their refusals, their answers, their bodies."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from fastapi import Path
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from service.http.errors import phrase
from service.http.strict import NO_NUL

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
