"""The whole service in this process, on a database of its own and a real socket."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

from service.accounts.model import FirstSecrets
from service.app import Service, running
from service.http.server.websocket import OPTIONS
from service.serving import StartupGate
from service.settings import Settings
from tests.servers.prompt_server import serve_promptly
from tests.servers.public_api import Answer, ApiUser

HELLO = {
    "agentId": "agent-1",
    "version": "1.0.0",
    "platform": "linux-x86_64",
    "checkTypes": ["URL", "TCP", "HEARTBEAT"],
    "slots": {"uptime": 8},
}
RESULTS = "/agent/v1/results"


@dataclass(frozen=True, slots=True)
class RunningService:
    """Where it is, and the secrets of its first start."""

    url: str
    service: Service
    front: StartupGate
    secrets: FirstSecrets
    http: aiohttp.ClientSession

    @property
    def alice(self) -> ApiUser:
        return ApiUser(self.url, self.http, self.secrets)

    async def agent(
        self, method: str, path: str, body: Any = None, *, agent_id: str = "agent-1", **more: Any
    ) -> Answer:
        """One request of an agent."""
        headers = {
            "authorization": f"Bearer {self.secrets.location_key}",
            "x-agent-id": agent_id,
            **more.pop("headers", {}),
        }
        if body is not None:
            more["json"] = body
        async with self.http.request(
            method, self.url + path, headers={**headers}, **more
        ) as answer:
            return Answer(answer.status, await answer.json(), dict(answer.headers))

    async def hello(self, **changes: Any) -> Answer:
        return await self.agent("POST", "/agent/v1/hello", {**HELLO, **changes})

    async def claim(self, claim_id: str = "claim-1", **changes: Any) -> Answer:
        body: Mapping[str, Any] = {
            "claimId": claim_id,
            "slots": {"uptime": 8},
            "checkTypes": HELLO["checkTypes"],
            "waitSeconds": 30,
            **changes,
        }
        return await self.agent("POST", "/agent/v1/jobs/claim", body)

    async def a_url_check(self, **changes: Any) -> str:
        """A check at the first location, without retries; it runs at once."""
        body = {
            "name": "Front page",
            "request": {"method": "GET", "url": "http://127.0.0.1:9/"},
            "privateLocations": [self.secrets.location_slug],
            "doubleCheck": False,
            **changes,
        }
        made = await self.alice.post("/v1/checks/url", body)
        assert made.status == 201, made.body
        return str(made.body["id"])


async def a_claimed_job(service: RunningService) -> dict[str, Any]:
    """A run of a new check, as the agent that took it was handed it."""
    await service.hello()
    await service.a_url_check()
    return (await service.claim()).body["jobs"][0]


def a_result_body(job: dict[str, Any], status: str = "PASSED", **changes: Any) -> dict[str, Any]:
    """A result of it, as an agent sends it."""
    return {
        "jobId": job["jobId"],
        "fence": job["fence"],
        "runId": job["runId"],
        "checkId": job["checkId"],
        "checkType": job["spec"]["type"],
        "agentId": "agent-1",
        "startedAt": "2026-11-21T10:00:00Z",
        "startedAfterSeconds": 0.0,
        "tookSeconds": 0.1,
        "outcome": {"status": status, "responseTimeMs": 12.5},
        **changes,
    }


@asynccontextmanager
async def serve_service(
    directory: Path, *, first_secrets: FirstSecrets | None = None, **settings: Any
) -> AsyncIterator[RunningService]:
    """Serve it; the first start's secrets are at hand, or those given, of an earlier one."""
    chosen = Settings(**{"data_dir": directory, "database": directory / "service.db", **settings})
    async with running(chosen) as service, aiohttp.ClientSession() as http:
        secrets = service.first_secrets or first_secrets
        assert secrets is not None
        front = StartupGate()
        front.open(service.app)
        async with _listening(service, front) as url:
            yield RunningService(url, service, front, secrets, http)


@asynccontextmanager
async def _listening(service: Service, front: StartupGate) -> AsyncIterator[str]:
    config = uvicorn.Config(
        front,
        http="httptools",
        log_config=None,
        lifespan="off",
        proxy_headers=False,
        timeout_keep_alive=600,
        **OPTIONS,
    )
    async with serve_promptly(config) as url:
        try:
            yield url
        finally:
            await service.end_long_polls()
