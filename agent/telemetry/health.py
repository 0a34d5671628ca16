"""The health port: probes and `/metrics`, served by a thread that outlives a stuck event loop."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response

from agent.jobs.running import RunningJobs
from agent.lifecycle import Lifecycle
from agent.telemetry.http_server import HttpPort, get_server_log, open_port, read_port
from agent.telemetry.metrics import CONTENT_TYPE, Metrics

SETTING: Final = "AGENT_HEALTH_PORT"
STUCK_AFTER_S: Final = 30.0
"""How long the loop may stand still, or a job be past its deadline, while the agent is live."""
BEAT_S: Final = 0.5
_READINESS: Final = "/-/readiness"
_READ_LIMIT_S: Final = 10.0
"""Idle connections of scrapers are closed after this."""
_START_LIMIT_S: Final = 5.0
_STOP_LIMIT_S: Final = 2.0

log = structlog.get_logger(__name__)


class Pulse:
    """Proof that the event loop turns, and how the jobs stand, for readers in other threads."""

    def __init__(
        self, running: RunningJobs, metrics: Metrics, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._running = running
        self._metrics = metrics
        self._clock = clock
        self._beaten_at = clock()
        self._overdue_s = 0.0

    async def beat(self) -> None:
        """Beat for as long as the loop turns; runs until it is cancelled."""
        while True:
            due_at = self._clock() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self.beat_once(lag_s=max(0.0, self._clock() - due_at))
            self._metrics.tasks(len(asyncio.all_tasks()))

    def beat_once(self, *, lag_s: float) -> None:
        """Note that the loop turned, this much late."""
        self._metrics.loop_lag(lag_s)
        self._overdue_s = self._running.longest_overdue_s()
        self._beaten_at = self._clock()

    def dead_because(self) -> str | None:
        """One sentence. None: the loop turns and no job is far past its deadline."""
        silent_for_s = self._clock() - self._beaten_at
        if silent_for_s > STUCK_AFTER_S:
            return f"The event loop has been stuck for {silent_for_s:.0f} s."
        if self._overdue_s > STUCK_AFTER_S:
            return f"A job is {self._overdue_s:.0f} s past its deadline."
        return None


class HealthServer:
    """Answers probes until it is stopped, which is the last thing that the agent does.

    It has a thread and a loop of its own, so that a stuck agent says so instead of saying nothing.
    """

    def __init__(  # noqa: PLR0913 - what it shows, where, and what it leaves out
        self,
        *,
        lifecycle: Lifecycle,
        pulse: Pulse,
        metrics_text: Callable[[], bytes],
        port: int,
        host: str = "",
        redact: Callable[[str], str] = str,
    ) -> None:
        """`redact`: takes secrets out of whatever is answered."""
        self._redact = redact
        self._lifecycle = lifecycle
        self._wanted_port = port
        self._host = host
        self._metrics_text = metrics_text
        self._verdicts: dict[str, Callable[[], str | None]] = {
            _READINESS: lifecycle.unready_because,
            "/-/liveness": pulse.dead_because,
            "/health": _do_nothing,
        }
        self._thread: threading.Thread | None = None
        """None: not started, or stopped."""
        self._ask_to_stop: Callable[[], object] = _do_nothing
        self.port = 0
        """The port that it got; 0 before the start."""

    def start(self) -> None:
        """Listen.

        Raises:
            PortUnavailableError: the port is taken or not allowed.
        """
        listener = open_port(SETTING, self._wanted_port, host=self._host)
        self.port = read_port(listener)
        listening = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, listening)),
            name="health",
            daemon=True,
        )
        self._thread.start()
        listening.wait(_START_LIMIT_S)
        log.info("health.listening", port=self.port)

    async def stop(self) -> None:
        """Close the port; the agent is about to end."""
        if self._thread is None:
            return
        self._ask_to_stop()
        await asyncio.to_thread(self._thread.join, _STOP_LIMIT_S * 2)
        self._thread = None

    async def _serve(self, listener: socket.socket, listening: threading.Event) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._ask_to_stop = partial(loop.call_soon_threadsafe, stopped.set)
        port = HttpPort(
            self._answer,
            log=get_server_log("agent.telemetry.health"),
            idle_limit_s=_READ_LIMIT_S,
            stop_limit_s=_STOP_LIMIT_S,
        )
        await port.start(listener)
        listening.set()
        await stopped.wait()
        await port.stop()

    async def _answer(self, request: BaseRequest) -> Response:
        verdict = self._verdicts.get(request.path)
        if verdict is None and request.path != "/metrics":
            said = self._redact(f"There is nothing at {request.path}.")
            return _respond(HTTPStatus.NOT_FOUND, said)
        if request.method not in ("GET", "HEAD"):
            return _refuse_method(request.method)
        if verdict is None:
            text = self._redact(self._metrics_text().decode())
            return Response(body=text.encode(), headers={"content-type": CONTENT_TYPE})
        because = verdict()
        if because is None:
            missing = self._lifecycle.missing if request.path == _READINESS else ()
            return _respond(HTTPStatus.OK, self._redact("\n".join(("OK", *missing))))
        return _respond(HTTPStatus.SERVICE_UNAVAILABLE, self._redact(because))


def _do_nothing() -> None:
    """`/health` says only that the process answers."""


def _respond(status: HTTPStatus, text: str) -> Response:
    return Response(status=status, text=f"{text}\n", headers={"cache-control": "no-store"})


def _refuse_method(method: str) -> Response:
    answer = _respond(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not supported; use GET.")
    answer.headers["allow"] = "GET, HEAD"
    return answer
