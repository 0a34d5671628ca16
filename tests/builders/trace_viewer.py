"""Playwright's own trace viewer, in a real browser, looking at a file."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from tests.builders.scripts import runtimes_here

_LOOK: Final = Path(__file__).with_name("trace_viewer.cjs")


class Viewed(msgspec.Struct, frozen=True):
    """What the viewer showed."""

    actions: list[str]
    requests: list[str]
    fields: list[str]
    """Values of the fields in the page's last snapshot."""
    problems: list[str]
    """What the viewer itself complained of."""


async def viewed(trace: Path) -> Viewed:
    """Open a trace in the viewer of the newest runtime."""
    runtimes = runtimes_here()
    runtime = runtimes.get(None)
    core = runtime.modules / "playwright-core"
    assert runtimes.browser is not None
    async with _served(core / "lib/vite/traceViewer", trace) as url:
        looking = await asyncio.create_subprocess_exec(
            runtime.node,
            _LOOK,
            core,
            runtimes.browser,
            url,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complained = await looking.communicate()
    assert looking.returncode == 0, complained.decode()
    return msgspec.json.decode(said, type=Viewed)


@contextlib.asynccontextmanager
async def _served(viewer: Path, trace: Path) -> AsyncIterator[str]:
    async def send_trace(_: web.Request) -> web.FileResponse:
        return web.FileResponse(trace)

    application = web.Application()
    application.router.add_static("/trace", viewer)
    application.router.add_get("/trace.zip", send_trace)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        at = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield f"{at}/trace/index.html?trace={at}/trace.zip"
    finally:
        await runner.cleanup()
