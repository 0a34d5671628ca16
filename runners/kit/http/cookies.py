"""The cookies of one chain of redirects; they end with it."""

from email.message import Message
from typing import TYPE_CHECKING, Final
from urllib.request import Request

from runners.kit.http.request import HopRequest

if TYPE_CHECKING:
    from http.cookiejar import CookieJar

_MAX_COOKIES: Final = 100
"""More than any login needs; beyond that, what a hop sets is not kept."""


class ChainCookies:
    """What the hops so far have set, sent back as a browser would."""

    def __init__(self) -> None:
        self._jar: CookieJar | None = None
        """None: nothing has been set yet, as is usual; a jar costs more than an exchange."""

    def take(self, hop: HopRequest, lines: tuple[str, ...]) -> None:
        """Keep what an answer to this hop set."""
        if not lines:
            return
        if self._jar is None:
            # Imported here: few targets set cookies on the way, and it holds 200 kB.
            from http.cookiejar import CookieJar  # noqa: PLC0415

            self._jar = CookieJar()
        if len(self._jar) < _MAX_COOKIES:
            asked = Request(hop.url)  # noqa: S310 - never opened, only matched
            # The jar asks its answer for nothing but `info()`.
            self._jar.extract_cookies(_Answer(lines), asked)  # type: ignore[arg-type]

    def of(self, hop: HopRequest) -> str | None:
        """The Cookie header for this hop. None: none."""
        if self._jar is None:
            return None
        request = Request(hop.url)  # noqa: S310 - never opened, only matched
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie")


class _Answer:
    """As much of a response as the jar asks for."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self._headers = Message()
        for line in lines:
            self._headers.add_header("Set-Cookie", line)

    def info(self) -> Message:
        return self._headers
