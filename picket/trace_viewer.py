"""`picket trace`: Playwright's trace viewer, served on loopback for any browser.

The viewer is a folder of static files in each runtime's `playwright-core`, and a service worker
which reads the trace. It needs neither npx nor a window, and asks nobody else for anything.
"""

import asyncio
import getpass
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web
from rich.console import Console

from picket.demo_target import HOST
from picket.errors import CommandError, ExitCode
from picket.ports import hold_free
from picket.trace_files import TraceFile, TraceSource, find_traces
from runners.kit.harness import NO_RUNTIME
from runners.kit.scripts.runtimes import Runtime, find_runtimes

_VIEWER: Final = "playwright-core/lib/vite/traceViewer"
_HEADERS: Final = {
    # The same address may show the viewer of another version tomorrow.
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    # Snapshots of pages come from the service worker, which answers from the trace alone.
    "content-security-policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:",
}
_SSH_PORT: Final = "22"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """What the command line asked for."""

    source: str
    """A file, a folder or the id of a result."""
    data_dir: Path
    """Of `picket up`, which is asked for results where SERVICE_URL is not set."""
    port: int | None
    """Of the viewer. None: a free one."""


def open_trace(options: TraceOptions, console: Console) -> int:
    """Serve the viewer until stopped; gives the exit code.

    Raises:
        CommandError: there is no such trace, or no viewer on this machine.
    """
    if options.port is not None:
        hold_free(options.port, option="--port")
    runtimes = tuple(find_runtimes().by_id.values())
    if not runtimes:
        raise CommandError(
            f"{NO_RUNTIME} The trace viewer comes with it: run `picket setup`.", ExitCode.OWN_FAULT
        )
    asyncio.run(_serve_until_stopped(options, runtimes, console))
    return ExitCode.OK


async def _serve_until_stopped(
    options: TraceOptions, runtimes: Sequence[Runtime], console: Console
) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    source = TraceSource(data_dir=options.data_dir, environ=os.environ)
    async with find_traces(options.source, source) as traces:
        runtime = choose_runtime(runtimes, newest_playwright(traces))
        async with serve_traces(runtime, traces, port=options.port or 0) as addresses:
            for line in _lines(traces, addresses, runtime):
                console.out(line, highlight=False)
            console.file.flush()
            await stopped.wait()


def choose_runtime(runtimes: Sequence[Runtime], playwright: str | None) -> Runtime:
    """The runtime whose viewer reads traces of this Playwright: a viewer reads older ones too.

    The one of the same version, or the next above it, or the newest. None: the version is unknown.
    """
    in_order = sorted(runtimes, key=lambda one: _numbers(one.playwright))
    if playwright is None:
        return in_order[-1]
    wanted = _numbers(playwright)
    able = (one for one in in_order if _numbers(one.playwright) >= wanted)
    return next(able, in_order[-1])


def newest_playwright(traces: Sequence[TraceFile]) -> str | None:
    """The newest version that wrote one of them. None: no trace names its version."""
    named = [trace.playwright for trace in traces if trace.playwright is not None]
    return max(named, key=_numbers, default=None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdecimal())


@asynccontextmanager
async def serve_traces(
    runtime: Runtime, traces: Sequence[TraceFile], *, port: int = 0
) -> AsyncIterator[tuple[str, ...]]:
    """The address of each trace in the runtime's viewer.

    A random word in the path keeps other users of this machine, and pages of other sites, out.
    """
    word = secrets.token_urlsafe(12)
    application = web.Application()
    application.on_response_prepare.append(_add_headers)
    for number, trace in enumerate(traces, 1):
        application.router.add_get(f"/{word}/traces/{number}.zip", partial(_send_file, trace.path))
    application.router.add_static(f"/{word}/", runtime.modules / _VIEWER)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        at = f"http://{HOST}:{runner.addresses[0][1]}/{word}"
        yield tuple(
            # Without a host of its own: through `ssh -L` the viewer may have another port.
            f"{at}/index.html?trace=traces/{number}.zip"
            for number in range(1, len(traces) + 1)
        )
    finally:
        await runner.cleanup()


async def _send_file(path: Path, request: web.Request) -> web.StreamResponse:  # noqa: ARG001 - aiohttp
    return web.FileResponse(path)


async def _add_headers(request: web.Request, answer: web.StreamResponse) -> None:  # noqa: ARG001 - aiohttp
    answer.headers.update(_HEADERS)


def _lines(
    traces: Sequence[TraceFile], addresses: Sequence[str], runtime: Runtime
) -> tuple[str, ...]:
    """What to open, how to get there, and how it ends."""
    opened = [
        f"trace    {trace.name}\nopen     {address}"
        for trace, address in zip(traces, addresses, strict=True)
    ]
    port = addresses[0].split(":")[2].partition("/")[0]
    return (
        *opened,
        f"remote   {_forward(port, os.environ)}",
        "         makes that address work in a browser on another machine",
        f"viewer   Playwright {runtime.playwright}{_doubt(traces, runtime)}; Ctrl-C ends it",
    )


def _doubt(traces: Sequence[TraceFile], runtime: Runtime) -> str:
    newest = newest_playwright(traces) or runtime.playwright
    if _numbers(newest) <= _numbers(runtime.playwright):
        return ""
    return f", the newest on this machine; the trace is of {newest}, and may need that"


def _forward(port: str, environ: Mapping[str, str]) -> str:
    """The ssh command for a browser on another machine, by the way that this person came."""
    _, _, address, ssh_port = (*environ.get("SSH_CONNECTION", "").split(), *[""] * 4)[:4]
    other_port = f" -p {ssh_port}" if ssh_port not in ("", _SSH_PORT) else ""
    host = address or socket.gethostname()
    return f"ssh{other_port} -L {port}:{HOST}:{port} {getpass.getuser()}@{host}"
