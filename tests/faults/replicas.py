"""Services that share one PostgreSQL, and agents: real processes, killed and cut off."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import aiohttp
import psycopg

from tests.builders.agent_process import NO_RUNTIMES
from tests.faults.ledger import Ledger, read_ledger
from tests.faults.nursery import Nursery
from tests.faults.processes import AgentChild, Child
from tests.faults.scene import AGENT, API_KEY, LOCATION_KEY, SERVICE
from tests.faults.target import Target, serve_target

_AGENTS: Final = 4
_PERIOD_MS: Final = 10_000
_LIMIT_S: Final = 150.0
_SHARED: Final = {
    "SERVICE_HOST": "127.0.0.1",
    "TRACE_VIEWER_PORT": "off",
    "FIRST_API_KEY": API_KEY,
    "FIRST_LOCATION_KEY": LOCATION_KEY,
    "KEY_PEPPER": "p" * 32,
    "SERVICE_MASTER_KEY": "ab" * 32,
    "QUICK_LEASE_S": "20",
    "QUICK_QUEUE_S": "300",
    "QUICK_GIVE_UP_S": "20",
    "QUICK_DELIVERIES": "50",
}


@dataclass(slots=True)
class Replicas:
    """Made by `set_replicas`: the services and what belongs to them."""

    folder: Path
    database: str
    target: Target
    http: aiohttp.ClientSession
    nurseries: Mapping[str, Nursery]
    services: dict[str, Child] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    agents: list[AgentChild] = field(default_factory=list)
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What checks were made of, by id."""
    triggered: int = 0

    async def start_service(self, name: str) -> None:
        """Start a service, or start it again where it was."""
        environ = {
            **_SHARED,
            "DATABASE_URL": self.database,
            "SERVICE_PORT": self.urls.get(name, ":0").rpartition(":")[2],
            "SERVICE_DATA_DIR": str(self.folder / name),
            "KILL_FILE": str(self.folder / name / "kill-at"),
        }
        (self.folder / name).mkdir(exist_ok=True)
        self.services[name] = await Child.start(SERVICE, environ, nursery=self.nurseries[SERVICE])
        ready = await self.services[name].logged("service.ready")
        self.urls[name] = f"http://127.0.0.1:{ready['port']}"

    async def start_agent(self, name: str, *, at: str) -> None:
        """Start an agent of a service."""
        environ = {
            "API_KEY": LOCATION_KEY,
            "PICKET_RUNTIMES": str(NO_RUNTIMES),
            "SERVICE_URL": self.urls[at],
            "AGENT_HEALTH_PORT": "0",
            "HEARTBEAT_PORT": "0",
            "AGENT_DATA_DIR": str(self.folder / name),
        }
        agent = await AgentChild.start(AGENT, environ, nursery=self.nurseries[AGENT])
        self.agents.append(agent)
        await agent.logged("agent.ready")

    async def ask(self, at: str, method: str, path: str, body: Any = None) -> Any:
        """One request of the public API of a service, which must succeed."""
        headers = {"authorization": f"Bearer {API_KEY}"}
        url = self.urls[at] + path
        async with self.http.request(method, url, json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{answer.status} {text}"
            return await answer.json() if text else None

    async def check(self, at: str, *, frequency_s: int) -> str:
        """A check of a page; 0: once a day."""
        rhythm = {"frequency": 0, "frequencyOffset": frequency_s} if frequency_s else {}
        body = {
            "name": "Page",
            "request": {"method": "GET", "url": self.target.url + "/"},
            "privateLocations": ["default"],
            "frequency": 1440,
            "doubleCheck": False,
            "maxResponseTime": 30_000,
            "degradedResponseTime": 30_000,
            **rhythm,
        }
        check_id = str((await self.ask(at, "POST", "/v1/checks/api", body))["id"])
        self.bodies[check_id] = body
        return check_id

    async def pause(self, at: str, check_id: str) -> None:
        """Schedule no more runs of a check."""
        body = {**self.bodies[check_id], "activated": False}
        await self.ask(at, "PUT", f"/v1/checks/api/{check_id}", body)

    async def trigger(self, at: str, check_ids: list[str]) -> str:
        """Run these checks now; the id of the first one's session."""
        target = {"target": {"checkId": check_ids}}
        answer = await self.ask(at, "POST", "/v1/check-sessions/trigger", target)
        self.triggered += len(check_ids)
        return str(answer["sessions"][0]["checkSessionId"])

    def cut_all_off(self) -> None:
        """End every connection to the database."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    def ledger(self) -> Ledger:
        """What became of the runs so far."""
        return read_ledger(self.database)

    def due_times(self) -> Mapping[str, list[tuple[int, int]]]:
        """By check, when its scheduled runs that are over were due, and how many due times each is.

        It is more than one where the services stood still.
        """
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        with psycopg.connect(self.database) as connection:
            for check_id, *due in connection.execute(
                "SELECT check_id, scheduled_ms, coalesce(due_times, 1) FROM result"
                " WHERE result_type = 'FINAL' AND source = 'SCHEDULER' ORDER BY scheduled_ms"
            ):
                found[check_id].append((due[0], due[1]))
        return found

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds that nobody announces."""
        try:
            async with asyncio.timeout(_LIMIT_S):
                while True:
                    if await asyncio.to_thread(holds):
                        return
                    await asyncio.sleep(0.1)
        except TimeoutError:
            said = [child.output()[-4000:] for child in self.services.values()]
            raise AssertionError("\n".join([self.ledger().line(), *said])) from None

    async def stop(self) -> None:
        """Kill everything that still runs."""
        for child in [*self.agents, *self.services.values()]:
            if child.is_alive:
                await child.kill()

    async def assert_balanced(self, at: str, checks: Sequence[str]) -> None:
        """Every due time and every wish ended once, and there is no hole."""
        for check_id in checks:
            await self.pause(at, check_id)
        await self.until(lambda: self.ledger().is_settled and not self.ledger().open_sessions)
        ledger = self.ledger()
        ledger.assert_balanced(triggered=self.triggered)
        assert set(ledger.statuses) <= {"PASSED", "MISSED"}, ledger.line()
        due_times = self.due_times()
        assert due_times.keys() == set(checks)
        for times in due_times.values():
            for (sooner_ms, number), (later_ms, _) in pairwise(times[1:]):
                assert later_ms - sooner_ms == number * _PERIOD_MS, times


@asynccontextmanager
async def set_replicas(
    folder: Path,
    url: str,
    nurseries: Mapping[str, Nursery],
    *,
    names: Sequence[str] = ("one", "two"),
) -> AsyncIterator[Replicas]:
    """Services on a database, and four agents, which are spread over them."""
    async with AsyncExitStack() as stack:
        made = Replicas(
            folder=folder,
            database=url,
            target=await stack.enter_async_context(serve_target()),
            http=await stack.enter_async_context(aiohttp.ClientSession()),
            nurseries=nurseries,
        )
        stack.push_async_callback(made.stop)
        await asyncio.gather(*map(made.start_service, names))
        for number in range(_AGENTS):
            await made.start_agent(f"agent-{number}", at=names[number % len(names)])
        yield made
