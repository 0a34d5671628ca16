"""A web server on loopback whose every page is broken in its own way."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

from aiohttp import web


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="All is well.", headers={"x-shop": "corner"})


async def _slow(_: web.Request) -> web.Response:
    await asyncio.sleep(0.3)
    return web.Response(text="At last.")


async def _hanging(_: web.Request) -> web.Response:
    await asyncio.sleep(3600)
    return web.Response()


async def _failing(_: web.Request) -> web.Response:
    return web.Response(status=503, text="Back soon.")


async def _loop(request: web.Request) -> web.Response:
    step = int(request.query.get("step", "0"))
    return web.Response(status=302, headers={"location": f"/loop?step={step + 1}"})


async def _to_nowhere(_: web.Request) -> web.Response:
    return web.Response(status=302, headers={"location": "http://127.0.0.1:1/"})


async def _json(_: web.Request) -> web.Response:
    return web.json_response({"open": False, "items": []})


async def _broken_json(_: web.Request) -> web.Response:
    return web.Response(text='{"open": tr', content_type="application/json")


async def _echo_secret(request: web.Request) -> web.Response:
    return web.Response(text=f"You sent {request.query_string} and {await request.text()}.")


async def _cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b"only this much")
    assert request.transport is not None
    request.transport.close()
    return response


@contextlib.asynccontextmanager
async def broken_web(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The running server; yields its address without a slash at the end."""
    app = web.Application()
    pages = {
        "/ok": _ok,
        "/slow": _slow,
        "/hanging": _hanging,
        "/failing": _failing,
        "/loop": _loop,
        "/to-nowhere": _to_nowhere,
        "/json": _json,
        "/broken-json": _broken_json,
        "/secret": _echo_secret,
        "/cut": _cut,
    }
    for path, page in pages.items():
        app.router.add_route("*", path, page)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
