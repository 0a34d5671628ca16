"""The files of a run, for whoever is signed in."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

import structlog
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.http.errors import NotFoundError
from service.http.responses import file_answer
from service.object_store.model import ObjectStore, ObjectStoreError, read_head
from service.results import actions as results
from service.results import assets
from service.results.assets import Asset
from service.web.visit import Visit

_SHOWN: Final = frozenset({"image/png", "image/jpeg", "image/webp", "video/webm", "video/mp4"})
"""What browsers show and run nothing of; all else is offered for saving."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEAD_BYTES: Final = 24
_MOST_PIXELS: Final = 30_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of a run."""

    name: str
    kind: str
    content_type: str
    size_bytes: int
    path: str
    """Where a browser reads it; empty: it is not stored any more, or did not arrive."""
    width: int | None = None
    """The width of a picture, in pixels. None: it is none, or does not say."""
    height: int | None = None


async def describe_files(
    store: ObjectStore, named: tuple[Asset, ...], *, at: str
) -> Sequence[File]:
    """The files of a result, as its page shows them; `at` is the path of that page.

    When the store does not answer, all seem to be kept, and whoever opens one is told.
    """
    try:
        kept = await assets.list_kept(store, named)
        return [await _describe(store, one, at, is_kept=one.file.key in kept) for one in named]
    except ObjectStoreError as problem:
        log.warning("artifacts.store_away", reason=str(problem))
        return [_seen(one, at, is_kept=True) for one in named]


async def serve_file(visit: Visit) -> Response:
    """One file of a run."""
    params = visit.request.path_params
    asset = await find_file(visit, params["check_id"], params["result_id"], params["name"])
    return await send_file(visit, asset)


async def send_file(visit: Visit, asset: Asset) -> Response:
    """A file as a browser is given it: pictures and films to be shown, all else to be saved."""
    found = await assets.open_asset(visit.backend.artifacts, asset)
    is_shown = asset.content_type.partition(";")[0].lower() in _SHOWN
    return file_answer(
        visit.request,
        found,
        sha256=asset.artifact.sha256,
        media_type=asset.content_type,
        name=None if is_shown else asset.artifact.name,
    )


async def find_file(visit: Visit, check_id: str, result_id: str, name: str) -> Asset:
    """A file of a result.

    Raises:
        NotFoundError: there is none.
    """

    def read(connection: Connection) -> Asset:
        checks.find(connection, visit.account_id, check_id)
        stored = results.find(connection, check_id, result_id)
        if stored is None:
            raise NotFoundError(f"There is no result {result_id} of this check.")
        found = assets.assets_of(connection, visit.account_id, stored)
        return assets.find_asset(found, name)

    return await visit.read(read)


async def _describe(store: ObjectStore, asset: Asset, at: str, *, is_kept: bool) -> File:
    file = _seen(asset, at, is_kept=is_kept)
    if not is_kept or file.kind != "screenshot":
        return file
    head = await read_head(await store.find(asset.file.key), _PNG_HEAD_BYTES)
    width, height = _size(head)
    return replace(file, width=width, height=height)


def _seen(asset: Asset, at: str, *, is_kept: bool) -> File:
    one = asset.artifact
    return File(
        name=one.name,
        kind=one.kind,
        content_type=asset.content_type,
        size_bytes=one.size_bytes,
        path=f"{at}/files/{quote(one.name)}" if is_kept else "",
    )


def _size(head: bytes) -> tuple[int | None, int | None]:
    """Width and height of a PNG, which its first chunk has."""
    if len(head) < _PNG_HEAD_BYTES or not head.startswith(_PNG):
        return None, None
    width, height = struct.unpack(">II", head[16:_PNG_HEAD_BYTES])
    fits = 0 < width <= _MOST_PIXELS and 0 < height <= _MOST_PIXELS
    return (width, height) if fits else (None, None)
