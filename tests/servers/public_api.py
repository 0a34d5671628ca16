"""The public API alone, on a database of its own and a real socket."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from service.accounts import actions as accounts
from service.accounts.actions import KeyRequest
from service.accounts.authentication import ApiKeys
from service.accounts.keys import LOCATION_PREFIX, Pepper
from service.accounts.model import FirstSecrets, Role
from service.bundles.files import BundleFiles
from service.clock import Clock
from service.db.databases import open_database
from service.db.engine import Database
from service.db.tables.metadata import metadata
from service.exporter.pages import exporter_of
from service.http.dependencies import Backend
from service.http.rate_limits.rate_limit import Allowance, RateClass, RateLimits
from service.http.server.websocket import OPTIONS
from service.idempotency.idempotency import IdempotencyStore
from service.live.streams import LiveStreams
from service.locations import actions as locations
from service.locations.regions import NO_REGIONS, RegionLocations
from service.mqtt.hub import MqttHub
from service.object_store.folder import FolderStore
from service.projects.running import Deployments
from service.routers import install_api
from service.sessions.waiting import SessionWaiters
from service.settings import PostgresUrl
from service.sign_in.attempts import SignInLimits
from service.traces.trace_links import ViewerAddress
from tests.builders.vaults import a_vault
from tests.servers.prompt_server import serve_promptly

PEPPER = Pepper(b"of tests")
NO_VIEWER = ViewerAddress()


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, read whole."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ApiUser:
    """Somebody with an API key."""

    url: str
    http: aiohttp.ClientSession
    secrets: FirstSecrets
    extra: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """One request with this user's key."""
        headers = {
            "authorization": f"Bearer {self.secrets.api_key}",
            **self.extra,
            **more.pop("headers", {}),
        }
        if body is not None:
            more["json"] = body
        async with self.http.request(method, self.url + path, headers=headers, **more) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json"
            content = await answer.json() if is_json and text else text
            lowered = {key.lower(): value for key, value in answer.headers.items()}
            return Answer(answer.status, content, lowered)

    async def get(self, path: str, **more: Any) -> Answer:
        """Read."""
        return await self.ask("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        """Make."""
        return await self.ask("POST", path, body, **more)

    async def put(self, path: str, body: Any = None, **more: Any) -> Answer:
        """Replace."""
        return await self.ask("PUT", path, body, **more)

    async def delete(self, path: str, **more: Any) -> Answer:
        """Remove."""
        return await self.ask("DELETE", path, **more)


@dataclass(frozen=True, slots=True)
class PublicApi:
    """A running API."""

    url: str
    app: FastAPI
    database: Database
    backend: Backend
    http: aiohttp.ClientSession
    alice: ApiUser

    async def another_user(self, name: str) -> ApiUser:
        """Somebody with an account of their own."""

        def change(connection: Any) -> FirstSecrets:
            now_ms = self.backend.clock.now_ms(connection)
            account_id = accounts.create_account(connection, name=name, now_ms=now_ms).id
            _, key = accounts.create_key(
                connection, PEPPER, account_id, wish=KeyRequest(name=name), now_ms=now_ms
            )
            place = PEPPER.new_key(LOCATION_PREFIX)
            location_id = locations.create_first(
                connection, account_id, slug="default", key=place, now_ms=now_ms
            )
            return FirstSecrets(
                account_id=account_id,
                api_key=key.raw,
                location_id=location_id,
                location_slug="default",
                location_key=place.raw,
            )

        return ApiUser(self.url, self.http, await self.database.write(change))

    async def colleague(self, name: str, *, role: Role = Role.READ_WRITE) -> ApiUser:
        """Somebody with a key of their own to Alice's account."""
        secrets = self.alice.secrets

        def change(connection: Any) -> str:
            now_ms = self.backend.clock.now_ms(connection)
            wish = KeyRequest(name=name, role=role)
            _, key = accounts.create_key(
                connection, PEPPER, secrets.account_id, wish=wish, now_ms=now_ms
            )
            return key.raw

        api_key = await self.database.write(change)
        return ApiUser(self.url, self.http, replace(secrets, api_key=api_key))


@asynccontextmanager
async def serve_public_api(
    directory: Path,
    *,
    per_minute: int = 1_000_000,
    trace_viewer: ViewerAddress = NO_VIEWER,
    regions: RegionLocations = NO_REGIONS,
    postgresql_url: str | None = None,
    secrets: FirstSecrets | None = None,
) -> AsyncIterator[PublicApi]:
    """Serve it with a first account, Alice's.

    `secrets`: those of an earlier one on the same database.
    `postgresql_url`: one that has the newest schema. None: a SQLite file in the folder.
    """
    where = PostgresUrl(postgresql_url) if postgresql_url else directory / "service.db"
    database = open_database(where)
    if postgresql_url is None:
        await database.write(metadata.create_all)
    backend = _backend(database, directory, per_minute=per_minute)
    backend = replace(backend, trace_viewer=trace_viewer, regions=regions)
    secrets = secrets or await database.write(
        lambda c: accounts.first_start(c, PEPPER, now_ms=backend.clock.now_ms(c))
    )
    assert secrets is not None
    app = FastAPI(title="Picket", openapi_url=None, docs_url=None, redoc_url=None)
    install_api(app, backend)
    try:
        async with listening(app) as url, aiohttp.ClientSession() as http:
            alice = ApiUser(url, http, secrets)
            loops = [
                asyncio.create_task(backend.live.run(), name="live"),
                asyncio.create_task(backend.mqtt.run(), name="mqtt"),
            ]
            try:
                yield PublicApi(url, app, database, backend, http, alice)
            finally:
                for loop in loops:
                    loop.cancel()
                backend.live.close()
                backend.mqtt.close()
    finally:
        backend.waiters.close()
        await backend.deployments.close()
        await database.close()


def _backend(database: Database, directory: Path, *, per_minute: int) -> Backend:
    clock = Clock()
    allowances = {kind: Allowance(per_minute) for kind in RateClass}
    return Backend(
        database=database,
        clock=clock,
        monotonic=time.monotonic,
        pepper=PEPPER,
        keys=ApiKeys(database, pepper=PEPPER, monotonic=time.monotonic),
        answers=IdempotencyStore(PEPPER),
        waiters=SessionWaiters(database),
        deployments=Deployments(database),
        live=LiveStreams(database, clock),
        mqtt=MqttHub(database),
        limits=RateLimits(monotonic=time.monotonic, allowances=allowances),
        sign_in_limits=SignInLimits(database, clock, PEPPER, allowances),
        vault=a_vault(),
        bundles=BundleFiles(directory / "bundles"),
        artifacts=FolderStore(directory / "artifacts"),
        exporter=exporter_of(database, time.monotonic),
    )


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """Where the application listens on loopback."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_keep_alive=600, **OPTIONS)
    async with serve_promptly(config) as url:
        yield url
