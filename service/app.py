"""The service as a whole: how its parts hang together, and the order in which they stop."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service.accounts import actions as accounts
from service.accounts.actions import first_start, require_pepper
from service.accounts.authentication import ApiKeys
from service.accounts.keys import Pepper
from service.accounts.model import FirstSecrets, GivenKeys, WrongPepperError
from service.agents import actions as agents
from service.agents.api import AgentApi
from service.agents.artifacts import ArtifactDoor
from service.agents.location_keys import LocationKeys
from service.agents.presence import Presence
from service.agents.submissions import Submissions
from service.alert_channels import actions as alert_channels
from service.alert_channels.delivery import Delivery
from service.alert_channels.sending.egress import EgressRule
from service.alert_channels.sending.http_client import HttpClient
from service.alert_channels.sending.outgoing import SendingTools
from service.alerting import actions as alerting
from service.alerting.expiry import EVERY_S as CERTIFICATES_EVERY_S
from service.alerting.expiry import CertificateWatch
from service.analytics import actions as analytics
from service.analytics import worker as roll_up_worker
from service.analytics.worker import RollUpWorker
from service.audit import audit
from service.audit.model import Entry
from service.bundles.api import BundleDownloads
from service.bundles.bundles import BundleSweep
from service.bundles.files import BundleFiles
from service.clickhouse import copying
from service.clickhouse.copies import ClickHouse, open_archive
from service.clickhouse.copying import CopyWorker
from service.clock import Clock, GapWatch
from service.db.databases import open_database
from service.db.engine import Database, DatabaseBusyError, DatabaseFullError
from service.db.migrate import migrate
from service.db.partitions import days
from service.db.periodic_tasks import Periodic, changing
from service.exporter.pages import exporter_of
from service.heartbeats.api import PingApi
from service.http.dependencies import Backend
from service.http.error_responses import error_response
from service.http.errors import ApiError, NoRoomError
from service.http.performance.fast_path import FastPath
from service.http.rate_limits import shared_counts
from service.http.rate_limits.rate_limit import Allowance, RateClass, RateLimits
from service.http.rate_limits.shared_counts import SharedCounts
from service.idempotency import idempotency
from service.idempotency.idempotency import IdempotencyStore
from service.jobs import settle
from service.jobs.long_poll import ClaimQueue, open_claim_queue
from service.jobs.model import DueTimesMissed
from service.jobs.unnamed_leases import UnnamedLeases
from service.live.streams import LiveStreams
from service.locations.health import LocationWatch
from service.mail.mailer import Mailer
from service.metrics import Metrics, RequestMetrics
from service.metrics_page import MetricsPage
from service.mqtt.hub import MqttHub
from service.object_store.choice import open_store
from service.object_store.folder import FolderStore
from service.object_store.model import ObjectStore
from service.oidc.provider import OpenIdProvider
from service.pepper import pepper_of, wrong_pepper
from service.projects import actions as projects
from service.projects.running import Deployments
from service.results.model import Stored
from service.retention.model import Kept
from service.retention.retention import Retention
from service.routers import install_api
from service.scheduling.tick import GROUP, ClockWatch, Scheduler
from service.sessions import actions as sessions
from service.sessions.waiting import SessionWaiters
from service.settings import BadgeAccess, PostgresUrl, Settings
from service.sign_in import actions as sign_in
from service.sign_in.attempts import SignInLimits
from service.subscriptions import actions as subscriptions
from service.subscriptions.mails import GROUP as MAIL_GROUP
from service.subscriptions.mails import Links, StatusMails
from service.traces.trace_links import TraceLinks, ViewerAddress
from service.traces.viewer_app import viewer_app
from service.vault.encryption import Vault
from service.vault.startup import open_vault

log = structlog.get_logger()

_TICK_S = 0.25
_REAP_S = 1.0
_LOOK_S = 5.0
_TIMERS_S = 1.0
_SWEEP_S = 600.0
_KEY_USES_S = 60.0
_MAILS_S = 1.0
_MAIL_S = 30.0
"""For one mail of an alert: relays answer later than other receivers."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ROLL_UP_S = 30.0
_DISK_FULL = "The service's disk takes no more; nothing was stored. Try again once it has room."


class BusyError(ApiError):
    """503: nothing was stored; try again."""

    status = 503


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The running service."""

    app: FastPath
    first_secrets: FirstSecrets | None
    """What a first start made. None: it was none."""
    claim_queue: ClaimQueue
    waiters: SessionWaiters
    deployments: Deployments
    trace_viewer: ASGIApp
    """What answers at the trace viewer's origin."""
    live: LiveStreams
    mqtt: MqttHub

    async def end_long_polls(self) -> None:
        """Answer every long poll now, so that the shutdown waits for no client."""
        self.live.close()
        self.mqtt.close()
        self.waiters.close()
        await self.deployments.close()
        await self.claim_queue.close()


@asynccontextmanager
async def running(settings: Settings, *, clock: Clock | None = None) -> AsyncIterator[Service]:
    """Open the database, bring its schema up, and run the loops for as long as the context lasts.

    Raises:
        SettingsError: a key or the pepper is missing, or not the one that was stored with; or
            the bucket for artifacts cannot be used.
        DatabaseUnusableError: there is no keeping a database where the settings say.
        NewerSchemaError: a newer service has used the database.
    """
    clock = clock or Clock()
    pepper, vault = await _prepare(settings)
    artifacts = await open_store(settings.artifact_bucket, settings.artifact_folder)
    archive = open_archive(settings.clickhouse_url, days=settings.clickhouse_days)
    database = open_database(settings.database)
    try:
        secrets = await database.write(lambda c: _first_start(c, pepper, settings, clock))
        await database.write(lambda c: settle.extend_leases_after_gap(c, now_ms=clock.now_ms(c)))
        backend = _backend(
            settings, database, clock, pepper=pepper, vault=vault, artifacts=artifacts
        )
        backend, metrics = replace(backend, archive=archive), Metrics()
        watch = GapWatch(await database.read(_last_heard_ms))
        claim_queue = await open_claim_queue(database, clock, vault, watch)
        service, presence = _assemble(settings, backend, claim_queue, secrets, metrics)
        periodics = [
            *_periodics(clock, watch, backend.bundles),
            _key_uses(clock, backend.keys),
            *_status_mails(settings, clock, pepper),
            *_history(clock, settings, artifacts),
            *await _copies(database, clock, archive, metrics),
            *_request_counts(settings, database, backend.limits),
        ]
        delivery = Delivery(database, clock, vault, backend.sending)
        loops = {
            "presence": presence.run(),
            "alert-delivery": delivery.run(),
            "live": backend.live.run(),
            "mqtt": backend.mqtt.run(),
        }
        async with _loops(database, periodics, loops):
            try:
                yield service
            finally:
                await service.end_long_polls()
        await presence.write()
    finally:
        await database.close()
        if archive is not None:
            archive.close()


@asynccontextmanager
async def _loops(
    database: Database,
    periodics: Iterable[Periodic],
    others: Mapping[str, Coroutine[Any, Any, None]],
) -> AsyncIterator[None]:
    """The service's own tasks."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(periodic.run(database), name=periodic.name) for periodic in periodics
        ]
        tasks += [group.create_task(loop, name=name) for name, loop in others.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _prepare(settings: Settings) -> tuple[Pepper, Vault]:
    """What opens the database, which has the newest schema then and no secret in clear.

    It is closed again: its log, which goes then, may tell what was in clear before.
    """
    database = open_database(settings.database)
    try:
        await database.write(migrate)
        await database.write(days.create_ahead)
        pepper = pepper_of(settings)
        try:
            was_used = await database.write(lambda connection: require_pepper(connection, pepper))
        except WrongPepperError as problem:
            raise wrong_pepper(settings) from problem
        # Another service on the same PostgreSQL has the key that this one would make.
        is_shared = was_used and isinstance(settings.database, PostgresUrl)
        return pepper, await open_vault(settings, database, may_make=not is_shared)
    finally:
        await database.close()


def _first_start(
    connection: Connection, pepper: Pepper, settings: Settings, clock: Clock
) -> FirstSecrets | None:
    given = GivenKeys(api_key=settings.first_api_key, location_key=settings.first_location_key)
    return first_start(connection, pepper, now_ms=clock.now_ms(connection), given=given)


def _last_heard_ms(connection: Connection) -> int:
    """When any agent was last heard of: the service was up then. 0: none ever was."""
    return max(agents.last_seen_at(connection).values(), default=0)


def _periodics(clock: Clock, watch: GapWatch, bundles: BundleFiles) -> tuple[Periodic, ...]:
    reaper = settle.Reaper(watch)

    def reap(connection: Connection) -> int:
        now_ms = clock.now_ms(connection)
        ended = reaper.reap(connection, now_ms=now_ms)
        return ended + sessions.end_overdue_of_groups(connection, now_ms=now_ms)

    def forgetter(connection: Connection) -> int:
        now_ms = clock.now_ms(connection)
        gone = idempotency.forget_old(connection, now_ms=now_ms)
        gone += subscriptions.forget_unconfirmed(connection, now_ms=now_ms)
        gone += sign_in.forget_expired(connection, now_ms=now_ms)
        gone += alert_channels.forget_old(connection, now_ms=now_ms)
        gone += projects.forget_old(connection, now_ms=now_ms)
        return gone + audit.forget_old(connection, now_ms=now_ms)

    def act_on_timers(connection: Connection) -> int:
        return alerting.act_on_timers(connection, now_ms=clock.now_ms(connection))

    locations, clock_watch = LocationWatch(clock, watch), ClockWatch(clock)
    sweep = BundleSweep(bundles, clock).sweep
    return (
        Periodic(
            name="alert-timers",
            act=changing(act_on_timers),
            every_s=_TIMERS_S,
            most=alerting.GROUP,
        ),
        Periodic(
            name="certificates", act=CertificateWatch(clock).look, every_s=CERTIFICATES_EVERY_S
        ),
        Periodic(name="bundles", act=sweep, every_s=_SWEEP_S),
        Periodic(name="forgetter", act=changing(forgetter), every_s=_SWEEP_S),
        Periodic(name="scheduler", act=Scheduler(clock).act, every_s=_TICK_S, most=GROUP),
        Periodic(
            name="clock-watch", act=changing(clock_watch.reschedule_if_set_back), every_s=_REAP_S
        ),
        Periodic(name="locations", act=changing(locations.look), every_s=_LOOK_S),
        Periodic(name="reaper", act=changing(reap), every_s=_REAP_S, most=settle.GROUP),
    )


def _key_uses(clock: Clock, keys: ApiKeys) -> Periodic:
    def note(connection: Connection) -> int:
        return accounts.note_use(connection, keys.take_used(), now_ms=clock.now_ms(connection))

    return Periodic(name="key-uses", act=changing(note), every_s=_KEY_USES_S)


def _mailer(settings: Settings) -> Mailer | None:
    """None: the operator has named no mail server."""
    server, sender = settings.smtp_server, settings.mail_sender
    return None if server is None or sender is None else Mailer(server, sender)


def _status_mails(settings: Settings, clock: Clock, pepper: Pepper) -> list[Periodic]:
    """Links in mails need an address that no request tells."""
    mailer, base_url = _mailer(settings), settings.public_url
    if mailer is None or base_url is None:
        return []
    mails = StatusMails(clock, mailer, Links(pepper, base_url))
    return [Periodic(name="status-mails", act=mails.send_due, every_s=_MAILS_S, most=MAIL_GROUP)]


def _history(clock: Clock, settings: Settings, artifacts: ObjectStore) -> tuple[Periodic, ...]:
    """What rolls results up, and what removes them."""
    kept = Kept(
        results=settings.results_kept_days,
        rollups=settings.rollups_kept_days,
        files=settings.files_kept_days,
        late_results=settings.late_results_kept_days,
        alerts=settings.alerts_kept_days,
    )
    retention = Retention(clock, kept, artifacts, FolderStore(settings.artifact_folder))
    return (
        Periodic(
            name="roll-ups",
            act=RollUpWorker(clock).act,
            every_s=_ROLL_UP_S,
            most=roll_up_worker.GROUP,
        ),
        Periodic(name="retention", act=retention.sweep, every_s=_SWEEP_S),
    )


def _request_counts(
    settings: Settings, database: Database, limits: RateLimits
) -> tuple[Periodic, ...]:
    """What lets services that share a database count requests together."""
    if not isinstance(settings.database, PostgresUrl):
        return ()
    counts = SharedCounts(limits)
    counts.listen(database)
    return (Periodic(name="request-counts", act=counts.tell, every_s=shared_counts.EVERY_S),)


async def _copies(
    database: Database, clock: Clock, archive: ClickHouse | None, metrics: Metrics
) -> tuple[Periodic, ...]:
    """What copies results to ClickHouse, if that is set."""
    if archive is None:
        await database.write(analytics.end_copying)
        return ()
    worker = CopyWorker(archive, clock, monotonic=time.monotonic, report=metrics.note_copies)
    return (Periodic(name="copies", act=worker.act, every_s=_ROLL_UP_S, most=copying.GROUP),)


def _assemble(
    settings: Settings,
    backend: Backend,
    claim_queue: ClaimQueue,
    secrets: FirstSecrets | None,
    metrics: Metrics,
) -> tuple[Service, Presence]:
    database, clock = backend.database, backend.clock
    presence = Presence(database, clock, waiting=claim_queue.waiting_agents)
    database.listen(Stored, metrics.count_results)
    database.listen(DueTimesMissed, metrics.count_due_times_missed)
    database.listen(Entry, audit.log_entry)
    agents = _agents(backend, settings.artifact_folder, claim_queue, presence, metrics)
    page = MetricsPage(database, clock, metrics, settings.metrics_access)
    app = FastAPI(title="Picket", openapi_url=None, docs_url=None, redoc_url=None)
    pings = PingApi(database, clock, backend.limits)
    app.router.routes += [*pings.routes(), *page.routes()]
    front = _application(app, agents, backend, metrics)
    # The last is the first to see a request: all others know where it comes from. Agents' calls
    # pass it by: nothing asks from where they come, and it is 2 % of a claim.
    app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))
    service = Service(
        app=front,
        first_secrets=secrets,
        claim_queue=claim_queue,
        waiters=backend.waiters,
        deployments=backend.deployments,
        live=backend.live,
        mqtt=backend.mqtt,
        trace_viewer=viewer_app(
            TraceLinks(backend.pepper), backend.artifacts, public_url=settings.public_url
        ),
    )
    return service, presence


def _agents(
    backend: Backend, spool: Path, claim_queue: ClaimQueue, presence: Presence, metrics: Metrics
) -> AgentApi:
    database = backend.database
    return AgentApi(
        database=database,
        clock=backend.clock,
        keys=LocationKeys(database, pepper=backend.pepper, monotonic=backend.monotonic),
        limits=backend.limits,
        presence=presence,
        claim_queue=claim_queue,
        submissions=Submissions(database, backend.clock),
        unnamed=UnnamedLeases(backend.monotonic),
        artifacts=ArtifactDoor(database, spool, backend.artifacts),
        bundles=BundleDownloads(database, backend.bundles),
        claimed=metrics.count_claim,
    )


def _application(app: FastAPI, agents: AgentApi, backend: Backend, metrics: Metrics) -> FastPath:
    """Put all that answers into the application."""
    calls = agents.message_routes()
    app.router.routes += [*calls, *agents.file_routes()]
    app.add_exception_handler(DatabaseBusyError, _busy)
    install_api(app, backend)
    return FastPath(
        app,
        {call.path: call.endpoint for call in calls},
        otherwise=RequestMetrics(app, metrics, monotonic=time.monotonic),
        metrics=metrics,
        monotonic=time.monotonic,
    )


def _limits(settings: Settings) -> RateLimits:
    chosen = {
        RateClass.GENERAL: Allowance(settings.api_requests),
        RateClass.RESULT_LISTS: Allowance(settings.result_lists),
        RateClass.ANALYTICS: Allowance(settings.analytics_requests),
        RateClass.AGENTS: Allowance(settings.agent_requests),
        RateClass.REFUSED: Allowance(settings.refused_requests),
    }
    return RateLimits(monotonic=time.monotonic, allowances=chosen)


def _backend(  # noqa: PLR0913 - what a service is made of
    settings: Settings,
    database: Database,
    clock: Clock,
    *,
    pepper: Pepper,
    vault: Vault,
    artifacts: ObjectStore,
) -> Backend:
    return Backend(
        database=database,
        clock=clock,
        monotonic=time.monotonic,
        pepper=pepper,
        keys=ApiKeys(database, pepper=pepper, monotonic=time.monotonic),
        answers=IdempotencyStore(pepper),
        waiters=SessionWaiters(database),
        deployments=Deployments(database),
        live=LiveStreams(database, clock),
        mqtt=MqttHub(database),
        limits=_limits(settings),
        sign_in_limits=SignInLimits(database, clock, pepper),
        vault=vault,
        bundles=BundleFiles(
            settings.data_dir / "bundles", bucket=artifacts if settings.artifact_store else None
        ),
        artifacts=artifacts,
        exporter=exporter_of(database, time.monotonic),
        addresses=settings.static_addresses,
        regions=settings.region_locations,
        environment_hosts=settings.environment_hosts,
        badges_for_anyone=settings.badge_access is BadgeAccess.ANYONE,
        sends_status_mails=settings.smtp_server is not None and settings.public_url is not None,
        sending=_sending_tools(settings),
        oidc=_identity_provider(settings),
        trace_viewer=ViewerAddress(port=settings.trace_viewer_port, url=settings.trace_viewer_url),
        public_url=settings.public_url,
    )


def _identity_provider(settings: Settings) -> OpenIdProvider | None:
    oidc = settings.oidc
    if oidc is None:
        return None
    egress = EgressRule(settings.alert_egress_allow)
    return OpenIdProvider(oidc, egress, monotonic=time.monotonic)


def _sending_tools(settings: Settings) -> SendingTools:
    server, sender = settings.smtp_server, settings.mail_sender
    return SendingTools(
        http=HttpClient(EgressRule(settings.alert_egress_allow)),
        mailer=Mailer(server, sender, limit_s=_MAIL_S) if server and sender else None,
        sms_gateway=settings.sms_gateway,
        call_gateway=settings.call_gateway,
        base_url=settings.public_url or _find_own_url(settings),
    )


def _find_own_url(settings: Settings) -> str | None:
    """Where people reach a service that listens on this machine alone. None: nobody knows."""
    host = settings.host
    if host not in _LOOPBACK or not settings.port:
        log.warning(
            "alert_channels.no_links",
            setting="SERVICE_PUBLIC_URL",
            reason="Notifications have no links until it is set to the address people use.",
        )
        return None
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


async def _busy(_request: Request, problem: Exception) -> Response:
    if isinstance(problem, DatabaseFullError):
        return error_response(NoRoomError(_DISK_FULL, headers={"retry-after": "5"}))
    log.warning("http.database_busy", reason=str(problem))
    refusal = BusyError("The database is busy; try again.", headers={"retry-after": "1"})
    return error_response(refusal)
