"""Whether a request that changes something comes from a page of ours."""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from service.http.errors import ForbiddenError

_OURS: Final = frozenset({"same-origin", "none"})
"""`none`: somebody typed the address, or opened a bookmark."""
_ELSEWHERE: Final = "This form stands on another site. Nothing was changed: use the pages here."


def require_same_origin(request: Request, public_url: str | None) -> None:
    """Refuse what a page of another site had a browser send.

    Browsers say so in `Sec-Fetch-Site`, and by http in `Origin` alone. A program sends neither.

    Raises:
        ForbiddenError: it comes from elsewhere.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site not in _OURS:
            raise ForbiddenError(_ELSEWHERE)
        return
    origin = request.headers.get("origin")
    if origin is not None and _host(origin) not in _own_hosts(request, public_url):
        raise ForbiddenError(_ELSEWHERE)


def _own_hosts(request: Request, public_url: str | None) -> set[str]:
    """The schemes are not compared: a proxy that ends TLS may hide its own from us."""
    return {request.headers.get("host", "").lower(), _host(public_url or "")} - {""}


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""
