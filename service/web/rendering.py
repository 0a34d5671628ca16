"""Templates, and the responses that they become."""

import gzip
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from service.web import words
from service.web.states import name_state
from service.web.static_files import assets

_TEMPLATES: Final = Path(__file__).parent / "templates"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " media-src 'self'; connect-src 'self'; font-src 'self'; manifest-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
)
"""No script and no style stands in a page: what a target or a person wrote can add none."""
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",  # for browsers that do not know frame-ancestors
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
    "vary": "accept-encoding, cookie",
}
_PACKED_FROM_BYTES: Final = 1024
_ADDRESS: Final = re.compile(r"https://[^\s<>\"'`]+", re.IGNORECASE)
_TRAILING: Final = ".,;:!?…)]}"
"""Signs that end a sentence rather than an address."""
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_THEMES: Final = frozenset({"light", "dark"})
THEME_COOKIE: Final = "picket_theme"


class Renderer:
    """Turns templates into pages."""

    def __init__(self, public_url: str | None) -> None:
        self._prefix = urlsplit(public_url or "").path.rstrip("/")
        """The path below which a proxy serves us."""
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            extensions=["jinja2.ext.do"],
        )
        self._environment.globals |= {
            "url": self.url,
            "asset": self.asset,
            "plural": words.format_plural,
        }
        self._environment.filters |= {
            "duration": words.format_duration,
            "age": words.format_age,
            "moment": words.format_moment,
            "clock": _format_clock,
            "iso": words.format_iso,
            "count": words.format_count,
            "percent": words.format_percent,
            "bytes": words.format_bytes,
            "one_line": words.shorten_message,
            "breakable": _breakable,
            "linked": link_addresses,
            "state": name_state,
        }

    def url(self, path: str) -> str:
        """The address of a page, as a browser asks for it."""
        return self._prefix + path

    def asset(self, name: str) -> str:
        """The address of a style sheet or a script."""
        return self._prefix + assets()[name].path

    def render(self, template: str, **values: object) -> str:
        """A template as HTML."""
        return self._environment.get_template(template).render(**values)


def html_response(
    request: Request, html: str, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A page as a response, compressed where the browser reads that."""
    content = html.encode()
    sent = {**_HEADERS, **(headers or {})}
    if len(content) >= _PACKED_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        content = gzip.compress(content, 5, mtime=0)
        sent["content-encoding"] = "gzip"
    return Response(content, status, headers=sent, media_type="text/html")


def theme_of(request: Request) -> str | None:
    """The theme that was chosen. None: what the system has."""
    chosen = request.cookies.get(THEME_COOKIE)
    return chosen if chosen in _THEMES else None


def _format_clock(at_ms: int) -> str:
    return words.format_clock(at_ms, now_ms=time.time_ns() // 1_000_000)


def _breakable(text: Any) -> Markup:
    """Text that may wrap after the signs of a path or an address."""
    safe = str(escape(str(text)))
    for sign in ("/", ".", "_", "?", "=", ","):
        safe = safe.replace(sign, f"{sign}<wbr>")
    return Markup(safe)  # noqa: S704 - escaped above


def link_addresses(text: str) -> Markup:
    """Text whose https addresses are links; all else is as it was written."""
    parts: list[str] = []
    at = 0
    for found in _ADDRESS.finditer(text):
        address = _without_trailing(found.group())
        if not _is_https(address):
            continue
        parts += (str(escape(text[at : found.start()])), _link(address))
        at = found.start() + len(address)
    parts.append(str(escape(text[at:])))
    return Markup("".join(parts))  # noqa: S704 - escaped above


def _link(address: str) -> str:
    safe = escape(address)
    return f'<a href="{safe}" rel="nofollow noopener">{safe}</a>'


def _without_trailing(address: str) -> str:
    while address and address[-1] in _TRAILING:
        opening = _PAIRS.get(address[-1])
        if opening and address.count(opening) >= address.count(address[-1]):
            break
        address = address[:-1]
    return address


def _is_https(address: str) -> bool:
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False
