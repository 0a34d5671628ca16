"""A service and an agent as processes, and what a person with an API key does with them."""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.faults.processes import AgentChild, Child
from tests.servers.measured_site import measured_site
from tests.system.waiting import until

API_KEY: Final = "cu_" + "s" * 40
LOCATION_KEY: Final = "pl_" + "s" * 40
DAILY: Final = 1440
"""A check runs once when it is made, and then not again for as long as a test takes."""
LIMIT_S: Final = 240.0
"""The agent tries Node, a browser and a suite before it takes their checks."""
AS_DEPLOYED: Final = (
    ("setpriv", "--bounding-set=-all,+chown,+dac_override,+kill,+setgid,+setuid", "--no-new-privs")
    if os.geteuid() == 0
    else ()
)
"""No more than docs/isolation.md asks for, as the manifest and the unit in deploy/ say it."""
_NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class ScriptedScene:
    """Made by `a_scripted_scene`."""

    site: str
    """A web site that checks look at."""
    http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, **more: Any) -> Any:
        """One request of the public API, which must succeed: JSON, or bytes of another type."""
        async with self.http.request(method, path, **more) as answer:
            content = await answer.read()
            assert answer.status < 300, f"{answer.status} {content[:1000]!r}"
            return await answer.json() if answer.content_type == "application/json" else content

    async def check(self, kind: str, **fields: Any) -> str:
        """Set a check up; its id."""
        body = {
            "name": kind,
            "privateLocations": ["default"],
            "frequency": DAILY,
            **({} if kind == "playwright" else {"doubleCheck": False}),
            **fields,
        }
        return str((await self.ask("POST", f"/v1/checks/{kind}", json=body))["id"])

    async def bundle(self, packed: bytes) -> str:
        """Send the code of a suite; its content address."""
        sha256 = hashlib.sha256(packed).hexdigest()
        await self.ask("PUT", f"/v1/code-bundles/{sha256}", data=packed)
        return sha256

    async def scheduled(self, check_id: str) -> dict[str, Any]:
        """The result of the check's first run, once it is there."""
        asking = partial(self.ask, "GET", f"/v1/check-results/{check_id}")
        found = await until(asking, limit_s=LIMIT_S)
        return await self.whole(found[-1], check_id)

    async def on_demand(self, check_id: str) -> dict[str, Any]:
        """Run the check now; its result."""
        target = {"target": {"checkId": [check_id]}}
        started = await self.ask("POST", "/v1/check-sessions/trigger", json=target)
        session_id = started["sessions"][0]["checkSessionId"]
        results = await until(partial(self._results_of, session_id), limit_s=LIMIT_S)
        return await self.whole({"id": results[0]["checkResultId"]}, check_id)

    async def _results_of(self, session_id: str) -> list[dict[str, Any]]:
        """None while it runs."""
        session = await self.ask("GET", f"/v1/check-sessions/{session_id}")
        return session["results"] if session["stoppedAt"] else []

    async def whole(self, result: dict[str, Any], check_id: str) -> dict[str, Any]:
        """A result as it is read by itself, with its `assets` beside."""
        path = f"/v1/check-results/{check_id}/{result['id']}"
        return {
            **await self.ask("GET", path),
            "assets": (await self.ask("GET", f"{path}/assets"))["assets"],
        }


@asynccontextmanager
async def a_scripted_scene(folder: Path) -> AsyncIterator[ScriptedScene]:
    """All of it in this folder; nothing is left running."""
    service = await Child.start(
        "service",
        {
            "SERVICE_HOST": "127.0.0.1",
            "SERVICE_PORT": "0",
            "SERVICE_DATA_DIR": str(folder / "service"),
            "RESULT_LISTS_PER_MINUTE": "0",  # it waits by asking
            "FIRST_API_KEY": API_KEY,
            "FIRST_LOCATION_KEY": LOCATION_KEY,
        },
    )
    url = f"http://127.0.0.1:{(await service.logged('service.ready'))['port']}"
    environ = _agent_environ(url, folder / "agent")
    agent = await AgentChild.start("agent", environ, within=AS_DEPLOYED)
    headers = {"authorization": f"Bearer {API_KEY}"}
    try:
        async with aiohttp.ClientSession(url, headers=headers) as http, measured_site() as site:
            yield ScriptedScene(site, http)
            assert await agent.stop() == 0, agent.output()
    finally:
        for child in (agent, service):
            await child.kill()


def _agent_environ(url: str, data_dir: Path) -> dict[str, str]:
    """As an operator sets it; packages are fetched through whatever proxy and roots it takes."""
    network = {name: os.environ[name] for name in _NETWORK if name in os.environ}
    if roots := os.environ.get("NODE_EXTRA_CA_CERTS"):
        network["EXTRA_CA_CERTS"] = roots
    return {
        "API_KEY": LOCATION_KEY,
        "SERVICE_URL": url,
        "AGENT_HEALTH_PORT": "0",
        "HEARTBEAT_PORT": "0",
        "AGENT_DATA_DIR": str(data_dir),
        "JOB_CONCURRENCY": "2",
        **network,
    }
