"""The OpenAPI document, true to what the service answers, and a page that shows it offline."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from contract.release import RELEASE
from service.http.changing import IDEMPOTENCY_KEY
from service.http.docs_page import PAGE_PATH, docs_page
from service.http.error_body import ErrorBody
from service.http.examples import add_examples
from service.http.routes import SCHEMA_REF, refusals

DOCUMENT_PATH: Final = "/openapi.json"
TITLE: Final = "Picket"
_ABOUT: Final = (
    "Checks, where they run, what became of them, and runs on demand. Every request carries"
    " `Authorization: Bearer <API key>`; every refusal has the same body. Unknown fields of a"
    " body are passed over, but one that is nearly a known field is refused; numbers, booleans and"
    " texts are never converted into one another."
)


def install_openapi(app: FastAPI, document: Callable[[], dict[str, Any]]) -> None:
    """Serve the document and its page; FastAPI's own pages load their parts from elsewhere.

    `document` is asked when somebody first wants it, in a thread: it takes about a second.
    """

    @cache
    def written() -> bytes:
        return json.dumps(document(), separators=(",", ":")).encode()

    @cache
    def shown() -> bytes:
        return docs_page(document()).encode()

    async def raw(_request: Request) -> Response:
        return Response(await asyncio.to_thread(written), media_type="application/json")

    async def page(_request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(shown))

    app.openapi = document  # type: ignore[method-assign]  # the way FastAPI documents
    app.add_route(DOCUMENT_PATH, raw, include_in_schema=False)
    app.add_route(PAGE_PATH, page, include_in_schema=False)


def document_of(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """What routes say of themselves."""
    document = get_openapi(title=TITLE, version=RELEASE, description=_ABOUT, routes=routes)
    document["components"]["schemas"] |= _error_schemas()
    return _true(document)


def _error_schemas() -> dict[str, Any]:
    """What `refusals` refers to."""
    schema = ErrorBody.model_json_schema(ref_template=SCHEMA_REF)
    return {**schema.pop("$defs", {}), ErrorBody.__name__: schema}


def _true(document: dict[str, Any]) -> dict[str, Any]:
    """Without what is FastAPI's own, and with examples."""
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            _mend_422(operation)
            add_examples(f"{verb.upper()} {path}", operation)
    schemas = document.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document


def _mend_422(operation: dict[str, Any]) -> None:
    """Not FastAPI's, which no route of ours answers; but that of a key that came before."""
    operation["responses"].pop("422", None)
    if any(one["name"] == IDEMPOTENCY_KEY for one in operation.get("parameters", ())):
        operation["responses"]["422"] = refusals(422)[422]
