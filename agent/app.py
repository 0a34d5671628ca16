"""Puts an agent together, runs it, and stops it."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Final

import structlog

from agent.abilities import Abilities, build_hello, first_abilities, learn
from agent.api_client.client import ServiceClient
from agent.api_client.connection import build_endpoint, open_session
from agent.api_client.errors import KeyRefusedError, ServiceError, VersionRefusedError
from agent.api_client.hello import Handshake, runtimes
from agent.api_client.retry import Backoff
from agent.heartbeats.pings import LastPings, PingIntake, PingPort, PingRelay, open_store
from agent.heartbeats.store import PingClock
from agent.jobs.leases import Leases
from agent.jobs.releases import Releases
from agent.jobs.running import RunningJobs
from agent.lifecycle import Lifecycle, exit_at_once, on_signals
from agent.outbox.artifact_files import ArtifactFolder
from agent.outbox.artifact_sender import ArtifactSender
from agent.outbox.artifacts import Artifacts
from agent.outbox.result_files import ResultFolder
from agent.outbox.result_sender import ResultSender
from agent.outbox.results import DiskSpool, SpoolLimits, make_steady_clock
from agent.settings import Settings
from agent.telemetry import logs
from agent.telemetry.error_reports import AgentFacts, ErrorReporter, NoReporter
from agent.telemetry.health import HealthServer, Pulse
from agent.telemetry.logs import Redactor
from agent.telemetry.metrics import Metrics
from agent.wiring import (
    AgentContext,
    AgentOptions,
    Loops,
    Scripts,
    choose_resolver,
    open_dispatcher,
    open_scripts,
)
from contract.agent_api import ReleaseReason
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


async def run(settings: Settings, options: AgentOptions = STANDARD) -> int:
    """Run an agent until it is asked to stop; the exit code (0 stopped, 3 refused).

    Raises:
        PortUnavailableError: a port of the settings cannot be had.
    """
    lifecycle = Lifecycle(ready_grace_s=settings.ready_grace_s, exit_at_once=exit_at_once)
    metrics = Metrics(version=RELEASE, runtime=f"python-{runtimes()['python']}")
    agent_id = uuid.uuid4().hex
    endpoint = build_endpoint(settings, agent_id=agent_id, version=RELEASE)
    with on_signals(lifecycle):
        async with open_session(settings) as session:
            client = ServiceClient(endpoint, session, lifecycle=lifecycle, metrics=metrics)
            context = AgentContext(
                agent_id=agent_id,
                settings=settings,
                options=options,
                client=client,
                lifecycle=lifecycle,
                metrics=metrics,
            )
            return await Agent(context).live()


class Agent:
    """One agent, from its first hello to its last result."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        settings, client, metrics = context.settings, context.client, context.metrics
        pace = context.options.pace
        self._reporter = _build_reporter(settings, client)
        logs.configure(
            settings.log_level,
            settings.log_format,
            secrets=settings.secret_values(),
            on_error=self._reporter.note,
        )
        self._running = RunningJobs()
        self._spool = _build_spool(context)
        self._leases = Leases(client, metrics=metrics, undelivered=self._spool.waiting)
        self._releases = Releases(client, metrics=metrics, pace=pace)
        self._artifacts = _build_artifacts(context, self._spool, self._leases)
        self._artifact_sender = ArtifactSender(client, self._artifacts, pace=pace)
        self._result_sender = ResultSender(client, self._spool, metrics=metrics, pace=pace)
        self._endpoints = HttpEndpoints(
            settings, client, lifecycle=context.lifecycle, running=self._running, metrics=metrics
        )

    async def live(self) -> int:
        """Start every loop and work until asked to stop; the exit code."""
        log.info("agent.starting", agent_id=self._context.agent_id, version=RELEASE)
        for unknown in self._context.settings.unknown:
            log.warning("settings.unknown", name=unknown.name, did_you_mean=unknown.nearest)
        try:
            await self._endpoints.open()
            await self._spool.open()
            await self._artifacts.open()
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(loop(), name=name) for name, loop in self._loops().items()
                ]
                async with open_scripts(self._context.settings, self._context.client) as scripts:
                    code = await self._serve(_with_scripts(self._context, scripts))
                for task in loops:
                    task.cancel()
        finally:
            await self._artifacts.close()
            await self._spool.persist()
            self._context.lifecycle.stopped()
            await self._endpoints.close()
        log.info("agent.stopped", exit_code=code, results_left=self._results_waiting())
        return code

    def _loops(self) -> dict[str, Loop]:
        return {
            "leases": self._leases.keep,
            "releases": self._releases.run,
            "spool": self._spool.keep,
            "delivery": self._result_sender.run,
            "files": self._artifacts.keep,
            "uploads": self._artifact_sender.run,
            "reports": self._reporter.run,
            "shutdown": self._stop_after_grace,
            "gauges": self._update_gauges,
            **self._endpoints.loops(),
        }

    async def _stop_after_grace(self) -> None:
        """Once draining: stop what still runs after the grace, or at the second request to stop."""
        lifecycle, grace_s = self._context.lifecycle, self._context.settings.shutdown_grace_s
        await lifecycle.draining.wait()
        try:
            await asyncio.wait_for(lifecycle.cancelling.wait(), grace_s)
        except TimeoutError:
            log.warning("agent.grace_is_over", running=len(self._running), grace_s=grace_s)
        self._running.stop_all(ReleaseReason.DRAINING)
        self._artifact_sender.abandon()

    async def _serve(self, context: AgentContext) -> int:
        resolver = choose_resolver(context.settings)
        abilities = await first_abilities(context)
        hello = build_hello(context, abilities)
        handshake = Handshake(context.client, hello, on_limits=self._result_sender.keep_to)
        backoff = Backoff(context.options.pace, context.client.outage)
        try:
            greeted = await handshake.first_hello(backoff, until=context.lifecycle.draining)
        except (KeyRefusedError, VersionRefusedError):
            return EXIT_REFUSED
        if greeted:
            await self._work(context, abilities, handshake, resolver)
        await self._deliver_rest()
        return EXIT_STOPPED

    async def _work(
        self,
        context: AgentContext,
        abilities: Abilities,
        handshake: Handshake,
        resolver: Resolver,
    ) -> None:
        """Run jobs until asked to stop; those with scripts once it is known that they run here."""
        opening = open_dispatcher(
            context,
            build_hello(context, abilities),
            handshake,
            loops=self._work_loops(),
            resolver=resolver,
        )
        async with opening as dispatcher:
            context.lifecycle.ready()
            async with asyncio.TaskGroup() as group:
                learning = learn(abilities, context, handshake, dispatcher)
                task = group.create_task(learning, name="learn")
                await dispatcher.run(context.lifecycle.draining)
                task.cancel()

    def _work_loops(self) -> Loops:
        return Loops(
            releases=self._releases,
            leases=self._leases,
            spool=self._spool,
            artifacts=self._artifacts,
            running=self._running,
            pings=self._endpoints.last_pings,
            oldest_ping_s=self._endpoints.relay.oldest_ping_s,
        )

    async def _deliver_rest(self) -> None:
        """Deliver what is left, results first, each within a limit; the rest waits on disk."""
        waited = self._artifacts.waiting()
        limit_s = self._context.options.pace.flush_s
        await self._flush(limit_s)
        await self._artifact_sender.flush(limit_s=limit_s)
        await self._artifacts.release_results()
        if self._artifacts.waiting() < waited:  # these results follow their files
            await self._flush(limit_s)

    async def _flush(self, limit_s: float) -> None:
        async with asyncio.TaskGroup() as last:
            last.create_task(self._releases.flush(limit_s=limit_s), name="flush-releases")
            last.create_task(self._result_sender.flush(limit_s=limit_s), name="flush-results")
            last.create_task(self._endpoints.flush(limit_s=limit_s), name="flush-pings")

    def _results_waiting(self) -> int:
        return self._spool.waiting() + self._artifacts.waiting()

    async def _update_gauges(self) -> None:
        metrics = self._context.metrics
        while True:
            metrics.results_spooled(self._results_waiting())
            metrics.artifacts_spooled(self._artifacts.waiting_files())
            for on in Lane:
                metrics.oldest_wait(on, wait_s=self._running.oldest_wait_s(on))
            await asyncio.sleep(_GAUGES_EACH_S)


def _with_scripts(context: AgentContext, scripts: Scripts) -> AgentContext:
    return replace(context, harness=scripts.harness, scripts_problem=scripts.problem)


def _read_limits(settings: Settings) -> SpoolLimits:
    return SpoolLimits(max_bytes=settings.spool_max_bytes, max_age_s=settings.spool_max_age_s)


def _build_spool(context: AgentContext) -> DiskSpool:
    return DiskSpool(
        ResultFolder(context.settings.data_dir / "results", agent_id=context.agent_id),
        limits=_read_limits(context.settings),
        metrics=context.metrics,
        wall_clock=make_steady_clock(),
    )


def _build_artifacts(context: AgentContext, spool: DiskSpool, leases: Leases) -> Artifacts:
    return Artifacts(
        ArtifactFolder(context.settings.data_dir / "artifacts", agent_id=context.agent_id),
        spool,
        leases,
        metrics=context.metrics,
        limits=_read_limits(context.settings),
        wall_clock=make_steady_clock(),
    )


_PINGS_KEPT_S: Final = 86400.0


def _build_reporter(settings: Settings, client: ServiceClient) -> ErrorReporter | NoReporter:
    """The reporter of errors to the service, unless the settings switch it off."""
    if not settings.external_observability:
        return NoReporter()
    facts = AgentFacts(agent_version=RELEASE)
    return ErrorReporter(client, facts, secrets=settings.secret_values())


class HttpEndpoints:
    """The health port and the ping port, and what answers there."""

    def __init__(
        self,
        settings: Settings,
        client: ServiceClient,
        *,
        lifecycle: Lifecycle,
        running: RunningJobs,
        metrics: Metrics,
    ) -> None:
        self.pulse = Pulse(running, metrics)
        self._health = HealthServer(
            lifecycle=lifecycle,
            pulse=self.pulse,
            metrics_text=metrics.text,
            port=settings.health_port,
            host=settings.health_host,
            redact=Redactor(settings.secret_values()).text,
        )
        self._clock = PingClock()
        self._store = open_store(settings.data_dir)
        self.last_pings = LastPings()
        self.relay = PingRelay(
            client,
            self._store,
            clock=self._clock,
            max_age_s=min(settings.spool_max_age_s, _PINGS_KEPT_S),
        )
        self._ping_port = self._build_ping_port(settings) if settings.heartbeat_port else None

    async def open(self) -> None:
        """Listen.

        Raises:
            PortUnavailableError: a port is taken or not allowed.
        """
        self.last_pings.recall(self._store.waiting(), self._clock)
        self._health.start()
        if self._ping_port is not None:
            await self._ping_port.start()

    async def close(self) -> None:
        """Close both ports, the probes last."""
        if self._ping_port is not None:
            await self._ping_port.stop()
        self.relay.close()
        await self._health.stop()

    def loops(self) -> dict[str, Loop]:
        """What runs as long as the agent does, by task name."""
        return {"pulse": self.pulse.beat, "ping-relay": self.relay.run}

    async def flush(self, *, limit_s: float) -> None:
        """Relay the pings that wait, or as many as the limit allows; the rest waits on."""
        try:
            async with asyncio.timeout(limit_s):
                await self.relay.flush()
        except (ServiceError, TimeoutError) as problem:
            log.warning("pings.left", because=str(problem) or "out of time")

    def _build_ping_port(self, settings: Settings) -> PingPort:
        redactor = Redactor(settings.secret_values())
        intake = PingIntake(
            self.last_pings, take=self.relay.take, clock=self._clock, clean=redactor.text
        )
        return PingPort(intake, port=settings.heartbeat_port, host=settings.heartbeat_host)
