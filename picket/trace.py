"""`picket trace`: Playwright's trace viewer, served on loopback for any browser.

The viewer is a folder of static files in each runtime's `playwright-core`, and a service worker
which reads the trace. It needs neither npx nor a window, and asks nobody else for anything.
"""

import asyncio
import getpass
import json
import os
import re
import secrets
import signal
import socket
import tempfile
import zipfile
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from rich.console import Console

from contract.checks import SCRIPT_TYPES
from picket.api_client import ApiRefusedError, ApiUnreachableError, PublicApi
from picket.errors import CommandError, ExitCode
from picket.service_access import open_api, suggest_remedy
from picket.up.addresses import require_free_port
from picket.up.dashboard import trace_paths
from picket.up.data_dir import DataDir
from picket.up.demo_target import HOST
from runners.scripting.node.runtimes import NO_RUNTIME, Runtime, find_runtimes

_RESULT_ID: Final = re.compile(r"[0-9A-Za-z][\w-]{7,199}", re.ASCII)
_MOST_TRACES: Final = 20
_FIRST_LINE_BYTES: Final = 1024 * 1024
_NO_TRACE: Final = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError),
    *(RuntimeError, RecursionError),  # it is encrypted, its first line is nested without end
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A trace on this machine."""

    path: Path
    name: str
    """For the reader."""
    playwright: str | None
    """The version that wrote it. None: it does not say, as Playwright before 1.53."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSource:
    """Where results are asked for."""

    data_dir: Path
    """The data folder of `picket up`, which is asked if SERVICE_URL is not set."""
    environ: Mapping[str, str]


@asynccontextmanager
async def find_traces(wanted: str, source: TraceSource) -> AsyncIterator[tuple[TraceFile, ...]]:
    """At least one trace; those that were fetched are gone afterwards.

    Raises:
        CommandError: there is none.
    """
    here = await asyncio.to_thread(_find_on_disk, wanted, source.data_dir)
    if here:
        yield here
        return
    with tempfile.TemporaryDirectory(prefix="picket-trace-") as folder:
        yield await _fetch(wanted, source, Path(folder))


def _find_on_disk(wanted: str, data_dir: Path) -> tuple[TraceFile, ...]:
    """Empty: it is the id of a result whose trace is not here."""
    path = Path(wanted)
    if wanted and path.is_dir():
        return _find_in_folder(path)
    if path.is_file():
        return (read_trace(path),)
    if _RESULT_ID.fullmatch(wanted) is None:
        raise CommandError(f"{wanted!r} is not a file, a folder or the id of a result")
    kept = DataDir(data_dir).traces / f"{wanted}.zip"
    return (read_trace(kept),) if kept.is_file() else ()


def read_trace(path: Path) -> TraceFile:
    """The file, which is a trace of Playwright.

    Raises:
        CommandError: it is none, or cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".trace")]
            heads = [_head(archive, name) for name in members]
    except OSError as problem:
        raise CommandError(f"{path} cannot be read: {problem.strerror}") from problem
    except _NO_TRACE as problem:
        raise CommandError(f"{path} is not a Playwright trace: {problem}") from problem
    if not members:
        raise CommandError(f"{path} is not a Playwright trace: it has no .trace file")
    versions = (head.get("playwrightVersion") for head in heads)
    playwright = next((each for each in versions if isinstance(each, str)), None)
    return TraceFile(path=path, name=str(path), playwright=playwright)


def _head(archive: zipfile.ZipFile, member: str) -> dict[str, Any]:
    """The event that a trace begins with."""
    with archive.open(member) as events:
        head = json.loads(events.readline(_FIRST_LINE_BYTES) or "{}")
    return head if isinstance(head, dict) else {}


def _find_in_folder(folder: Path) -> tuple[TraceFile, ...]:
    """Those below it, as `picket run --artifacts` and Playwright itself leave them."""
    found: list[TraceFile] = []
    for path in sorted(folder.rglob("*.zip")):
        try:
            found.append(read_trace(path))
        except CommandError:
            continue  # another archive
        if len(found) == _MOST_TRACES:
            break
    if not found:
        raise CommandError(f"there is no Playwright trace in {folder}")
    return tuple(found)


async def _fetch(result_id: str, source: TraceSource, folder: Path) -> tuple[TraceFile, ...]:
    async with open_api(source.environ, source.data_dir) as api:
        try:
            fields = await _find_result(api, result_id)
            paths = trace_paths(fields)[:_MOST_TRACES]
            if not paths:
                raise CommandError(f"the result {result_id} has no trace")
            files = [folder / f"{number}.zip" for number in range(len(paths))]
            for path, file in zip(paths, files, strict=True):
                file.write_bytes(await api.file(path))
        except ApiUnreachableError as problem:
            raise CommandError(
                f"{problem.message}; {suggest_remedy(source.environ)}", problem.code
            ) from problem
        except ApiRefusedError as refused:
            if refused.status != HTTPStatus.UNAUTHORIZED:
                raise
            raise CommandError(
                f"the service at {api.url} refuses the key", ExitCode.KEY_REFUSED
            ) from refused
    name = f"{fields['name']} of result {result_id}"
    return tuple(_rename(read_trace(file), name) for file in files)


def _rename(trace: TraceFile, name: str) -> TraceFile:
    return TraceFile(path=trace.path, name=name, playwright=trace.playwright)


async def _find_result(api: PublicApi, result_id: str) -> dict[str, Any]:
    """Results are kept by their checks; each that could have it is asked."""
    for check in await api.checks():
        if check.kind not in SCRIPT_TYPES:
            continue
        try:
            return await api.result(check.id, result_id)
        except ApiRefusedError as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise
    raise CommandError(
        f"no browser, multistep or Playwright check at {api.url} has a result {result_id}"
    )


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
    """The data folder of `picket up`, which is asked for results if SERVICE_URL is not set."""
    port: int | None
    """The port of the viewer. None: a free one."""


def open_trace(options: TraceOptions, console: Console) -> int:
    """Serve the viewer until stopped; gives the exit code.

    Raises:
        CommandError: there is no such trace, or no viewer on this machine.
    """
    if options.port is not None:
        require_free_port(options.port, option="--port")
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
        "         makes the address work in a browser on another machine",
        f"viewer   Playwright {runtime.playwright}{_warn(traces, runtime)}; Ctrl-C stops it",
    )


def _warn(traces: Sequence[TraceFile], runtime: Runtime) -> str:
    newest = newest_playwright(traces) or runtime.playwright
    if _numbers(newest) <= _numbers(runtime.playwright):
        return ""
    return f", the newest on this machine; the trace is of {newest} and may need that version"


def _forward(port: str, environ: Mapping[str, str]) -> str:
    """The ssh command for a browser on another machine, by the way that this person came."""
    _, _, address, ssh_port = (*environ.get("SSH_CONNECTION", "").split(), *[""] * 4)[:4]
    other_port = f" -p {ssh_port}" if ssh_port not in ("", _SSH_PORT) else ""
    host = address or socket.gethostname()
    return f"ssh{other_port} -L {port}:{HOST}:{port} {getpass.getuser()}@{host}"
