"""Where an answer sends us next, and what goes along. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.http.request import Header, HopRequest, Origin, address

MAX_REDIRECTS: Final = 10
MAX_LOCATION_CHARS: Final = 8192
"""As long as servers take a request's address; longer ones would swell the result hop by hop."""
SHOWN_LOCATION_CHARS: Final = 500
"""How much of an address a sentence shows."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OF_THE_BODY: Final = frozenset(
    {"content-type", "content-encoding", "content-language", "content-location"}
)


def next_hop(hop: HopRequest, status_code: int, location: str) -> HopRequest:
    """The request that follows a redirect.

    303 turns everything but HEAD into GET, 301 and 302 only POST, as browsers and curl do; the
    rest repeats method and body. What is personal (credentials, cookies, locked headers, a Host
    of one's own) never leaves its origin, and does not come back on the way home either.

    Raises:
        CheckFailed: of kind REDIRECT, when the location is no http or https URL.
    """
    url, origin = _target(hop, location)
    headers = hop.headers
    if origin != hop.origin:
        headers = tuple(one for one in headers if not one.personal)
    method, body = _method_after(status_code, hop.method), hop.body
    if method != hop.method:
        body = None
        headers = tuple(one for one in headers if one.name.lower() not in _OF_THE_BODY)
    return replace(hop, url=url, origin=origin, method=method, body=body, headers=headers)


def _target(hop: HopRequest, location: str) -> tuple[str, Origin]:
    shown = _shown(location)
    detail = {"code": "ERR_BAD_REDIRECT", "location": shown}
    if len(location) > MAX_LOCATION_CHARS:
        raise CheckFailed(
            FailureKind.REDIRECT,
            f"{_shown(hop.url)} redirects to an address of {len(location)} characters; "
            f"{MAX_LOCATION_CHARS} is the longest that is followed.",
            detail,
        )
    try:
        return address(urljoin(hop.url, location))
    except (CheckFailed, ValueError) as problem:
        raise CheckFailed(
            FailureKind.REDIRECT,
            f"{_shown(hop.url)} redirects to {shown}, which is no http or https URL.",
            detail,
        ) from problem


def _shown(url: str) -> str:
    return url if len(url) <= SHOWN_LOCATION_CHARS else f"{url[:SHOWN_LOCATION_CHARS]}…"


def with_cookies(hop: HopRequest, cookies: str | None) -> HopRequest:
    """The request with the cookies that the chain has set so far, after the user's own."""
    if cookies is None:
        return hop
    own = [one.value for one in hop.headers if one.name.lower() == "cookie"]
    rest = tuple(one for one in hop.headers if one.name.lower() != "cookie")
    return replace(
        hop, headers=(*rest, Header("Cookie", "; ".join((*own, cookies)), personal=True))
    )


def too_many(visited: Sequence[str], location: str) -> CheckFailed:
    """The end of a chain that does not end by itself; a loop is shown."""
    return CheckFailed(
        FailureKind.REDIRECT,
        f"Gave up after {MAX_REDIRECTS} redirects; the last one pointed to "
        f"{_shown(location)}{_loop(visited, location)}.",
        {"code": "ERR_TOO_MANY_REDIRECTS", "location": _shown(location)},
    )


def _loop(visited: Sequence[str], location: str) -> str:
    if location not in visited:
        return ""
    since = len(visited) - 1 - visited[::-1].index(location)
    circle = [_shown(_path(url)) for url in (*visited[since:], location)]
    return f", which goes round in a circle: {' → '.join(circle)}"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _method_after(status_code: int, method: str) -> str:
    if status_code == 303:
        return method if method == "HEAD" else "GET"
    if status_code in {301, 302} and method == "POST":
        return "GET"
    return method
