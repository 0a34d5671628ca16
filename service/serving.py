"""The service as a program: it listens, opens, and stops in order when a signal comes."""

import asyncio
import contextlib
import gc
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType

import structlog
import uvicorn
import uvloop

from service.accounts.model import FirstSecrets
from service.app import Service, running
from service.db.engine import DatabaseBusyError, DatabaseUnusableError
from service.db.migrate import NewerSchemaError
from service.errors import SettingsError
from service.folders import held_folders
from service.front import Front, Stage
from service.http.one_write import OneWriteProtocol
from service.logs import configure
from service.ports import listen
from service.settings import Settings, read_settings

log = structlog.get_logger()

_BAD_SETTINGS = 2
_KEEP_ALIVE_S = 75
"""Longer than an agent pauses between two calls, so that it seldom connects anew."""
_STOP_S = 10
_NEW_OBJECTS = 10_000
"""So many make the garbage collector look; a submission of 256 results makes some thousands."""


class Server(uvicorn.Server):
    """uvicorn, with our order of stopping: long polls are answered first."""

    def __init__(self, config: uvicorn.Config, front: Front) -> None:
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
        """Send whoever waits home, then close."""
        log.info("service.stopping")
        self._front.drain()
        if self._service is not None:
            await self._service.send_everyone_home()
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
    with listen(settings) as listening, held_folders(settings):
        await _serve_at(listening, settings)
    log.info("service.stopped")


async def _serve_at(listening: socket.socket, settings: Settings) -> None:
    """Listen from the start, so that a long migration does not look like a dead process."""
    front = Front()
    server = Server(_config(front), front)
    host, port = listening.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="http")
    log.info("service.listening", host=host, port=port)
    try:
        async with running(settings) as service:
            if service.first_secrets is not None:
                _show(service.first_secrets, settings)
            _spare_the_collector()
            server.open(service)
            if front.stage is Stage.READY:
                log.info("service.ready", host=host, port=port)
            await serving
    finally:
        server.should_exit = True
        await serving


def _config(front: Front) -> uvicorn.Config:
    return uvicorn.Config(
        front,
        http=OneWriteProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application heeds them; agents' calls need not
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_S,
    )


def _spare_the_collector() -> None:
    """What is here by now stays: looking through it for garbage took 5 % of the CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def _allow_many_connections() -> None:
    """Each waiting agent is an open file; the usual soft limit is 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def serve_until_told() -> int:
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
