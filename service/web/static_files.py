"""Style sheets and scripts: read once, named by their content, kept by browsers for ever."""

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PREFIX: Final = "/assets"
_FOLDER: Final = Path(__file__).parent / "static"
_SERVED: Final = frozenset({".css", ".js", ".svg", ".png", ".woff2"})
_DIGEST_LETTERS: Final = 12
_FOREVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    name: str
    digest: str
    """The beginning of its content's SHA-256."""
    media_type: str
    content: bytes
    packed: bytes
    """The content as gzip."""

    @property
    def path(self) -> str:
        """Its address below the service's own."""
        return f"{PREFIX}/{self.digest}/{self.name}"


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name."""
    files = sorted(file for file in _FOLDER.iterdir() if file.suffix in _SERVED)
    return {file.name: _read(file) for file in files}


def _read(file: Path) -> Asset:
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LETTERS]
    media_type = mimetypes.types_map.get(file.suffix, "application/octet-stream")
    return Asset(file.name, digest, media_type, content, gzip.compress(content, 9, mtime=0))


async def serve_asset(request: Request) -> Response:
    """A file under its present digest."""
    asset = assets().get(request.path_params["name"])
    if asset is None or request.path_params["digest"] != asset.digest:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    headers = {
        "cache-control": _FOREVER,
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(asset.packed, media_type=asset.media_type, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
