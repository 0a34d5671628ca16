"""What a runner is, and what it may use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

import msgspec

from contract.checks import CheckSpec
from contract.job import ClientCertificate, Variable
from runners.kit.aside import Aside
from runners.kit.deadlines import Deadlines
from runners.kit.dns.resolve import Resolver
from runners.kit.egress.rules import EgressRules
from runners.kit.harness import NO_RUNTIME, Harness
from runners.kit.http.engine import HttpEngine
from runners.kit.icmp.pinger import Pinger
from runners.kit.isolation.workspace import Workspace
from runners.kit.observation import Observation
from runners.kit.readiness import Readiness
from runners.kit.scripts.runtimes import MissingRuntimeError
from runners.kit.tls.channel import TlsContexts

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_REMEMBERED_HOSTS: Final = 4096

SpecT_contra = TypeVar("SpecT_contra", bound=CheckSpec, contravariant=True)


class PingBook(Protocol):
    """The heartbeat pings that this agent has received itself."""

    def silent_for_s(self, token: str) -> float | None:
        """Seconds since the newest ping with this token. None: none came here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The process's tools for looking at targets; made once, shared by all runs."""

    http: HttpEngine
    pinger: Pinger
    resolver: Resolver
    egress: EgressRules
    tls: TlsContexts = field(default_factory=TlsContexts)
    """For checks that do TLS on their own sockets; by default with the system's roots alone."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    readiness: Readiness = field(default_factory=Readiness)
    aside: Aside = field(default_factory=Aside)
    harness: Harness | None = None
    """What scripts run with. None: this machine has no runtime, so no script can run."""
    refusals: Callable[[str], str | None] = field(init=False)
    """Why the egress rules refuse a host, as `EgressRules.refuses_name` says, remembered."""

    def __post_init__(self) -> None:
        remembered = lru_cache(maxsize=_REMEMBERED_HOSTS)(self.egress.refuses_name)
        object.__setattr__(self, "refusals", remembered)

    def scripts(self) -> Harness:
        """What scripts run with.

        Raises:
            MissingRuntimeError: nothing is there; the job belongs to another agent.
        """
        if self.harness is None:
            raise MissingRuntimeError(NO_RUNTIME)
        return self.harness


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may use."""

    network: Network
    pings: PingBook
    timeout_s: float
    """The runner ends by itself within this time and says what it was waiting for."""
    limit_s: float | None = None
    """The limit as it was set up, which sentences tell. None: it is `timeout_s`."""
    variables: tuple[Variable, ...] = ()
    environment: Mapping[str, str] = NOTHING
    """What scripts learn of their run from `process.env`, beside the variables, which win."""
    location_secrets: Mapping[str, str] = NOTHING
    """`SERVICE_SECRET_*` of the agent, which scripts read too; a check's variable of the same name
    wins. What installs packages never gets them."""
    client_certificates: tuple[ClientCertificate, ...] = ()
    proxy_url: str | None = None
    """The location's proxy for what URL and API checks send. None: direct."""
    workspace: Workspace = msgspec.field(default_factory=Workspace)
    """Where the run keeps the files that it names as artifacts; whoever made it removes it."""
    keeps_files: bool = False
    """Whether a run that passed keeps its trace and video as well: somebody asked for it."""

    @property
    def told_limit_s(self) -> float:
        """The limit that sentences tell."""
        return self.timeout_s if self.limit_s is None else self.limit_s


class Runner(Protocol[SpecT_contra]):
    """One check type: looks at a target and says what it saw."""

    @property
    def spec(self) -> type[CheckSpec]:
        """The spec type that this runner takes."""

    async def observe(self, spec: SpecT_contra, ctx: RunContext) -> Observation:
        """Look once.

        Raises:
            CheckFailed: the target could not be looked at, and that is the target's fault.
        """
