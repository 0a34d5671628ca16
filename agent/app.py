"""Puts an agent together, runs it, and stops it."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import structlog

from agent.abilities import Abilities, first_abilities, hello_of, learn
from agent.api_client.client import ServiceClient
from agent.api_client.connection import door_of, open_session
from agent.api_client.errors import KeyRefusedError, ServiceError, VersionRefusedError
from agent.api_client.hello import Handshake, runtimes
from agent.api_client.retry import Backoff
from agent.heartbeats.pings import LastPings, PingIntake, PingPort, PingRelay, PingSink, open_store
from agent.heartbeats.store import PingClock
from agent.jobs.leases import Leases
from agent.jobs.releases import Releases
from agent.jobs.running import RunningJobs
from agent.lifecycle import Lifecycle, end_what_outlasts, exit_at_once, on_signals
from agent.outbox.artifact_files import ParcelFolder
from agent.outbox.artifact_sender import Uploads
from agent.outbox.artifacts import Artifacts, Heirs
from agent.outbox.result_files import SegmentFolder
from agent.outbox.result_sender import Delivery
from agent.outbox.results import DiskSpool, SpoolLimits, steady_time
from agent.settings import Settings
from agent.telemetry import logs
from agent.telemetry.error_reports import AgentFacts, ErrorReporter, EventSink, Silence
from agent.telemetry.health import HealthServer, LagGauge, Pulse, Readiness
from agent.telemetry.logs import Redactor
from agent.telemetry.metrics import Metrics
from agent.wiring import (
    AgentContext,
    AgentOptions,
    Loops,
    Scripts,
    open_dispatcher,
    open_scripts,
    resolver_of,
)
from contract.checks import Lane
from contract.release import RELEASE
from runners.net.dns.resolve import Resolver
from runners.registry import RUNNERS

EXIT_STOPPED: Final = 0
EXIT_REFUSED: Final = 3
STANDARD: Final = AgentOptions(runners=RUNNERS)
_GAUGES_EACH_S: Final = 1.0

Loop = Callable[[], Coroutine[object, object, None]]

log = structlog.get_logger(__name__)


async def run(settings: Settings, makeup: AgentOptions = STANDARD) -> int:
    """Live as an agent until told to stop; the exit code (0 stopped, 3 refused).

    Raises:
        PortUnavailableError: a port of the settings cannot be had.
    """
    lifecycle = Lifecycle(ready_grace_s=settings.ready_grace_s, exit_at_once=exit_at_once)
    metrics = Metrics(version=RELEASE, runtime=f"python-{runtimes()['python']}")
    agent_id = uuid.uuid4().hex
    door = door_of(settings, agent_id=agent_id, version=RELEASE)
    with on_signals(lifecycle):
        async with open_session(settings) as session:
            client = ServiceClient(door, session, contact=lifecycle, meter=metrics)
            ground = AgentContext(
                agent_id=agent_id,
                settings=settings,
                makeup=makeup,
                client=client,
                lifecycle=lifecycle,
                metrics=metrics,
            )
            return await Agent(ground).live()


class Agent:
    """One agent, from its first hello to its last result."""

    def __init__(self, ground: AgentContext) -> None:
        self._ground = ground
        settings, client, metrics = ground.settings, ground.client, ground.metrics
        pace = ground.makeup.pace
        self._reporter = reporter_of(settings, client)
        logs.configure(
            settings.log_level,
            settings.log_format,
            secrets=settings.secret_values(),
            tap=self._reporter,
        )
        self._running = RunningJobs()
        self._leases = Leases(client, meter=metrics)
        self._releases = Releases(client, meter=metrics, pace=pace)
        self._spool = _spool_of(ground)
        self._files = _files_of(ground, self._spool, self._leases)
        self._uploads = Uploads(client, self._files, pace=pace)
        self._delivery = Delivery(client, self._spool, meter=metrics, pace=pace)
        self._faces = HttpEndpoints(
            settings, client, readiness=ground.lifecycle, running=self._running, metrics=metrics
        )

    async def live(self) -> int:
        """Start every loop, work until told to stop; the exit code."""
        log.info("agent.starting", agent_id=self._ground.agent_id, version=RELEASE)
        for unknown in self._ground.settings.unknown:
            log.warning("settings.unknown", name=unknown.name, did_you_mean=unknown.nearest)
        try:
            await self._faces.open()
            await self._spool.open()
            await self._files.open()
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(loop(), name=name) for name, loop in self._loops().items()
                ]
                async with open_scripts(self._ground.settings, self._ground.client) as scripts:
                    code = await self._serve(_with_scripts(self._ground, scripts))
                for task in loops:
                    task.cancel()
        finally:
            await self._files.close()
            await self._spool.persist()
            self._ground.lifecycle.stopped()
            await self._faces.close()
        log.info("agent.stopped", exit_code=code, results_left=self._results_waiting())
        return code

    def _loops(self) -> dict[str, Loop]:
        end_runs = partial(
            end_what_outlasts,
            self._ground.lifecycle,
            self._running,
            self._uploads,
            grace_s=self._ground.settings.shutdown_grace_s,
        )
        return {
            "leases": self._leases.keep,
            "releases": self._releases.run,
            "spool": self._spool.keep,
            "delivery": self._delivery.run,
            "files": self._files.keep,
            "uploads": self._uploads.run,
            "reports": self._reporter.run,
            "shutdown": end_runs,
            "gauges": self._show_gauges,
            **self._faces.loops(),
        }

    async def _serve(self, ground: AgentContext) -> int:
        resolver = resolver_of(ground.settings)
        abilities = await first_abilities(ground)
        hello = hello_of(ground, abilities)
        introduction = Handshake(ground.client, hello, on_limits=self._delivery.keep_to)
        backoff = Backoff(ground.makeup.pace)
        try:
            greeted = await introduction.first_hello(backoff, until=ground.lifecycle.draining)
        except (KeyRefusedError, VersionRefusedError) as refusal:
            log.error("agent.refused", because=str(refusal))  # noqa: TRY400 - no mistake of ours
            return EXIT_REFUSED
        if greeted:
            await self._work(ground, abilities, introduction, resolver)
        await self._hand_over()
        return EXIT_STOPPED

    async def _work(
        self,
        ground: AgentContext,
        abilities: Abilities,
        introduction: Handshake,
        resolver: Resolver,
    ) -> None:
        """Take jobs until told to stop; those with scripts as soon as it is known that they run."""
        opening = open_dispatcher(
            ground,
            hello_of(ground, abilities),
            introduction,
            loops=self._work_loops(),
            resolver=resolver,
        )
        async with opening as dispatcher:
            ground.lifecycle.ready()
            async with asyncio.TaskGroup() as group:
                learning = learn(abilities, ground, introduction, dispatcher)
                task = group.create_task(learning, name="learn")
                await dispatcher.run(ground.lifecycle.draining)
                task.cancel()

    def _work_loops(self) -> Loops:
        return Loops(
            releases=self._releases,
            leases=self._leases,
            spool=self._spool,
            files=self._files,
            running=self._running,
            pings=self._faces.book,
        )

    async def _hand_over(self) -> None:
        """Deliver what is left, results first, each within a limit; the rest waits on disk."""
        waited = self._files.waiting()
        limit_s = self._ground.makeup.pace.flush_s
        await self._flush(limit_s)
        await self._uploads.flush(limit_s=limit_s)
        await self._files.let_results_go()
        if self._files.waiting() < waited:  # these results follow their files
            await self._flush(limit_s)

    async def _flush(self, limit_s: float) -> None:
        async with asyncio.TaskGroup() as last:
            last.create_task(self._releases.flush(limit_s=limit_s), name="flush-releases")
            last.create_task(self._delivery.flush(limit_s=limit_s), name="flush-results")
            last.create_task(self._faces.flush(limit_s=limit_s), name="flush-pings")

    def _results_waiting(self) -> int:
        return self._spool.waiting() + self._files.waiting()

    async def _show_gauges(self) -> None:
        metrics = self._ground.metrics
        while True:
            metrics.results_spooled(self._results_waiting())
            metrics.artifacts_spooled(self._files.waiting_files())
            for on in Lane:
                metrics.oldest_wait(on, wait_s=self._running.oldest_wait_s(on))
            await asyncio.sleep(_GAUGES_EACH_S)


def _with_scripts(ground: AgentContext, scripts: Scripts) -> AgentContext:
    return replace(ground, harness=scripts.harness, scripts_problem=scripts.problem)


def _limits_of(settings: Settings) -> SpoolLimits:
    return SpoolLimits(max_bytes=settings.spool_max_bytes, max_age_s=settings.spool_max_age_s)


def _spool_of(ground: AgentContext) -> DiskSpool:
    return DiskSpool(
        SegmentFolder(ground.settings.data_dir / "results", agent_id=ground.agent_id),
        limits=_limits_of(ground.settings),
        meter=ground.metrics,
        wall_clock=steady_time(),
    )


def _files_of(ground: AgentContext, spool: DiskSpool, leases: Leases) -> Artifacts:
    return Artifacts(
        ParcelFolder(ground.settings.data_dir / "artifacts", agent_id=ground.agent_id),
        Heirs(spool=spool, leases=leases, meter=ground.metrics),
        limits=_limits_of(ground.settings),
        wall_clock=steady_time(),
    )


_PINGS_KEPT_S: Final = 86400.0


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


class HttpEndpoints:
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
        self.book = LastPings()
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
