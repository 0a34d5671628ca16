"""What an agent works with: runners on one network, slots, a source, envelopes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog

from agent.backoff import Backoff
from agent.boot import boot_check, working_types
from agent.bundles import BundleGiver, suite_places
from agent.dispatcher import Dispatcher, JobLeases, ResultSpool, RunFiles, Works
from agent.enclosures import Enclosures
from agent.envelopes import SealedEnvelopes
from agent.errors import KeyRefusedError, VersionRefusedError
from agent.ground import Ground
from agent.introduction import MAIN_TYPES, Introduction, served_slots
from agent.proxies import proxy_environment
from agent.releases import Releases
from agent.running import RunningJobs
from agent.runs import Runs
from agent.settings import Settings
from agent.slots import Slots
from agent.source import ServiceSource
from agent.version import platform_name, runtimes
from contract.agent_api import Hello
from contract.checks import SPEC_TYPES, CheckSpec, CheckType, Lane
from contract.release import RELEASE
from runners.kit.dns.resolve import DnsServerResolver, Resolver, SystemResolver
from runners.kit.execute import execute
from runners.kit.harness import NO_RUNTIME, Harness, missing_for, open_harness
from runners.kit.network import open_network
from runners.kit.runner import Network, PingBook, Runner
from runners.kit.scripts.runtimes import Runtimes, find_runtimes
from runners.kit.scrubbing.files import clean_in_child
from runners.kit.scrubbing.scrub import Scrubber
from runners.kit.secrets.job_secrets import why_unhidden
from runners.kit.suites.places import SuitePlaces

_LONGEST_RECHECK_S: Final = 3600.0

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


@asynccontextmanager
async def open_scripts(
    settings: Settings, service: BundleGiver | None = None
) -> AsyncIterator[Harness | None]:
    """What scripts run with, for as long as the block lasts. None: no script runs here.

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
            harness = None
        else:
            if harness is None:
                log.info("scripts.unavailable", because=NO_RUNTIME)
        yield harness


def _tell_left_out(found: Runtimes) -> None:
    for runtime in found.by_id.values():
        if (fault := runtime.code_cache_fault) is not None:
            remedy = "runs are slower; `python -m runners.kit.playwright.warming` makes it anew"
            log.warning(
                "scripts.code_cache_left_out", runtime=runtime.id, because=f"{fault}; {remedy}"
            )


async def runnable_types(ground: Ground, *, scripted: bool) -> tuple[CheckType, ...]:
    """The types whose jobs are claimed: those with a runner that passed its boot check.

    `scripted`: those that need Node, or the others.
    """
    return await _working(ground, _installed(ground, scripted=scripted))


def _installed(ground: Ground, *, scripted: bool) -> tuple[CheckType, ...]:
    """The types that this agent has a runner for, and what it needs."""
    specs = {runner.spec for runner in ground.makeup.runners}
    return tuple(
        kind
        for kind, spec in SPEC_TYPES.items()
        if spec in specs
        and (kind in MAIN_TYPES) is scripted
        and missing_for(kind, ground.harness) is None
    )


async def _working(ground: Ground, types: tuple[CheckType, ...]) -> tuple[CheckType, ...]:
    """Those of the types that pass their boot check."""
    if not ground.makeup.checks_itself:
        return types
    runners = {runner.spec: runner for runner in ground.makeup.runners}

    def runner_for(spec: CheckSpec) -> Runner[Any]:
        return runners[type(spec)]

    checked = await boot_check(types, runner_for=runner_for, harness=ground.harness)
    return working_types(checked)


def hello_of(ground: Ground, check_types: tuple[CheckType, ...]) -> Hello:
    """What this agent says of itself."""
    settings = ground.settings
    slots = {Lane.UPTIME: settings.uptime_concurrency, Lane.MAIN: settings.job_concurrency}
    return Hello(
        agent_id=ground.agent_id,
        version=RELEASE,
        platform=platform_name(),
        runtimes=runtimes(None if ground.harness is None else ground.harness.runtimes),
        check_types=check_types,
        slots=served_slots(slots, check_types),
    )


async def learn_scripts(ground: Ground, introduction: Introduction, dispatcher: Dispatcher) -> None:
    """Find out which scripted types run here, which takes seconds, and offer them then.

    Checks without scripts do not wait for a browser's first start. A type that fails is tried
    again: a machine that was busy then must not cost the agent a type for its whole life.
    """
    untried, wait_s = _installed(ground, scripted=True), ground.makeup.pace.recheck_s
    while untried:
        works = await _working_scripts(ground, untried)
        if works:
            await _offer(works, ground, introduction, dispatcher)
        untried = tuple(kind for kind in untried if kind not in works)
        if untried:
            await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, _LONGEST_RECHECK_S)


async def _working_scripts(ground: Ground, types: tuple[CheckType, ...]) -> tuple[CheckType, ...]:
    try:
        return await _working(ground, types)
    except OSError as problem:  # no descriptor or port for the boot check: the others go on
        log.warning("scripts.unavailable", because=str(problem))
        return ()


async def _offer(
    scripted: tuple[CheckType, ...],
    ground: Ground,
    introduction: Introduction,
    dispatcher: Dispatcher,
) -> None:
    before = introduction.check_types()
    hello = hello_of(ground, (*before, *scripted))
    if not hello.slots[Lane.MAIN]:
        return
    introduction.learn(hello)
    # Claims name the types too: none of them waits for what becomes of one hello.
    if not hello_of(ground, before).slots[Lane.MAIN]:
        dispatcher.serve(Lane.MAIN, hello.slots[Lane.MAIN])
    with suppress(KeyRefusedError, VersionRefusedError):  # claims meet it too, and try on
        await introduction.first_hello(Backoff(ground.makeup.pace), until=ground.lifecycle.draining)


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
