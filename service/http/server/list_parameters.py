"""Reads `tag[]=a&tag[]=b` as `tag=a&tag=b`: axios and PHP write lists in a query that way."""

import re
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

_BRACKETS: Final = re.compile(rb"(^|&)([^=&]*?)(?:\[\]|%5B%5D)(?==|&|$)", re.IGNORECASE)
"""A name with brackets at its end, as it is and percent-encoded."""


class ListParameters:
    """Middleware for the paths under some prefixes: names of parameters lose their brackets."""

    def __init__(self, app: ASGIApp, *, prefixes: tuple[str, ...]) -> None:
        self._app = app
        self._prefixes = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"].startswith(self._prefixes):
            scope["query_string"] = strip_brackets(scope["query_string"])
        await self._app(scope, receive, send)


def strip_brackets(query: bytes) -> bytes:
    """Take `[]` from the ends of names; values stay as they are."""
    return _BRACKETS.sub(rb"\1\2", query)
