"""Where jobs ping: no key but the token in the address."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.clock import Clock
from service.db.engine import Database
from service.heartbeats.actions import ReceivedPing, is_watched, take_pings
from service.http.address import place_of
from service.http.auth import hold_back
from service.http.errors import NotFoundError
from service.http.rate import RateClass, RateLimits


@dataclass(frozen=True, slots=True)
class PingApi:
    """The ping path and what it is made of."""

    database: Database
    clock: Clock
    limits: RateLimits

    def routes(self) -> list[Route]:
        """GET and POST of `/ping/{token}`, with a slash at its end or without; no body is read."""
        return [self._route(path) for path in ("/ping/{token}", "/ping/{token}/")]

    def _route(self, path: str) -> Route:
        """Starlette lets HEAD in with GET, but who only looks at a link does not ping."""
        route = Route(path, self._ping)
        route.methods = {"GET", "POST"}
        return route

    async def _ping(self, request: Request) -> Response:
        token = str(request.path_params["token"])
        await self._hold(request, token)
        ping = ReceivedPing(
            ping_id=None,
            token=token,
            age_s=0,
            method=request.method,
            source=_source(request.headers),
            user_agent=request.headers.get("user-agent", ""),
        )

        def change(connection: Connection) -> int:
            return take_pings(connection, [ping], now_ms=self.clock.now_ms(connection))

        await self.database.write(change)
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def _hold(self, request: Request, token: str) -> None:
        """Looks the token up first, so that guessing tokens does not take the writer's time.

        It is looked up however many others were guessed from there: a ping that was lost would
        look like a job that did not run, and guessing costs a read of one row.

        Raises:
            NotFoundError: no check waits for pings with it.
            TooManyError: it pings too often, or too many others were guessed from there.
        """
        if not await self.database.read(lambda c: is_watched(c, token)):
            hold_back(self.limits.wait_s(RateClass.GUESSED_PINGS, place_of(request)))
            raise NotFoundError("No check waits for pings with this token.")
        hold_back(self.limits.wait_s(RateClass.PINGS, token))


def _source(headers: Mapping[str, str]) -> str:
    return headers.get("origin") or headers.get("referer") or ""
