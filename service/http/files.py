"""Files as answers: whole or in part, and not again to whom has them."""

from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response


def file_answer(
    request: Request, path: Path, *, sha256: str, media_type: str, name: str | None = None
) -> Response:
    """A file whose content never changes under its address.

    It is offered for saving, under the name if there is one, and never shown as a page: it is
    somebody else's.
    """
    headers = {
        "etag": f'"{sha256}"',
        "cache-control": "private, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox",
    }
    if f'"{sha256}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return FileResponse(path, media_type=media_type, filename=name, headers=headers)
