"""What answers at the viewer's origin: the viewer's files, and traces by signed links."""

import gzip
import mimetypes
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from service.object_store.model import ObjectStore, ObjectStoreError
from service.object_store.object_response import object_response
from service.traces.trace_links import VERSION, TraceLinks

_FOLDER: Final = Path(__file__).parent / "viewer"
ARCHIVE: Final = _FOLDER / f"trace-viewer-{VERSION}.zip"
"""`vendored.json` says where it comes from."""
_WORKER: Final = "sw.bundle.js"
PREFIX: Final = f"/v{VERSION}"
_LOOPBACK: Final = "http://127.0.0.1:* http://localhost:*"
_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' blob: data:; media-src 'self' blob: data:; font-src 'self' data:;"
    " connect-src 'self'; frame-src 'self' blob: data:; worker-src 'self'; manifest-src 'self';"
    " object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'self' {pages}"
)
"""Nothing of it may ask another origin for anything; pages of the service may frame it."""
_COMMON: Final[Mapping[str, str]] = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "origin-agent-cluster": "?1",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_FOREVER: Final = "public, max-age=31536000, immutable"
_ENDED: Final = "This link has ended, or the trace is not stored any more. Open the result anew.\n"


class _Content(NamedTuple):
    media_type: str
    plain: bytes
    packed: bytes


def viewer_app(links: TraceLinks, artifacts: ObjectStore, *, public_url: str | None) -> Starlette:
    """The application; it knows no session, no key and no database."""
    headers = {**_COMMON, "content-security-policy": _POLICY.format(pages=_pages(public_url))}

    async def serve_file(request: Request) -> Response:
        content = _contents().get(request.path_params["name"])
        if content is None:
            return PlainTextResponse("There is no such file.\n", 404, headers)
        sent = {**headers, "cache-control": _FOREVER, "vary": "accept-encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(content.plain, media_type=content.media_type, headers=sent)
        sent["content-encoding"] = "gzip"
        return Response(content.packed, media_type=content.media_type, headers=sent)

    async def serve_trace(request: Request) -> Response:
        file = links.read(request.path_params["token"])
        try:
            found = await artifacts.find(file.key) if file else None
        except ObjectStoreError as problem:
            return PlainTextResponse(f"{problem}\n", problem.status, headers)
        if found is None:
            return PlainTextResponse(_ENDED, 404, headers)
        sent = {**headers, "cache-control": "private, no-store"}
        return object_response(request, found, media_type="application/zip", headers=sent)

    return Starlette(
        routes=[
            Route(f"{PREFIX}/traces/{{token}}.zip", serve_trace),
            Route(f"{PREFIX}/{{name:path}}", serve_file),
        ]
    )


def viewer_path(token: str) -> str:
    """Where the viewer shows the trace of a link, below its origin."""
    return f"{PREFIX}/index.html?trace=traces/{token}.zip"


def _pages(public_url: str | None) -> str:
    if public_url is None:
        return _LOOPBACK
    parts = urlsplit(public_url)
    return f"{parts.scheme}://{parts.netloc}"


@cache
def _contents() -> Mapping[str, _Content]:
    """The viewer's files by their path; the worker behind our guard."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    found[_WORKER] = (_FOLDER / "guard.js").read_bytes() + found[_WORKER]
    return {name: _pack(name, content) for name, content in found.items()}


def _pack(name: str, content: bytes) -> _Content:
    suffix = Path(name).suffix
    kind = mimetypes.types_map.get(suffix, _TYPES.get(suffix, "application/octet-stream"))
    return _Content(kind, content, gzip.compress(content, 6, mtime=0))


_TYPES: Final = {".webmanifest": "application/manifest+json", ".ttf": "font/ttf"}
