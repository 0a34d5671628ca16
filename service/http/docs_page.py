"""The page that shows the OpenAPI document in Scalar, which we ship; it asks no other host."""

import gzip
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

PAGE_PATH: Final = "/docs"
_FOLDER: Final = Path(__file__).parent / "viewer"
VIEWER: Final = "scalar-1.72.1.js"
"""Kept as gzip, under a name of its own per version. `vendored.json` says where it comes from."""
_START: Final = "start.js"
_SCRIPT: Final = "text/javascript"
_BLOCK_BYTES: Final = 64 * 1024
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:;"
    " style-src 'unsafe-inline';"  # the viewer's elements have style attributes
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",  # for browsers that do not know frame-ancestors
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_FOREVER: Final[Mapping[str, str]] = {
    **_HEADERS,
    "cache-control": "public, max-age=31536000, immutable",
    "vary": "accept-encoding",
}


def install_page(app: FastAPI) -> None:
    """Serve the page and its scripts, each read from its file when it is asked for."""
    app.add_route(PAGE_PATH, _page, include_in_schema=False)
    app.add_route(f"{PAGE_PATH}/{{name}}", _script, include_in_schema=False)


async def _page(_request: Request) -> Response:
    return FileResponse(_FOLDER / "page.html", media_type="text/html", headers=_HEADERS)


async def _script(request: Request) -> Response:
    match request.path_params["name"]:
        case name if name == _START:
            return FileResponse(_FOLDER / _START, media_type=_SCRIPT, headers=_HEADERS)
        case name if name == VIEWER:
            return _viewer(request)
        case _:
            raise HTTPException(HTTPStatus.NOT_FOUND)


def _viewer(request: Request) -> Response:
    packed = _FOLDER / f"{VIEWER}.gz"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return StreamingResponse(_unpack(packed), media_type=_SCRIPT, headers=_FOREVER)
    headers = {**_FOREVER, "content-encoding": "gzip"}
    return FileResponse(packed, media_type=_SCRIPT, headers=headers)


def _unpack(packed: Path) -> Iterator[bytes]:
    with gzip.open(packed) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
