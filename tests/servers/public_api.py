"""The public API alone, on a database of its own and a real socket."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from service.accounts import actions as accounts
from service.accounts import store as accounts_store
from service.accounts.authenticate import ApiKeys
from service.accounts.keys import LOCATION_PREFIX, new_key
from service.accounts.model import FirstSecrets
from service.bundles.files import BundleFiles
from service.clock import ProcessClock
from service.db.engine import Database
from service.db.ids import new_id
from service.db.sqlite import open_sqlite
from service.db.tables import metadata
from service.http.backend import Backend
from service.http.rate import RateLimit
from service.http.routers import install_api
from service.locations import actions as locations
from service.sessions.waiting import SessionWaiters
from tests.servers.prompt_server import serve_promptly


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
            account_id = new_id(now_ms)
            accounts_store.insert_account(connection, account_id, name=name, now_ms=now_ms)
            key = accounts.create_key(connection, account_id, name=name, now_ms=now_ms)
            place = new_key(LOCATION_PREFIX)
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


@asynccontextmanager
async def serve_public_api(
    directory: Path, *, per_minute: int = 1_000_000
) -> AsyncIterator[PublicApi]:
    """Serve it with a first account, Alice's."""
    database = open_sqlite(directory / "service.db")
    await database.write(metadata.create_all)
    backend = _backend(database, directory, per_minute=per_minute)
    secrets = await database.write(
        lambda connection: accounts.first_start(connection, now_ms=backend.clock.now_ms(connection))
    )
    assert secrets is not None
    app = FastAPI(title="Picket", openapi_url=None, docs_url=None, redoc_url=None)
    install_api(app, backend)
    try:
        async with listening(app) as url, aiohttp.ClientSession() as http:
            alice = ApiUser(url, http, secrets)
            yield PublicApi(url, app, database, backend, http, alice)
    finally:
        backend.waiters.close()
        await database.close()


def _backend(database: Database, directory: Path, *, per_minute: int) -> Backend:
    return Backend(
        database=database,
        clock=ProcessClock(),
        monotonic=time.monotonic,
        keys=ApiKeys(database, monotonic=time.monotonic),
        waiters=SessionWaiters(database),
        rate=RateLimit(monotonic=time.monotonic, per_minute=per_minute),
        bundles=BundleFiles(directory / "bundles"),
        artifacts=directory / "artifacts",
    )


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """Where the application listens on loopback."""
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_keep_alive=600)
    async with serve_promptly(config) as url:
        yield url
