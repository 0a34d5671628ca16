"""A service, agents, a target, and a proxy that breaks what is between them: all real.

On PostgreSQL there may be several services, and the proxy spreads connections over those that live.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import aiohttp
import pytest

from tests.builders.agent_process import NO_RUNTIMES
from tests.faults.ledger import Ledger, read_ledger
from tests.faults.nursery import Nursery
from tests.faults.passing_time import let_leases_run_out, pauses_in
from tests.faults.processes import AgentChild, Child
from tests.faults.target import Target, serve_target
from tests.servers.fault_proxy import FaultProxy, serve_fault_proxy

API_KEY: Final = "cu_" + "f" * 40
LOCATION_KEY: Final = "pl_" + "f" * 40
LEASE_S: Final = 300.0
"""No machine stands still for so long; a test that wants it over says `leases_run_out`."""
SERVICE: Final = "tests.faults.quick_service"
AGENT: Final = "tests.faults.quick_agent"
_QUICK: Final = {"QUICK_QUEUE_S": "300", "QUICK_GIVE_UP_S": "2", "QUICK_DELIVERIES": "50"}
_KEYS: Final = {"KEY_PEPPER": "p" * 32, "SERVICE_MASTER_KEY": "ab" * 32}
"""What services of one database have in common."""
_REPLICAS: Final = 2
_HOLD_S: Final = 90.0
_SETTLE_S: Final = 120.0
_SHOWN_LINES: Final = 30
_SPARE_FDS: Final = 12
"""Connections in a pool, a file that is being written: no leak, and they come and go."""

CLAIM: Final = b"POST /agent/v1/jobs/claim "
RENEW: Final = b"POST /agent/v1/jobs/renew "
RELEASE: Final = b"POST /agent/v1/jobs/release "
RESULTS: Final = b"POST /agent/v1/results "
HELLO: Final = b"POST /agent/v1/hello "


@dataclass(slots=True, eq=False)
class Scene:
    """Made by `set_scene`. Agents reach the service through the proxy, the test goes past it."""

    folder: Path
    proxy: FaultProxy
    target: Target
    http: aiohttp.ClientSession
    quick: Mapping[str, str]
    nurseries: Mapping[str, Nursery]
    """By the module that each has loaded."""
    agents: list[AgentChild] = field(default_factory=list)
    service_module: str = SERVICE
    triggered: int = 0
    postgresql_url: str | None = None
    """The database. None: each service has a file."""
    services: list[Child] = field(default_factory=list)
    incarnation: int = 0
    """How often a service was started, or lost its database."""
    _ports: list[int] = field(default_factory=list)
    """Those of the services, in their order."""
    _turns: Iterator[int] = field(default_factory=count)
    _checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bodies by id."""

    @property
    def service(self) -> Child:
        return self.services[0]

    @property
    def database(self) -> Path:
        return self.folder / "service" / "picket.db"

    @property
    def books(self) -> Path | str:
        """The database, whatever the engine."""
        return self.postgresql_url or self.database

    @property
    def url(self) -> str:
        """A service itself, past the proxy."""
        return f"http://127.0.0.1:{self.find_port() or self._ports[0]}"

    async def start_service(self, number: int = 0) -> Child:
        """Start a service, for the first time or again, on the same database."""
        folder = self.folder / (f"service-{number}" if number else "service")
        shared = {} if self.postgresql_url is None else {**_KEYS, "DATABASE_URL": self.books}
        environ = {
            "SERVICE_HOST": "127.0.0.1",
            "SERVICE_PORT": "0",
            "TRACE_VIEWER_PORT": "off",
            "SERVICE_DATA_DIR": str(folder),
            "FIRST_API_KEY": API_KEY,
            "FIRST_LOCATION_KEY": LOCATION_KEY,
            "KILL_FILE": str(self._kill_file(number)),
            **shared,
            **self.quick,
        }
        module = self.service_module
        service = await Child.start(module, environ, nursery=self.nurseries.get(module))
        self.services[number:] = [service, *self.services[number + 1 :]]
        self.incarnation += 1
        self._ports[number:] = [0, *self._ports[number + 1 :]]
        self._ports[number] = (await service.logged("service.ready"))["port"]
        service.fds_at_start = service.fds()
        return service

    def find_port(self) -> int | None:
        """A service that is ready, in turns; once it is dead, somebody else may listen there."""
        living = [
            port
            for port, service in zip(self._ports, self.services, strict=True)
            if port and service.is_alive
        ]
        return living[next(self._turns) % len(living)] if living else None

    def kill_service_at(self, step: str, number: int = 0) -> None:
        """The service kills itself at this step; see `quick_service`."""
        self._kill_file(number).write_text(step)

    def spare_service(self, number: int) -> None:
        """The service does not kill itself any more."""
        self._kill_file(number).unlink(missing_ok=True)

    async def service_died(self) -> None:
        """Wait until it was killed."""
        assert await self.service.ended() == -signal.SIGKILL, self.service.output()

    async def start_agent(
        self,
        name: str = "agent",
        *,
        module: str = AGENT,
        within: Sequence[str] = (),
        ready: bool = True,
        **environ: str,
    ) -> AgentChild:
        """Start an agent; one of the same name has the same data directory."""
        chosen = {
            "API_KEY": LOCATION_KEY,
            "PICKET_RUNTIMES": str(NO_RUNTIMES),
            "SERVICE_URL": self.proxy.url,
            "AGENT_HEALTH_PORT": "0",
            "HEARTBEAT_PORT": "0",
            "LOG_LEVEL": "DEBUG",
            "AGENT_DATA_DIR": str(self.spool(name).parent),
            **environ,
        }
        nursery = self.nurseries.get(module)
        agent = await AgentChild.start(module, chosen, within=within, nursery=nursery)
        self.agents.append(agent)
        if ready:
            await agent.logged("agent.ready")
            agent.fds_at_start = agent.fds()
        return agent

    def spool(self, name: str = "agent") -> Path:
        """Where an agent's results wait."""
        return self.folder / name / "results"

    async def on_disk(self, count: int, *, name: str = "agent") -> None:
        """Wait until so many of an agent's results wait on disk: each file's name counts them."""
        await self.until(
            lambda: (
                sum(int(p.name.split("-")[3]) for p in self.spool(name).glob("*.jsonl")) >= count
            )
        )

    async def service_tasks(self) -> int:
        """How many tasks the service has, by its own word."""
        return len(await self.service.tasks())

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request of the public API, which must succeed."""
        headers = {"authorization": f"Bearer {API_KEY}"}
        async with self.http.request(method, self.url + path, json=body, headers=headers) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{answer.status} {text}"
            return await answer.json() if text else None

    async def check(
        self, path: str = "/", *, count: int = 1, each_10_s: bool = False, retries: int = 0
    ) -> list[str]:
        """Checks of a page, each of which runs at once, and then each day or every 10 s.

        A run is missed once the check's next one is due; a day leaves it time to be late. One that
        fails is tried again after 0.2 s, so many times.
        """
        made = []
        for number in range(count):
            body = _check(f"{path} {number}", self.target.url + path, each_10_s=each_10_s)
            if retries:
                body |= {"retryStrategy": {**_RETRY, "maxRetries": retries}}
            answer = await self.ask("POST", "/v1/checks/api", body)
            self._checks[answer["id"]] = body
            made.append(answer["id"])
        return made

    async def trigger(self, checks: Sequence[str], *, times: int = 1) -> None:
        """Run these checks now, besides their schedule."""
        for _ in range(times):
            target = {"target": {"checkId": list(checks)}}
            await self.ask("POST", "/v1/check-sessions/trigger", target)
            self.triggered += len(checks)

    async def pause(self) -> None:
        """No more runs each 10 s; those that nobody has claimed end as missed."""
        for check, body in self._checks.items():
            if body["frequency"] == 0:
                await self.ask("PUT", f"/v1/checks/api/{check}", {**body, "activated": False})

    def pauses(self) -> list[tuple[int, int]]:
        """When the service was dead or stood still for long, Unix time in ms."""
        return pauses_in(self.folder)

    def leases_run_out(self) -> None:
        """As if the time of everything that is leased now had passed."""
        let_leases_run_out(self.database)

    def ledger(self) -> Ledger:
        """What became of the runs so far."""
        return read_ledger(self.books)

    async def until(
        self, holds: Callable[[], object | Awaitable[object]], *, limit_s: float = _HOLD_S
    ) -> None:
        """Wait until something holds that nobody announces."""
        try:
            async with asyncio.timeout(limit_s):
                while True:
                    found = holds()
                    if await found if isinstance(found, Awaitable) else found:
                        return
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"it did not come to hold\n{self.outputs()}") from None

    async def settle(self, *, may_miss: bool = False, may_drop: bool = False) -> Ledger:
        """End what is going on, count, and hold every promise that holds always.

        `may_miss`: whether runs may have been missed, as those of a check each 10 s are when nobody
        had the time; none may have failed, ever.
        `may_drop`: whether agents may have had to drop results, and said so.
        """
        self.target.release()
        self.proxy.heal()
        await self.proxy.accept()
        await self.pause()
        await self.until(lambda: self.ledger().is_settled, limit_s=_SETTLE_S)
        await self.until(self._nothing_waits)
        ledger = self.ledger()
        ledger.assert_balanced(triggered=self.triggered)
        assert set(ledger.statuses) <= {"PASSED", "MISSED"}, ledger.line()
        assert may_miss or ledger.missed == ledger.causes.get("paused", 0), ledger.line()
        await self._assert_no_leak(may_drop=may_drop)
        return ledger

    async def strike_set(self) -> None:
        """Stop everything that still runs."""
        for child in [*self.agents, *self.services]:
            if child.is_alive:
                child.signal(signal.SIGCONT)
                await child.kill()

    def outputs(self) -> str:
        """What every process wrote last, and the books."""
        children = [*self.agents, *self.services]
        is_there = self.postgresql_url or self.database.exists()
        books = self.ledger().line() if is_there else "no books"
        said = [f"--- {child.pid}\n" + "\n".join(child.lines[-_SHOWN_LINES:]) for child in children]
        return "\n".join([books, *said])

    async def _nothing_waits(self) -> bool:
        for agent in self._living():
            if await agent.metric("results_spooled"):
                return False
        return True

    async def _assert_no_leak(self, *, may_drop: bool) -> None:
        for agent in self._living():
            assert agent.children() == []
            await self.until(lambda agent=agent: agent.fds() <= agent.fds_at_start + _SPARE_FDS)
            # One that stood still for half a minute says so, until its loop has turned.
            await self.until(lambda agent=agent: _is_live(agent))
            assert may_drop or await agent.metric("results_dropped_total") == 0
            assert agent.events("job.broke") == []
        assert self.service.children() == []
        spare = _SPARE_FDS + 4 * len(self.agents)
        await self.until(lambda: self.service.fds() <= self.service.fds_at_start + spare)

    def _living(self) -> list[AgentChild]:
        return [agent for agent in self.agents if agent.is_alive]

    def _kill_file(self, number: int) -> Path:
        return self.folder / (f"kill-at-{number}" if number else "kill-at")


_RETRY: Final = {"type": "FIXED", "baseBackoffSeconds": 0.2}


def leases_of(seconds: float) -> pytest.MarkDecorator:
    """The test's scene has leases that last so long."""
    return pytest.mark.parametrize("lease_s", [seconds], ids=[f"leases of {seconds:g} s"])


@asynccontextmanager
async def set_scene(
    folder: Path,
    *,
    lease_s: float = LEASE_S,
    nurseries: Mapping[str, Nursery] = MappingProxyType({}),
    postgresql_url: str | None = None,
    **quick: str,
) -> AsyncIterator[Scene]:
    """A service that runs; `quick` changes its figures, and processes come from `nurseries`.

    `postgresql_url`: two services share this database.
    """
    async with AsyncExitStack() as stack:
        scene = Scene(
            folder=folder,
            proxy=await stack.enter_async_context(serve_fault_proxy()),
            target=await stack.enter_async_context(serve_target()),
            http=await stack.enter_async_context(aiohttp.ClientSession()),
            quick={**_QUICK, "QUICK_LEASE_S": str(lease_s), **quick},
            nurseries=nurseries,
            postgresql_url=postgresql_url,
        )
        scene.proxy.find_upstream = scene.find_port
        stack.push_async_callback(scene.strike_set)
        for number in range(1 if postgresql_url is None else _REPLICAS):
            await scene.start_service(number)
        yield scene


async def _is_live(agent: AgentChild) -> bool:
    return await agent.health("/-/liveness") == 200


def _check(name: str, url: str, *, each_10_s: bool) -> dict[str, Any]:
    rhythm = {"frequency": 0, "frequencyOffset": 10} if each_10_s else {"frequency": 1440}
    return {
        "name": name,
        "request": {"method": "GET", "url": url},
        "privateLocations": ["default"],
        **rhythm,
        "doubleCheck": False,
        "maxResponseTime": 30_000,
        "degradedResponseTime": 30_000,
    }
