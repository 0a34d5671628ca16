"""The files of a run, for whoever is signed in."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.http.errors import NotFoundError
from service.http.responses import file_answer
from service.results import actions as results
from service.results import assets
from service.results.assets import Asset
from service.results.model import StoredResult
from service.web.visit import Visit

_SHOWN: Final = frozenset({"image/png", "image/jpeg", "image/webp", "video/webm", "video/mp4"})
"""What browsers show and run nothing of; all else is offered for saving."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_MOST_PIXELS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of a run."""

    name: str
    kind: str
    content_type: str
    size_bytes: int
    path: str
    """Where a browser reads it; empty: it is not stored any more, or did not arrive."""
    width: int | None
    """The width of a picture, in pixels. None: it is none, or does not say."""
    height: int | None


def list_files(connection: Connection, visit: Visit, stored: StoredResult) -> Sequence[File]:
    """The files that a result names."""
    folder = visit.backend.artifacts
    found = assets.assets_of(connection, visit.account_id, stored, folder=folder)
    return [_describe(one, stored) for one in found]


async def serve_file(visit: Visit) -> Response:
    """One file of a run."""
    params = visit.request.path_params
    asset = await find_file(visit, params["check_id"], params["result_id"], params["name"])
    is_shown = asset.content_type.partition(";")[0].lower() in _SHOWN
    return file_answer(
        visit.request,
        asset.path,
        sha256=asset.artifact.sha256,
        media_type=asset.content_type,
        name=None if is_shown else asset.artifact.name,
    )


async def find_file(visit: Visit, check_id: str, result_id: str, name: str) -> Asset:
    """A file that is stored.

    Raises:
        NotFoundError: there is none.
    """

    def read(connection: Connection) -> Asset:
        checks.find(connection, visit.account_id, check_id)
        stored = results.find(connection, check_id, result_id)
        if stored is None:
            raise NotFoundError(f"There is no result {result_id} of this check.")
        folder = visit.backend.artifacts
        found = assets.assets_of(connection, visit.account_id, stored, folder=folder)
        return assets.find_asset(found, name)

    return await visit.read(read)


def _describe(asset: Asset, stored: StoredResult) -> File:
    one, is_kept = asset.artifact, asset.path.is_file()
    at = f"/checks/{stored.check_id}/results/{stored.id}/files/{quote(one.name)}"
    width, height = _size(asset.path) if is_kept and one.kind == "screenshot" else (None, None)
    return File(
        name=one.name,
        kind=one.kind,
        content_type=asset.content_type,
        size_bytes=one.size_bytes,
        path=at if is_kept else "",
        width=width,
        height=height,
    )


def _size(path: Path) -> tuple[int | None, int | None]:
    """Width and height of a PNG, which its first chunk has."""
    try:
        with path.open("rb") as file:
            head = file.read(24)
    except OSError:
        return None, None
    if len(head) < 24 or not head.startswith(_PNG):
        return None, None
    width, height = struct.unpack(">II", head[16:24])
    fits = 0 < width <= _MOST_PIXELS and 0 < height <= _MOST_PIXELS
    return (width, height) if fits else (None, None)
