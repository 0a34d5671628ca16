"""Playwright's own trace viewer, in a real browser, looking at a file."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from picket.trace import read_trace, serve_traces
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
    """Open a trace in the viewer of the newest runtime, and look at all that it shows."""
    async with serve_traces(runtimes_here().get(None), [read_trace(trace)]) as (url,):
        return await looked_at(url, "all")


async def looked_at(url: str, *what: str, enter: tuple[str, ...] = ()) -> Viewed:
    """What a browser shows at this address.

    `what`: "all", or "actions" and perhaps the address of a proxy for whatever it asks for.
    `enter`: the command line that starts the browser in a network of its own.
    """
    runtimes = runtimes_here()
    runtime = runtimes.get(None)
    assert runtimes.browser is not None
    looking = await asyncio.create_subprocess_exec(
        *enter,
        runtime.node,
        _LOOK,
        runtime.modules / "playwright-core",
        runtimes.browser,
        url,
        *what,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await looking.communicate()
    assert looking.returncode == 0, complained.decode()
    return msgspec.json.decode(said, type=Viewed)
