"""Stored files as responses, whole or the range that was asked for."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from service.object_store.model import RemoteObject

_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


def object_response(
    request: Request,
    found: Path | RemoteObject,
    *,
    media_type: str,
    headers: Mapping[str, str],
    name: str | None = None,
) -> Response:
    """A stored file; offered for saving if it has a name, a plain one of a URL's letters."""
    if not isinstance(found, RemoteObject):
        return FileResponse(found, media_type=media_type, filename=name, headers=headers)
    size = found.size_bytes
    sent = {**headers, "accept-ranges": "bytes"}
    if name is not None:
        sent["content-disposition"] = f'attachment; filename="{name}"'
    wanted = request.headers.get("range", "")
    if request.headers.get("if-range", sent.get("etag")) != sent.get("etag"):
        wanted = ""  # of an older file
    part = parse_range(wanted, size)
    if part is None:
        sent["content-range"] = f"bytes */{size}"
        return Response(status_code=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=sent)
    start, stop = part
    status = HTTPStatus.OK
    if (start, stop) != (0, size) or _RANGE.fullmatch(wanted):
        status = HTTPStatus.PARTIAL_CONTENT
        sent["content-range"] = f"bytes {start}-{stop - 1}/{size}"
    sent["content-length"] = str(stop - start)
    if request.method == "HEAD":
        return Response(status_code=status, media_type=media_type, headers=sent)
    return StreamingResponse(
        found.read(start, stop), status_code=status, media_type=media_type, headers=sent
    )


def parse_range(text: str, size: int) -> tuple[int, int] | None:
    """Where the wanted part begins and where the rest does. None: the file has no such part.

    What is no single range of bytes is ignored, as RFC 9110 allows: the whole file is wanted.
    """
    given = _RANGE.fullmatch(text)
    if given is None or given.group(0) == "bytes=-":
        return 0, size
    first, last = given.groups()
    if not first:
        start, stop = max(size - int(last), 0), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
    return (start, stop) if start < stop else None
