"""A site on loopback that sells tea, and has pages that come late, in part, or never."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

_LATE_S: Final = 0.4
_TEA: Final = (
    "<!doctype html><title>Tea</title><h1>Good tea</h1><input><p></p>"
    "<button onclick=\"document.querySelector('p').textContent = 'Bought'\">Buy</button>"
    "<script>setTimeout(() => { const b = document.createElement('button'); b.id = 'later';"
    " b.textContent = 'Later'; document.body.append(b); }, 300);</script>"
)
_LOADING: Final = (
    "<!doctype html><title>Tea</title><h1>Good tea</h1><img src='/hangs'>"
    "<script>setTimeout(() => { document.querySelector('h1').textContent = 'Later tea' }, 300);"
    "</script>"
)
_BUSY: Final = (
    "<!doctype html><title>Tea</title><button>Buy</button>"
    "<script>onload = () => setTimeout(() => { for (;;); });</script>"
)
_PAGES: Final = {"/tea": _TEA, "/loading": _LOADING, "/busy": _BUSY}


@contextlib.asynccontextmanager
async def slow_site() -> AsyncIterator[str]:
    """Its address, for as long as the block lasts."""
    application = web.Application()
    application.router.add_get("/{path:.*}", _answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _answer(request: web.Request) -> web.StreamResponse:
    match request.path:
        case "/hangs":
            await asyncio.Event().wait()
        case "/streams":
            return await _stream(request)
        case "/slow":
            await asyncio.sleep(_LATE_S)
            return web.Response(text=_TEA, content_type="text/html")
        case "/json":
            return web.json_response({"tea": 1})
    if (page := _PAGES.get(request.path)) is None:
        return web.Response(status=404)
    return web.Response(text=page, content_type="text/html")


async def _stream(request: web.Request) -> web.StreamResponse:
    """A page whose end never comes."""
    response = web.StreamResponse(headers={"content-type": "text/html"})
    await response.prepare(request)
    await response.write(_TEA.encode())
    await asyncio.Event().wait()
    return response
