"""The page that the checks look at: each path behaves in its own way."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

_FLAKY: Final = 2


class Target:
    """`/held…` answers once it is released, everything else at once; all are counted.

    `…/flaky…` answers 503 to the first two requests.
    """

    def __init__(self) -> None:
        self.url = ""
        self.seen: Counter[str] = Counter()
        """Requests per path."""
        self.waiting: Counter[str] = Counter()
        """Requests that are held now, per path."""
        self._released = asyncio.Event()

    def release(self) -> None:
        """Answer every held request, and those that come."""
        self._released.set()

    def hold(self) -> None:
        """Hold requests again."""
        self._released.clear()

    async def held(self, count: int = 1, *, path: str = "/held", limit_s: float = 90) -> None:
        """Wait until so many requests are held."""
        async with asyncio.timeout(limit_s):
            while self.waiting[path] < count:  # noqa: ASYNC110 - a fault may end a request too
                await asyncio.sleep(0.02)

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path
        self.seen[path] += 1
        status = 503 if "/flaky" in path and self.seen[path] <= _FLAKY else 200
        if not path.startswith("/held"):
            return web.Response(text="here", status=status)
        self.waiting[path] += 1
        try:
            await self._released.wait()
        finally:
            self.waiting[path] -= 1
        return web.Response(text="at last", status=status)


@asynccontextmanager
async def serve_target() -> AsyncIterator[Target]:
    target = Target()
    app = web.Application()
    app.router.add_get("/{path:.*}", target._answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        target.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield target
    finally:
        target.release()
        await runner.cleanup()
