"""Wires the parts of an agent: scripts, network, redaction, dispatcher."""

from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
)
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.hello import Handshake
from agent.api_client.proxies import build_proxy_environment
from agent.api_client.retry import Pace
from agent.bundles import open_suite_places
from agent.jobs.dispatcher import (
    Dispatcher,
    DispatcherParts,
    Slots,
)
from agent.jobs.leases import Leases
from agent.jobs.releases import Releases
from agent.jobs.running import JobRunner, RunningJobs
from agent.jobs.source import ServiceSource
from agent.lifecycle import Lifecycle
from agent.outbox.artifacts import Artifacts
from agent.outbox.redact import ArtifactRedactor, ResultRedactor
from agent.outbox.results import DiskSpool
from agent.self_test import summarize
from agent.settings import Settings
from agent.telemetry.metrics import Metrics
from contract.agent_api import Hello
from redaction.policy import why_unhidden
from redaction.result import Scrubber
from runners.execute import execute
from runners.net.dns.resolve import DnsServerResolver, Resolver, SystemResolver
from runners.net.http.body_memory import BodyMemory
from runners.runner import LastPings, Runner
from runners.scripting.harness import Harness, open_harness
from runners.scripting.node.runtimes import NO_RUNTIME, Runtimes, find_runtimes
from runners.scripting.suites.resources import SuiteOptions
from runners.tools import Tools, open_tools
from sandbox.errors import HostError


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What differs between the shipped agent and those of tests and benchmarks."""

    runners: tuple[Runner[Any], ...]
    pace: Pace = field(default_factory=Pace)
    checks_itself: bool = True
    """Whether a type must pass the boot check before its jobs are claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """What every part of one agent uses; made once per process, before anything else."""

    agent_id: str
    settings: Settings
    options: AgentOptions
    client: ServiceClient
    lifecycle: Lifecycle
    metrics: Metrics
    harness: Harness | None = None
    """What scripts run with. None: no script runs here."""
    scripts_problem: tuple[str, str] | None = None
    """Why none does, and the remedy. None: there is a harness, or no runtime."""


_RESTART: Final = "fix it, then restart the agent"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """The parts that have a loop of their own and outlive the work."""

    releases: Releases
    leases: Leases
    spool: DiskSpool
    artifacts: Artifacts
    running: RunningJobs
    pings: LastPings
    oldest_ping_s: Callable[[], float | None]
    """The age of the oldest ping that is not relayed yet. None: none waits."""


def choose_resolver(settings: Settings) -> Resolver:
    """The resolver of the checks' names, as the settings say."""
    return SystemResolver() if settings.use_os_dns_resolver else DnsServerResolver()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """What scripts run with."""

    harness: Harness | None
    """None: no script runs here."""
    problem: tuple[str, str] | None = None
    """Why there is no harness, and the remedy. None: there is one, or no runtime."""


@asynccontextmanager
async def open_scripts(
    settings: Settings, client: ServiceClient | None = None
) -> AsyncIterator[Scripts]:
    """What scripts run with, for as long as the block lasts.

    `client`: where the code of suites comes from; without it no suite runs.
    """
    async with AsyncExitStack() as stack:
        found = find_runtimes(settings.runtimes_dir, settings.chromium_path)
        _log_left_out(found)
        suites: SuiteOptions | None = None
        try:
            if client is not None:
                places = open_suite_places(
                    client, settings.data_dir, read_proxy_environment(settings)
                )
                suites = stack.enter_context(places)
            opening = open_harness(found, extra_roots=settings.extra_ca_certs, suites=suites)
            harness = await stack.enter_async_context(opening)
        except OSError as problem:
            log.warning("scripts.unavailable", because=str(problem))
            scripts = Scripts(harness=None, problem=_cause_and_remedy(problem))
        else:
            scripts = Scripts(harness=harness)
            if harness is None:
                log.info("scripts.unavailable", because=NO_RUNTIME)
        yield scripts


def _cause_and_remedy(problem: OSError) -> tuple[str, str]:
    """Our own errors say both; the system's say the cause alone."""
    if isinstance(problem, HostError):
        return problem.cause, problem.remedy
    return summarize(str(problem)), _RESTART


def _log_left_out(found: Runtimes) -> None:
    for runtime in found.by_id.values():
        if (fault := runtime.code_cache_fault) is not None:
            program = "runners.scripting.playwright.compile_cache"
            remedy = f"runs are slower; `python -m {program}` creates it again"
            log.warning(
                "scripts.code_cache_left_out", runtime=runtime.id, because=f"{fault}; {remedy}"
            )


def read_proxy_environment(settings: Settings) -> dict[str, str]:
    """The environment variables that tell package managers the agent's proxies."""
    return build_proxy_environment(
        https_proxy=settings.https_proxy,
        http_proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
    )


def build_scrubber(settings: Settings) -> Scrubber:
    """A scrubber that knows the agent's secrets; warns of those that it cannot hide."""
    hidden = {**settings.service_secrets, **settings.proxy_passwords()}
    for name, value in hidden.items():
        because = why_unhidden(value)
        if because is not None:
            log.warning("secret.not_hidden", variable=name, because=because)
    return Scrubber(
        hidden.values(),
        kept_from_scripts=(settings.api_key,),
        sensitive_headers=settings.sensitive_headers,
    )


@asynccontextmanager
async def open_dispatcher(
    context: AgentContext, hello: Hello, handshake: Handshake, *, loops: Loops, resolver: Resolver
) -> AsyncIterator[Dispatcher]:
    """The dispatcher with everything it needs, and the network for as long as the block lasts."""
    pace = context.options.pace
    scrubber = build_scrubber(context.settings)
    redactor = ResultRedactor(scrubber, agent_id=context.agent_id, metrics=context.metrics)
    async with _open_network(context, resolver) as network:
        context.metrics.watch_bodies(network.bodies)
        parts = DispatcherParts(
            source=ServiceSource(
                context.client,
                loops.releases,
                handshake,
                pace=pace,
                oldest_ping_s=loops.oldest_ping_s,
            ),
            leases=loops.leases,
            runner=JobRunner(
                context.options.runners,
                execute,
                network=network,
                pings=loops.pings,
                location_secrets=context.settings.service_secrets,
            ),
            result_redactor=redactor,
            artifact_redactor=ArtifactRedactor(scrubber, metrics=context.metrics),
            spool=loops.spool,
            artifacts=loops.artifacts,
            metrics=context.metrics,
        )
        slots = Slots(hello.slots, linger_s=pace.linger_s, metrics=context.metrics)
        with closing(redactor):
            yield Dispatcher(parts, slots, loops.running)


def _open_network(context: AgentContext, resolver: Resolver) -> AbstractAsyncContextManager[Tools]:
    roots = context.settings.extra_ca_certs
    return open_tools(
        context.settings.egress,
        resolver=resolver,
        extra_ca_pem=None if roots is None else roots.read_text(),
        harness=context.harness,
        bodies=BodyMemory(context.settings.body_memory_mb << 20),
    )
