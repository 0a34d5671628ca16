"""Cookies that only the service reads."""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

SESSION_COOKIE: Final = "picket_session"
BROWSER_COOKIE: Final = "picket_browser"
"""Whom the browser has signed in before."""
LOGIN_COOKIE: Final = "picket_login"
"""What is remembered on the way to the identity provider."""
NEW_KEY_COOKIE: Final = "picket_new_key"
"""A new key, on the way from the form that made it to the page that shows it once."""
_HOST_PREFIX: Final = "__Host-"
"""Browsers keep such a cookie from other hosts, and from whoever speaks without TLS."""
_SAME_SITE: Final = "lax"
"""Sent when a link elsewhere leads here, and never with a form that stands elsewhere."""


class PrivateCookies:
    """Reads and sets them, under the name that the connection allows."""

    def __init__(self, public_url: str | None) -> None:
        parts = urlsplit(public_url or "")
        self._secure_host = parts.netloc.lower() if parts.scheme == "https" else None
        """The host that people reach by https only. None: not known."""

    def read(self, request: HTTPConnection, name: str) -> str:
        """The value; empty when there is none."""
        return request.cookies.get(self._name(request, name), "")

    def set(
        self, request: HTTPConnection, answer: Response, name: str, value: str, *, max_age_s: int
    ) -> None:
        """Have the browser keep a value."""
        answer.set_cookie(
            self._name(request, name),
            value,
            max_age=max_age_s,
            httponly=True,
            secure=self.is_secure(request),
            samesite=_SAME_SITE,
        )

    def delete(self, request: HTTPConnection, answer: Response, name: str) -> None:
        """Have the browser forget it."""
        answer.delete_cookie(
            self._name(request, name),
            httponly=True,
            secure=self.is_secure(request),
            samesite=_SAME_SITE,
        )

    def _name(self, request: HTTPConnection, name: str) -> str:
        return _HOST_PREFIX + name if self.is_secure(request) else name

    def is_secure(self, request: HTTPConnection) -> bool:
        """Whether the browser speaks TLS, which a proxy before us may end without a word of it."""
        if request.url.scheme == "https":
            return True
        return self._secure_host == request.headers.get("host", "").lower()
