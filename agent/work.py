"""What an agent works with: runners on one network, slots, a source, envelopes."""

from collections.abc import AsyncIterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
)
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from agent.boot_cause import summarize
from agent.bundles import BundleGiver, suite_places
from agent.dispatcher import Dispatcher, JobLeases, ResultSpool, RunFiles, Works
from agent.enclosures import Enclosures
from agent.envelopes import SealedEnvelopes
from agent.ground import Ground
from agent.introduction import Introduction
from agent.proxies import proxy_environment
from agent.releases import Releases
from agent.running import RunningJobs
from agent.runs import Runs
from agent.settings import Settings
from agent.slots import Slots
from agent.source import ServiceSource
from contract.agent_api import Hello
from runners.kit.dns.resolve import DnsServerResolver, Resolver, SystemResolver
from runners.kit.execute import execute
from runners.kit.harness import NO_RUNTIME, Harness, open_harness
from runners.kit.isolation.host_error import HostError
from runners.kit.network import open_network
from runners.kit.runner import Network, PingBook
from runners.kit.scripts.runtimes import Runtimes, find_runtimes
from runners.kit.scrubbing.files import clean_in_child
from runners.kit.scrubbing.scrub import Scrubber
from runners.kit.secrets.job_secrets import why_unhidden
from runners.kit.suites.places import SuitePlaces

_RESTART: Final = "put it right, then restart the agent"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """The parts that have a loop of their own and outlive the work."""

    releases: Releases
    leases: JobLeases
    spool: ResultSpool
    files: RunFiles
    running: RunningJobs
    pings: PingBook


def resolver_of(settings: Settings) -> Resolver:
    """Whoever turns the checks' names into addresses."""
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
    settings: Settings, service: BundleGiver | None = None
) -> AsyncIterator[Scripts]:
    """What scripts run with, for as long as the block lasts.

    `service`: where the code of suites comes from; without it no suite runs.
    """
    async with AsyncExitStack() as stack:
        found = find_runtimes(settings.runtimes_dir, settings.chromium_path)
        _tell_left_out(found)
        suites: SuitePlaces | None = None
        try:
            if service is not None:
                places = suite_places(service, settings.data_dir, proxy_environment_of(settings))
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


def _tell_left_out(found: Runtimes) -> None:
    for runtime in found.by_id.values():
        if (fault := runtime.code_cache_fault) is not None:
            remedy = "runs are slower; `python -m runners.kit.playwright.warming` makes it anew"
            log.warning(
                "scripts.code_cache_left_out", runtime=runtime.id, because=f"{fault}; {remedy}"
            )


def proxy_environment_of(settings: Settings) -> dict[str, str]:
    """What package managers are told of the agent's proxies."""
    return proxy_environment(
        https_proxy=settings.https_proxy,
        http_proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
    )


def scrubber_of(settings: Settings) -> Scrubber:
    """Whoever takes the agent's secrets out of results; warns of those that it cannot."""
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
    ground: Ground, hello: Hello, introduction: Introduction, *, loops: Loops, resolver: Resolver
) -> AsyncIterator[Dispatcher]:
    """The dispatcher with everything it needs, and the network for as long as the block lasts."""
    pace = ground.makeup.pace
    scrubber = scrubber_of(ground.settings)
    envelopes = SealedEnvelopes(scrubber, agent_id=ground.agent_id, meter=ground.metrics)
    async with _open_network(ground, resolver) as network:
        works = Works(
            source=ServiceSource(ground.client, loops.releases, introduction, pace=pace),
            leases=loops.leases,
            runner=_runs(ground, network, loops.pings),
            envelopes=envelopes,
            spool=loops.spool,
            enclosures=_enclosures(scrubber, ground),
            files=loops.files,
            meter=ground.metrics,
        )
        slots = Slots(hello.slots, linger_s=pace.linger_s, gauge=ground.metrics)
        with closing(envelopes):
            yield Dispatcher(works, slots, loops.running)


def _open_network(ground: Ground, resolver: Resolver) -> AbstractAsyncContextManager[Network]:
    roots = ground.settings.extra_ca_certs
    return open_network(
        ground.settings.egress,
        resolver=resolver,
        extra_ca_pem=None if roots is None else roots.read_text(),
        harness=ground.harness,
    )


def _runs(ground: Ground, network: Network, pings: PingBook) -> Runs:
    return Runs(
        ground.makeup.runners,
        execute,
        network=network,
        pings=pings,
        location_secrets=ground.settings.service_secrets,
    )


def _enclosures(scrubber: Scrubber, ground: Ground) -> Enclosures:
    clean = partial(clean_in_child, header_names=scrubber.header_names)
    return Enclosures(scrubber, clean, meter=ground.metrics)
