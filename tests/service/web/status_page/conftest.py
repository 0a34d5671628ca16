"""What tests of public status pages share."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from fastapi import FastAPI

from service.http.dependencies import Backend
from service.routers import install_api
from service.traces.trace_links import ViewerAddress
from tests.fakes.clock import FakeClock
from tests.servers.public_api import PublicApi, listening
from tests.service.web.conftest import WebAnswer


@dataclass(frozen=True, slots=True)
class Site:
    """The service, to which visitors come under several names, and whose time stands still."""

    url: str
    http: aiohttp.ClientSession
    backend: Backend
    clock: FakeClock
    passed_s: list[float] = field(default_factory=lambda: [0.0])

    def pass_s(self, seconds: float) -> None:
        """Let time go by."""
        self.passed_s[0] += seconds
        self.clock.pass_s(seconds)

    async def get(self, path: str, **headers: str) -> WebAnswer:
        """What a visitor gets."""
        return await self.ask("GET", path, headers=headers)

    async def ask(self, method: str, path: str, **more: Any) -> WebAnswer:
        """One request, without cookies of earlier ones."""
        more["headers"] = {name.replace("_", "-"): v for name, v in more["headers"].items()}
        request = self.http.request(method, self.url + path, allow_redirects=False, **more)
        async with request as answer:
            content = await answer.read()
            text = content.decode("utf-8", "replace")
            return WebAnswer(answer.status, text, answer.headers)


@pytest.fixture
async def site(api: PublicApi) -> AsyncIterator[Site]:
    """The service at https://picket.example.com, on the database of `api`."""
    passed_s = [0.0]
    clock = FakeClock()
    backend = replace(
        api.backend,
        clock=clock,
        monotonic=lambda: passed_s[0],
        public_url="https://picket.example.com",
        trace_viewer=ViewerAddress(url="https://traces.example.com"),
        sends_status_mails=True,
    )
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    install_api(app, backend)
    jar = aiohttp.DummyCookieJar()
    async with listening(app) as url, aiohttp.ClientSession(cookie_jar=jar) as http:
        yield Site(url, http, backend, clock, passed_s)
