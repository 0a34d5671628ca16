"""Serves HTTP: the socket, the gate while starting, the shutdown."""

import asyncio
import contextlib
import errno
import gc
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, Final

import structlog
import uvicorn
import uvloop
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from contract.release import RELEASE
from service.accounts.model import FirstSecrets
from service.app import Service, running
from service.data_dir import held_folders
from service.db.engine import DatabaseBusyError, DatabaseUnusableError
from service.db.migrate import NewerSchemaError
from service.errors import SettingsError
from service.http.error_responses import error_response
from service.http.errors import ApiError
from service.http.server import websocket
from service.http.server.connections import ConnectionLimits, Connections, LimitedProtocol
from service.logs import configure
from service.settings import Settings, read_settings

HEALTH: Final = "/health"
READINESS: Final = "/-/readiness"
LIVENESS: Final = "/-/liveness"
PATIENCE_S: Final = 20.0
"""How long a request waits for the database to open; a probe does not wait."""
_FRESH: Final[Mapping[str, str]] = {"cache-control": "no-store"}


class Stage(StrEnum):
    """The service's life, in order."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class NotOpenError(ApiError):
    """503: the service starts or stops; try again."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class StartupGate:
    """The ASGI application of the server; requests wait here until the service has started."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._app: ASGIApp | None = None
        """None: the database is not open yet."""
        self._settled = asyncio.Event()
        """Set once it is known whether there will be an application."""
        self.stage = Stage.STARTING
        self._probes = {
            HEALTH: self._health,
            READINESS: self._readiness,
            LIVENESS: self._liveness,
        }

    def open(self, app: ASGIApp) -> None:
        """The database is migrated and open: serve."""
        self._app = app
        if self.stage is Stage.STARTING:
            self.stage = Stage.READY
        self._settled.set()

    def drain(self) -> None:
        """The service stops: readiness says so, and load balancers send requests elsewhere."""
        self.stage = Stage.DRAINING
        self._settled.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        probe = self._probes.get(scope["path"]) if scope["type"] == "http" else None
        if probe is not None:
            answer = probe() if scope["method"] in ("GET", "HEAD") else _use_get(scope)
            await answer(scope, receive, send)
            return
        await (self._app or await self._opened())(scope, receive, send)

    async def _opened(self) -> ASGIApp:
        """The application, or a refusal when there is none in time."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._settled.wait()
        except TimeoutError:
            pass
        return self._app or error_response(
            NotOpenError(f"The service is {self.stage}; try again.", headers={"retry-after": "1"})
        )

    def _health(self) -> Response:
        """Says that the process answers, and how far it is."""
        return JSONResponse({"status": self.stage.value, "version": RELEASE}, headers={**_FRESH})

    def _readiness(self) -> Response:
        if self.stage is Stage.READY:
            return _sentence(HTTPStatus.OK, "OK")
        return _sentence(HTTPStatus.SERVICE_UNAVAILABLE, f"The service is {self.stage}.")

    def _liveness(self) -> Response:
        """An event loop that is stuck does not get here."""
        return _sentence(HTTPStatus.OK, "OK")


def _sentence(status: HTTPStatus, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers={**_FRESH})


def _use_get(scope: Scope) -> Response:
    refusal = ApiError(
        f"{scope['method']} is not supported at {scope['path']}.", headers={"allow": "GET, HEAD"}
    )
    refusal.status = HTTPStatus.METHOD_NOT_ALLOWED
    return error_response(refusal)


log = structlog.get_logger()

_BAD_SETTINGS = 2
_KEEP_ALIVE_S = 75
"""Longer than an agent pauses between two calls, so that it seldom connects anew."""
_STOP_S = 10
_OTHER_FILES = 512
"""Files that may be open besides connections: the database's, uploads, answers from files."""
_NEW_OBJECTS = 10_000
"""How many new objects start a garbage collection; 256 results make some thousands."""


class Server(uvicorn.Server):
    """uvicorn's server, which answers long polls before it stops."""

    def __init__(self, config: uvicorn.Config, front: StartupGate) -> None:
        super().__init__(config)
        self._front = front
        self._service: Service | None = None
        """None: it is not open yet."""

    def open(self, service: Service) -> None:
        """Let requests in."""
        self._service = service
        self._front.open(service.app)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal asks us to stop: readiness says so at once."""
        self._front.drain()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer every long poll, then close."""
        log.info("service.stopping")
        self._front.drain()
        if self._service is not None:
            await self._service.end_long_polls()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, without uvicorn's raising it again before we have tidied up."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for one in signals:
            loop.add_signal_handler(one, self.handle_exit, one, None)
        try:
            yield
        finally:
            for one in signals:
                loop.remove_signal_handler(one)


async def serve(settings: Settings) -> None:
    """Run the service until a signal ends it.

    Raises:
        SettingsError: it cannot listen where the settings say, and then nothing has been made yet,
            or not keep its data there, alone.
    """
    with listen(settings) as listening, held_folders(settings), contextlib.ExitStack() as stack:
        viewer = listen_for_viewer(settings)
        if viewer is not None:
            stack.enter_context(viewer)
        await _serve_at(listening, viewer, settings)
    log.info("service.stopped")


async def _serve_at(
    listening: socket.socket, viewer: socket.socket | None, settings: Settings
) -> None:
    """Listen from the start, so that a long migration does not look like a dead process."""
    port_of_viewer = None if viewer is None else viewer.getsockname()[1]
    settings = replace(settings, trace_viewer_port=port_of_viewer)
    front = StartupGate()
    server = Server(_config(front), front)
    host, port = listening.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="http")
    log.info("service.listening", host=host, port=port)
    try:
        async with running(settings) as service:
            if service.first_secrets is not None:
                _show(service.first_secrets, settings)
            _freeze_garbage_collector()
            server.open(service)
            if front.stage is Stage.READY:
                log.info("service.ready", host=host, port=port)
            async with _serving_viewer(viewer, service.trace_viewer):
                await serving
    finally:
        server.should_exit = True
        await serving


class _ViewerServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to that of the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: whoever started it ends it."""
        yield


@contextlib.asynccontextmanager
async def _serving_viewer(viewer: socket.socket | None, app: ASGIApp) -> AsyncIterator[None]:
    """Answer at the trace viewer's origin for as long as the context lasts."""
    if viewer is None:
        yield
        return
    server = _ViewerServer(_config(app, {"ws": "none"}))
    serving = asyncio.create_task(server.serve(sockets=[viewer]), name="trace-viewer")
    host, port = viewer.getsockname()[:2]
    log.info("trace_viewer.listening", host=host, port=port)
    try:
        yield
    finally:
        server.should_exit = True
        await serving


def _config(front: ASGIApp, websockets: Mapping[str, Any] = websocket.OPTIONS) -> uvicorn.Config:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = Connections(limits_for(files))
    return uvicorn.Config(
        front,
        http=partial(LimitedProtocol, connections=connections),  # type: ignore[arg-type]
        **websockets,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application heeds them; agents' calls need not
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_S,
    )


def limits_for(files: int) -> ConnectionLimits:
    """The limits where so many files may be open, some of which are no connections."""
    usual = ConnectionLimits()
    left = max(files - _OTHER_FILES, files // 2)
    return replace(usual, connections=min(usual.connections, left))


def _freeze_garbage_collector() -> None:
    """Freeze the objects that stay: collecting garbage among them took 5 % of the CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def _allow_many_connections() -> None:
    """Each waiting agent is an open file; the usual soft limit is 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def serve_until_stopped() -> int:
    """Read the settings and serve; the exit code: 0 stopped, 2 cannot start."""
    _allow_many_connections()
    try:
        settings = read_settings()
        configure(settings.log_level, settings.log_format)
        for unknown in settings.unknown:
            log.warning("settings.unknown", name=unknown.name, did_you_mean=unknown.nearest)
        uvloop.run(serve(settings))
    except SettingsError as problem:
        print(problem, file=sys.stderr)  # noqa: T201 - for whoever set them
        return _BAD_SETTINGS
    except (DatabaseBusyError, DatabaseUnusableError, NewerSchemaError) as problem:
        log.critical("service.refused", reason=str(problem))
        return _BAD_SETTINGS
    return 0


def _show(secrets: FirstSecrets, settings: Settings) -> None:
    """Print the secrets that were made, this once; those that were given are known already."""
    lines = []
    if settings.first_api_key is None:
        lines.append(f"  API key                        {secrets.api_key}")
    if settings.first_location_key is None:
        place = f"key of location {secrets.location_slug}"
        lines.append(f"  {place:<30} {secrets.location_key}")
    if lines:
        # Log lines come before and after it.
        block = ("", "First start. These keys are shown only once:", "", *lines, "")
        print(*block, sep="\n", flush=True)  # noqa: T201 - for a person


_WAITING: Final = 2048
"""Connections that may wait to be taken; a restart meets all agents at once."""
_UNACKNOWLEDGED_MS: Final = 60_000
_PORT: Final = {
    errno.EADDRINUSE: "another program listens there; use a free port, or 0 for any",
    errno.EACCES: "this user may not listen there; use 1024 or above",
}


def listen(settings: Settings) -> socket.socket:
    """Listen where the settings say.

    Raises:
        SettingsError: the host is no address of this machine, or the port cannot be had.
    """
    host, port = settings.host, settings.port
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _prompt(socket.create_server(address[:2], family=family, backlog=_WAITING))
    except OSError as problem:
        because = _PORT.get(problem.errno or 0)
        if because is not None:
            raise SettingsError((f"SERVICE_PORT is {port}, but {because}",)) from problem
        raise SettingsError(
            (f"SERVICE_HOST is {host}; use an address of this machine, as in 127.0.0.1",)
        ) from problem


def listen_for_viewer(settings: Settings) -> socket.socket | None:
    """Listen for the trace viewer. None: it is off, or its port cannot be had.

    The service is worth more than its viewer: pages say then that there is none.
    """
    port = settings.trace_viewer_port
    if port is None:
        return None
    try:
        return listen(replace(settings, port=port))
    except SettingsError as problem:
        reason = problem.problems[0].replace("SERVICE_PORT", "TRACE_VIEWER_PORT")
        log.warning("trace_viewer.not_listening", port=port, reason=reason)
        return None


def _prompt(listening: socket.socket) -> socket.socket:
    """Its connections, which take it over, send an answer's end without waiting 40 ms for an ACK.

    asyncio does so by itself for sockets that name their protocol, and this one does not.
    The kernel gives up a connection whose other end takes nothing for a minute, as if unplugged.
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
    return listening
