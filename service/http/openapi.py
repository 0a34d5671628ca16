"""The OpenAPI document, true to what the service answers, and a page that shows it offline."""

import json
from functools import cache, partial
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from service.http.docs_page import docs_page

DOCUMENT_PATH: Final = "/openapi.json"
PAGE_PATH: Final = "/docs"
_ABOUT: Final = (
    "Checks, where they run, what became of them, and runs on demand. Every request carries"
    " `Authorization: Bearer <API key>`; every refusal has the same body. Unknown fields of a"
    " body are passed over; numbers, booleans and texts are never converted into one another."
)


def install_openapi(app: FastAPI) -> None:
    """Serve the document and its page; FastAPI's own pages load their parts from elsewhere."""
    document = cache(partial(_document, app))

    @cache
    def written() -> bytes:
        return json.dumps(document(), separators=(",", ":")).encode()

    @cache
    def shown() -> bytes:
        return docs_page(document()).encode()

    async def raw(_request: Request) -> Response:
        return Response(written(), media_type="application/json")

    async def page(_request: Request) -> Response:
        return HTMLResponse(shown())

    app.openapi = document  # type: ignore[method-assign]  # the way FastAPI documents
    app.add_route(DOCUMENT_PATH, raw, include_in_schema=False)
    app.add_route(PAGE_PATH, page, include_in_schema=False)


def _document(app: FastAPI) -> dict[str, Any]:
    return _true(
        get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
    )


def _true(document: dict[str, Any]) -> dict[str, Any]:
    """Without FastAPI's 422, which no route of ours answers."""
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    schemas = document.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document
