"""How long each request takes, told by its route: a path may hold a secret, as a ping's does."""

from collections.abc import Callable
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

OTHER: Final = "other"
"""The route of a request that none of ours answers."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Answered(Protocol):
    """Who wants to know."""

    def __call__(self, method: str, route: str, status: int, *, took_s: float) -> None:
        """A request was answered."""


class Stopwatch:
    """Around the whole application."""

    def __init__(
        self, app: Starlette, *, answered: Answered, monotonic: Callable[[], float]
    ) -> None:
        self._app = app
        self._answered = answered
        self._monotonic = monotonic
        plain = [route for route in app.routes if isinstance(route, Route)]
        self._paths = {route.path for route in plain}
        # Of several paths to one endpoint, the first names it.
        self._by_endpoint = {route.endpoint: route.path for route in reversed(plain)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        began_s, status = self._monotonic(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            if status:
                took_s = self._monotonic() - began_s
                self._answered(_method(scope), self._route(scope), status, took_s=took_s)

    def _route(self, scope: Scope) -> str:
        """The route's path with the names of its parameters."""
        if route := scope.get("route"):
            return str(route.path)
        if scope["path"] in self._paths:
            return str(scope["path"])
        endpoint = scope.get("endpoint")
        return self._by_endpoint.get(endpoint, OTHER) if endpoint else OTHER


def _method(scope: Scope) -> str:
    """One of those that there are: somebody could invent a million."""
    method = str(scope["method"])
    return method if method in _METHODS else OTHER
