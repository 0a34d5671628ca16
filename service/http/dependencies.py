"""The parts of the service that routes use, handed to the application once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import Depends, FastAPI
from starlette.requests import Request

from service.accounts.authentication import ApiKeys
from service.accounts.keys import Pepper
from service.addresses.model import NO_ADDRESSES, StaticAddresses
from service.alert_channels.sending.outgoing import SendingTools
from service.bundles.files import BundleFiles
from service.checks.environment_urls import NO_HOSTS, EnvironmentHosts
from service.clickhouse.copies import ClickHouse
from service.clock import Clock
from service.db.engine import Database
from service.exporter.pages import Exporter
from service.http.rate_limits.rate_limit import RateLimits
from service.idempotency.idempotency import IdempotencyStore
from service.live.streams import LiveStreams
from service.locations.regions import NO_REGIONS, RegionLocations
from service.mqtt.hub import MqttHub
from service.object_store.model import ObjectStore
from service.oidc.provider import OpenIdProvider
from service.projects.running import Deployments
from service.sessions.waiting import SessionWaiters
from service.sign_in.attempts import SignInLimits
from service.traces.trace_links import ViewerAddress
from service.users.passwords import Passwords
from service.vault.encryption import Vault

_SENDING: Final = SendingTools()
_NO_VIEWER: Final = ViewerAddress()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Everything that the public API's routes use."""

    database: Database
    clock: Clock
    monotonic: Callable[[], float]
    """A clock in seconds that never goes back, for waits and rates."""
    pepper: Pepper
    keys: ApiKeys
    answers: IdempotencyStore
    waiters: SessionWaiters
    deployments: Deployments
    live: LiveStreams
    """Open pages that are told of changes."""
    mqtt: MqttHub
    """Clients that are told of the results of test sessions."""
    limits: RateLimits
    """Those that replicas count by themselves, and tell each other of."""
    sign_in_limits: SignInLimits
    """Those that all replicas share."""
    vault: Vault
    """Encrypts secrets that the database stores."""
    bundles: BundleFiles
    artifacts: ObjectStore
    """Keeps the files of runs."""
    exporter: Exporter
    """What Prometheus reads, as far as it is in memory."""
    archive: ClickHouse | None = None
    """Keeps copies of results that were removed here. None: nothing does."""
    addresses: StaticAddresses = NO_ADDRESSES
    """Where checks' requests come from, as the operator has set it."""
    regions: RegionLocations = NO_REGIONS
    """Where checks that name a region run, as the operator has set it."""
    environment_hosts: EnvironmentHosts = NO_HOSTS
    """At which hosts links may run checks, as the operator has set it."""
    badges_for_anyone: bool = False
    """Whether badges need no API key."""
    sends_status_mails: bool = False
    """Whether subscribers of status pages get mails: there is a mail server, and a `public_url`."""
    sending: SendingTools = _SENDING
    """What alert channels send by."""
    passwords: Passwords = field(default_factory=Passwords)
    """Checks those of users."""
    oidc: OpenIdProvider | None = None
    """Who else may say who somebody is. None: nobody."""
    trace_viewer: ViewerAddress = _NO_VIEWER
    """Where browsers find the viewer of traces."""
    public_url: str | None = None
    """Where people and jobs reach the service. None: where the request came in."""

    def base_url(self, request: Request) -> str:
        """The address that links in answers begin with, without a slash at its end."""
        return (self.public_url or str(request.base_url)).rstrip("/")


def attach(app: FastAPI, backend: Backend) -> None:
    """Give the application its parts."""
    app.state.backend = backend


def _backend(request: Request) -> Backend:
    found: Backend = request.app.state.backend
    return found


BackendDep = Annotated[Backend, Depends(_backend)]
