"""The demo target's web side: a small shop with a slow, a flaky and a broken corner."""

import asyncio
from typing import Final

from aiohttp import web

SLOW_S: Final = 0.4
"""How long `/slow` thinks."""
FLAKY_EVERY: Final = 4
"""`/flaky` answers 503 to every so many-th request."""
_STOCK: Final = {
    "shop": "corner",
    "open": True,
    "items": [{"name": "tea", "count": 12}, {"name": "bread", "count": 3}],
}


class DemoShop:
    """Answers for HTTP and HTTPS alike."""

    def __init__(self) -> None:
        self._flaky_requests = 0

    def application(self) -> web.Application:
        """The shop's routes."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/", self._front),
                web.get("/old", self._old),
                web.get("/slow", self._slow),
                web.get("/flaky", self._flaky),
                web.get("/broken", self._broken),
                web.get("/api/stock", self._stock),
                web.post("/api/orders", self._order),
            ]
        )
        return app

    async def _front(self, _request: web.Request) -> web.Response:
        return web.Response(
            text="<!doctype html><title>Corner shop</title><h1>Open</h1>", content_type="text/html"
        )

    async def _old(self, _request: web.Request) -> web.Response:
        return web.Response(status=301, headers={"location": "/"})

    async def _slow(self, _request: web.Request) -> web.Response:
        await asyncio.sleep(SLOW_S)
        return web.Response(text="Sorry for the wait.")

    async def _flaky(self, _request: web.Request) -> web.Response:
        self._flaky_requests += 1
        if self._flaky_requests % FLAKY_EVERY == 0:
            return web.Response(status=503, text="Not right now.")
        return web.Response(text="Here you are.")

    async def _broken(self, _request: web.Request) -> web.Response:
        return web.Response(status=500, text="The till is jammed.")

    async def _stock(self, _request: web.Request) -> web.Response:
        return web.json_response(_STOCK)

    async def _order(self, request: web.Request) -> web.Response:
        try:
            order = await request.json()
        except ValueError:
            return web.json_response({"error": "send JSON"}, status=400)
        answer = {"accepted": True, "order": order}
        return web.json_response(answer, status=201, headers={"x-order": "1001"})
