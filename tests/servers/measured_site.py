"""A web site on loopback whose pages shift, block, and go wrong in known ways."""

import asyncio
import contextlib
import random
import struct
import zlib
from collections.abc import AsyncIterator

from aiohttp import web

FIRST_BYTE_MS = 100
"""How long the server thinks before it answers."""
SHIFT = 0.15625
"""Of 600 px that move down by 200 px in a window of 1280 x 720: half of it, times 200/1280 …"""
BLOCKED_MS = (150, 250)
"""How long the page's own scripts hold the main thread, after the first paint."""
IMAGE_MS = 1100
"""When the largest image begins to load, from the first paint on, as all else."""
CONSOLE_ERRORS, NETWORK_ERRORS, DOCUMENT_ERRORS = 5, 3, 2
"""Two of the page's own and three that the browser writes about failed loads; 404, 500 and a
refused connection; one throw and one rejection."""

MEASURED = """<!doctype html><title>Measured</title>
<style>body { margin: 0 } #low { height: 600px; background: #ccc }</style>
<div id="room"></div><div id="low">text that is painted first</div>
<script>
  const block = (ms) => { const end = performance.now() + ms; while (performance.now() < end); };
  let painted = () => {};
  const first = new Promise((done) => { painted = done });
  const at = (ms, act) => first.then(() => setTimeout(act, ms));
  const paints = new PerformanceObserver((list) => {
    if (list.getEntriesByName('first-contentful-paint').length) painted();
  });
  paints.observe({ type: 'paint', buffered: true });
  at(300, () => { room.style.height = '200px' });
  at(500, () => block(150));
  at(800, () => block(250));
  at(1100, () => {
    const image = new Image(1200, 500);
    image.src = '/noise.png';
    low.replaceChildren(image);
  });
  at(100, () => { console.error('first'); console.error('second'); fetch('/missing') });
  at(120, () => { fetch('/broken'); fetch('http://127.0.0.1:1/').catch(() => {}) });
  at(140, () => { throw new Error('thrown by the page') });
  at(150, () => { Promise.reject(new Error('rejected by the page')) });
  at(1900, () => { document.title = 'Done' });
</script>"""


@contextlib.asynccontextmanager
async def measured_site() -> AsyncIterator[str]:
    """Its address, for as long as the block lasts."""
    application = web.Application()
    application.router.add_get("/", _measured)
    application.router.add_get("/plain", _plain)
    application.router.add_get("/popup", _popup)
    application.router.add_get("/noise.png", _noise)
    application.router.add_get("/broken", _broken)
    application.router.add_get("/away", _away)
    application.router.add_get("/favicon.ico", _nothing)
    application.router.add_post("/orders", _ordered)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def _measured(_: web.Request) -> web.Response:
    await asyncio.sleep(FIRST_BYTE_MS / 1000)
    return web.Response(text=MEASURED, content_type="text/html")


async def _plain(_: web.Request) -> web.Response:
    page = "<!doctype html><title>Plain</title><h1>Good tea</h1>"
    return web.Response(text=page, content_type="text/html")


async def _popup(_: web.Request) -> web.Response:
    page = "<!doctype html><button onclick=\"window.open('/plain')\">Open</button>"
    return web.Response(text=page, content_type="text/html")


async def _noise(_: web.Request) -> web.Response:
    # A flat image is too little content to be a largest contentful paint.
    return web.Response(body=noise_png(400, 200), content_type="image/png")


async def _broken(_: web.Request) -> web.Response:
    return web.Response(status=500, text="broken")


async def _away(_: web.Request) -> web.Response:
    return web.Response(status=302, headers={"location": "/plain"})


async def _nothing(_: web.Request) -> web.Response:
    return web.Response(status=204)


async def _ordered(request: web.Request) -> web.Response:
    return web.json_response({"asked": await request.json()}, status=201)


def noise_png(width: int, height: int) -> bytes:
    """An image that does not compress."""
    noise = random.Random(7)
    rows = b"".join(b"\0" + noise.randbytes(width * 3) for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)
