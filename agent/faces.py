"""What the agent shows and takes besides its jobs: probes, metrics, pings, error reports."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, Protocol

import structlog

from agent.errors import ServiceError
from agent.health import HealthServer, LagGauge, Pulse, Readiness
from agent.observability import AgentFacts, ErrorReporter, EventSink, Silence
from agent.ping_store import PingClock
from agent.pings import PingBook, PingIntake, PingPort, PingRelay, PingSink, open_store
from agent.redaction import Redactor
from agent.running import RunningJobs
from agent.settings import Settings
from contract.release import RELEASE

_PINGS_KEPT_S: Final = 86400.0

log = structlog.get_logger(__name__)


class Sink(PingSink, EventSink, Protocol):
    """The service, as far as pings and error reports go."""


class MetricsFace(LagGauge, Protocol):
    """What the health port shows at `/metrics`."""

    def text(self) -> bytes:
        """The Prometheus text format."""


def reporter_of(settings: Settings, sink: EventSink) -> ErrorReporter | Silence:
    """Whoever reports errors to the service, or nobody, as the settings say."""
    if not settings.external_observability:
        return Silence()
    facts = AgentFacts(agent_version=RELEASE)
    return ErrorReporter(sink, facts, secrets=settings.secret_values())


class Faces:
    """The health port and the ping port, with what stands behind them."""

    def __init__(
        self,
        settings: Settings,
        sink: Sink,
        *,
        readiness: Readiness,
        running: RunningJobs,
        metrics: MetricsFace,
    ) -> None:
        self.pulse = Pulse(running, metrics)
        self._health = HealthServer(
            readiness=readiness,
            pulse=self.pulse,
            metrics_text=metrics.text,
            port=settings.health_port,
            redact=Redactor(settings.secret_values()).text,
        )
        self._clock = PingClock()
        self._store = open_store(settings.data_dir)
        self.book = PingBook()
        self.relay = PingRelay(
            sink,
            self._store,
            clock=self._clock,
            max_age_s=min(settings.spool_max_age_s, _PINGS_KEPT_S),
        )
        self._ping_port = self._port_of(settings) if settings.heartbeat_port else None

    async def open(self) -> None:
        """Listen.

        Raises:
            PortUnavailableError: a port is taken or not allowed.
        """
        self.book.recall(self._store.waiting(), self._clock)
        self._health.start()
        if self._ping_port is not None:
            await self._ping_port.start()

    async def close(self) -> None:
        """Close both ports, the probes last."""
        if self._ping_port is not None:
            await self._ping_port.stop()
        self._store.close()
        await self._health.stop()

    def loops(self) -> dict[str, Callable[[], Coroutine[object, object, None]]]:
        """What runs as long as the agent does, by task name."""
        return {"pulse": self.pulse.beat, "ping-relay": self.relay.run}

    async def flush(self, *, limit_s: float) -> None:
        """Relay the pings that wait, or as many as the limit allows; the rest waits on."""
        try:
            async with asyncio.timeout(limit_s):
                await self.relay.flush()
        except (ServiceError, TimeoutError) as problem:
            log.warning("pings.left", because=str(problem) or "out of time")

    def _port_of(self, settings: Settings) -> PingPort:
        redactor = Redactor(settings.secret_values())
        intake = PingIntake(self.book, take=self.relay.take, clock=self._clock, clean=redactor.text)
        return PingPort(intake, port=settings.heartbeat_port)
