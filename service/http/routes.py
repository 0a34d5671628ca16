"""How routes of the public API are declared: their refusals, their answers, their bodies."""

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from service.http.error_body import ErrorBody
from service.http.errors import phrase
from service.http.strict import NO_NUL

ONE: Final = "/{id}"
"""The path of one thing."""
CheckId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]

EVERYWHERE: Final = (400, 401, 403, 408, 413, 429, 500, 503)
"""Refusals that any operation with a key can answer."""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries: these statuses have the one error body."""
    return {status: {"model": ErrorBody, "description": phrase(status)} for status in statuses}


def answers(
    status: int, model: Any, description: str, *also: int
) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries of an operation: its success, and the refusals of its own."""
    return {status: {"model": model, "description": description}, **refusals(*also)}


def json(value: object, *, status: int = 200) -> Response:
    """A ready answer; values that were validated when they were stored are not validated again."""
    return JSONResponse(value, status_code=status)


def json_model(value: BaseModel, *, status: int = 200) -> Response:
    """A model as its answer."""
    return Response(
        value.model_dump_json(by_alias=True), status_code=status, media_type="application/json"
    )
