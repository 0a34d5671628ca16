"""The tools that runners share, such as the HTTP client: opened and closed with the process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from contract.requests import IpFamily
from contract.result import CheckFailed, FailureKind
from runners.execute import ThreadWorkers
from runners.judging.judging_process import JudgingProcess
from runners.net.deadlines import Deadlines
from runners.net.dns.resolve import Resolver
from runners.net.egress.rules import EgressRules
from runners.net.http.body_memory import BodyMemory
from runners.net.http.client import HttpEngine
from runners.net.icmp.pinger import Pinger
from runners.net.sockets import Readiness, literal_family
from runners.net.tls.channel import TlsContexts
from runners.scripting.node.runtimes import NO_RUNTIME, MissingRuntimeError
from sandbox.system_calls import map_large_blocks

if TYPE_CHECKING:
    from runners.scripting.harness import Harness

_CACHED_HOSTS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What runners observe targets with; made once per process, shared by all runs."""

    http: HttpEngine
    pinger: Pinger
    resolver: Resolver
    egress: EgressRules
    tls: TlsContexts = field(default_factory=TlsContexts)
    """TLS of checks on their own sockets; by default it trusts the system's roots alone."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    readiness: Readiness = field(default_factory=Readiness)
    aside: ThreadWorkers = field(default_factory=ThreadWorkers)
    judging: JudgingProcess = field(default_factory=JudgingProcess)
    bodies: BodyMemory = field(default_factory=BodyMemory)
    harness: "Harness | None" = None
    """What scripts run with. None: this machine has no runtime, so no script can run."""
    refusals: Callable[[str], str | None] = field(init=False)
    """`EgressRules.refuses_name` with a cache: why the rules refuse a host. None: they do not."""

    def __post_init__(self) -> None:
        cached = lru_cache(maxsize=_CACHED_HOSTS)(self.egress.refuses_name)
        object.__setattr__(self, "refusals", cached)

    def scripts(self) -> "Harness":
        """What scripts run with.

        Raises:
            MissingRuntimeError: this machine has no runtime; the job belongs to another agent.
        """
        if self.harness is None:
            raise MissingRuntimeError(NO_RUNTIME)
        return self.harness


@asynccontextmanager
async def open_tools(
    egress: EgressRules,
    *,
    resolver: Resolver,
    extra_ca_pem: str | None = None,
    harness: "Harness | None" = None,
    bodies: BodyMemory | None = None,
) -> AsyncIterator[Tools]:
    """Open the tools for the duration of the block; the caller closes resolver and harness.

    `bodies`: the memory that kept bodies share. None: one of the default size.
    HTTP exchanges resolve inside libcurl, by the system; the resolver is for the other runners.
    """
    map_large_blocks()  # for bodies
    pinger, readiness, aside, judging = Pinger(), Readiness(), ThreadWorkers(), JudgingProcess()
    further_roots = None if extra_ca_pem is None else extra_ca_pem.encode()
    async with HttpEngine(egress, extra_ca_pem=further_roots) as http:
        try:
            yield Tools(
                http=http,
                pinger=pinger,
                resolver=resolver,
                egress=egress,
                tls=TlsContexts(extra_ca_pem=extra_ca_pem),
                readiness=readiness,
                aside=aside,
                judging=judging,
                bodies=bodies or BodyMemory(),
                harness=harness,
            )
        finally:
            pinger.close()
            readiness.close()
            aside.close()
            judging.close()


_NOT_IN_A_HOST: Final = ("/", ":", "?", "#", "@")


async def resolve_allowed(
    hostname: str, family: IpFamily, network: Tools, *, field: str = "hostname"
) -> tuple[str, ...]:
    """Resolve the host to its addresses, in the order to try.

    One refused address refuses them all: a name that also resolves to a forbidden address is more
    often an attack than a mistake.

    Raises:
        CheckFailed: of kind DNS without an address, or when `field` holds more than a host; of
            kind CONNECT for an address of the other family; of kind EGRESS with a forbidden one.
    """
    if literal_family(hostname) is None:
        _require_bare_host(hostname, field)
    _raise_if_refused(network.refusals(hostname), hostname)
    addresses = await network.resolver.resolve(hostname, family)
    if literal_family(hostname) is not None:
        return addresses  # judged as an address already
    for address in addresses:
        _raise_if_refused(network.egress.refuses(hostname, address), hostname, address)
    return addresses


def require_allowed_name(hostname: str, network: Tools) -> None:
    """Check a host that somebody else resolves against the egress rules.

    Raises:
        CheckFailed: of kind EGRESS.
    """
    _raise_if_refused(network.refusals(hostname), hostname)


def _require_bare_host(text: str, field: str) -> None:
    if not any(mark in text for mark in _NOT_IN_A_HOST):
        return
    raise CheckFailed(
        FailureKind.DNS,
        f"{text} cannot be resolved: {field} must be a name or an address, "
        "without scheme, port and path.",
        {"code": "ENOTFOUND", "hostname": text},
    )


def _raise_if_refused(refusal: str | None, hostname: str, address: str | None = None) -> None:
    if refusal is not None:
        detail = {"code": "EGRESS_REFUSED", "hostname": hostname, "address": address}
        raise CheckFailed(FailureKind.EGRESS, refusal, detail)
