"""One soak: warm up, break things, let everyone settle, count."""

import asyncio
import secrets
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import cycle
from random import Random
from time import monotonic, time_ns
from typing import Any, Final

import aiohttp

from tests.faults.processes import AgentChild, Child
from tests.faults.scene import API_KEY, Scene
from tests.servers.postgresql import LocalPostgres
from tests.soak.alerting.channels import Alerting, count_faults, has_timers, has_waiting
from tests.soak.books import (
    LONGEST_SILENCE_S,
    Outcome,
    Size,
    at_rest,
    marked_processes,
    size_of_agent,
    size_of_service,
    stored_pings,
)
from tests.soak.gaps import (
    Watch,
    count_holes,
    count_wrong,
    failed_heartbeats,
    p99,
    scheduled_records,
)
from tests.soak.mischief import Mischief
from tests.soak.secrecy import Secrecy

AGENTS: Final = ("agent-0", "agent-1", "agent-2")
TOKENS: Final = tuple(f"soak-{number}" for number in range(6))
"""The heartbeats' tokens; each is pinged every few seconds, always at the same agent."""
_SETTLE_S: Final = 180.0
_WARM_UP_S: Final = 180.0
_RUNS_PER_CHECK: Final = 3
_PERIOD_S: Final = 30
_DUE_SLACK_MS: Final = 2_000
"""What is due so shortly before a check is deactivated may not be queued any more."""
_CROWD: Final = 64
_SPARE: Final = Size(tasks=1, fds=2)
"""A call of the very moment: a claim that is answered opens a connection beside the pool's."""


class Soak:
    """Made for one run on a scene that is set."""

    def __init__(
        self,
        scene: Scene,
        secrecy: Secrecy,
        alerting: Alerting,
        *,
        tcp_port: int,
        dns_port: int,
        seed: int,
        server: LocalPostgres | None = None,
    ) -> None:
        """`server`: that of the database. None: each service has a file."""
        self._server = server
        self._scene = scene
        self._secrecy = secrecy
        self._alerting = alerting
        self._seed = seed
        steady = _bodies(scene.target.url, secrecy.requests(), tcp_port=tcp_port, dns_port=dns_port)
        self._bodies = [*steady, *(("api", body) for body in alerting.bodies())]
        self._marks = {"SOAK_PROCESS": secrets.token_hex(8)}
        self._agents: dict[str, AgentChild] = {}
        self._checks: dict[str, tuple[str, dict[str, Any]]] = {}
        """Type and body, by id."""
        ports = free_ports(len(AGENTS))
        self._ping_urls = [f"http://127.0.0.1:{port}/ping" for port in ports]
        self._environ = {
            name: {**self._marks, **secrecy.environ, "HEARTBEAT_PORT": str(port)}
            for name, port in zip(AGENTS, ports, strict=True)
        }
        self._acknowledged = 0
        self._pings = 0
        self._answered: dict[str, list[int]] = {token: [] for token in TOKENS}
        """When pings were answered, by token, in ms."""
        self._is_calm = False
        """Whether no fault is left, and all pings from before have arrived."""
        self._paused_at_ms = 0
        """When the checks were deactivated."""
        self._watch = Watch(scene.books)

    async def run(self, *, for_s: float) -> Outcome:
        """Break things for so long; what is left then."""
        await self._start()
        async with asyncio.timeout(_WARM_UP_S):
            agent_size, service_size = await self._warm_up()
        mischief = Mischief(
            self._scene,
            self._agents,
            environ=self._environ,
            watch=self._watch,
            seed=self._seed,
            for_s=for_s,
        )
        listening = asyncio.create_task(self._watch.listen(), name="results")
        visits = [
            asyncio.create_task(self._ping(), name="pings"),
            asyncio.create_task(self._visit(), name="visitors"),
            asyncio.create_task(self._alerting.site.fail_at_times(), name="unsteady pages"),
        ]
        until = monotonic() + for_s
        async with asyncio.TaskGroup() as group:
            group.create_task(mischief.strike_processes(), name="strike-processes")
            group.create_task(mischief.strike_connections(), name="strike-connections")
            if self._server is not None:
                group.create_task(mischief.strike_database(self._server), name="strike-database")
            group.create_task(self._ebb_and_flow(until), name="tide")
        print(f"{mischief.struck} faults; now it settles", flush=True)  # noqa: T201 - what a person watches
        await self._settle(visits)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        return await self._count(agent_size, service_size, away_s=mischief.away_s)

    async def _start(self) -> None:
        scene = self._scene
        scene.quick = {**scene.quick, **self._marks}
        for number, service in enumerate(scene.services):
            await service.stop()
            await scene.start_service(number)
        await self._secrecy.begin(scene)
        await self._alerting.begin(scene)
        for name in AGENTS:
            self._agents[name] = await scene.start_agent(name, **self._environ[name])

    async def _warm_up(self) -> tuple[Size, Size]:
        """Let every check run, so that all is open that stays open; then see who holds what."""
        scene = self._scene
        scene.target.release()
        for kind, body in self._bodies:
            made = await scene.ask("POST", f"/v1/checks/{kind}", body)
            self._checks[made["id"]] = kind, body
        for _ in range(_RUNS_PER_CHECK * len(AGENTS)):
            await self._trigger(self._wanted())
        await scene.until(lambda: scene.ledger().final >= self._acknowledged, limit_s=_WARM_UP_S)
        await self._crowd()
        measured = (at_rest(partial(size_of_agent, one)) for one in self._agents.values())
        agents = _largest(await asyncio.gather(*measured))
        measured = (at_rest(partial(size_of_service, one)) for one in scene.services)
        return agents, _largest(await asyncio.gather(*measured))

    async def _crowd(self) -> None:
        """Ask so much at once that each service opens all of its readers of the database."""
        headers = {"authorization": f"Bearer {API_KEY}"}
        asked = _CROWD * len(self._scene.services)
        async with aiohttp.ClientSession(raise_for_status=True, headers=headers) as visitors:
            urls = (f"{self._scene.url}/v1/checks" for _ in range(asked))
            await asyncio.gather(*(visitors.get(url) for url in urls))

    async def _visit(self) -> None:
        """People who want a run now; some of them get no answer."""
        dice = Random(f"{self._seed} visitors")
        while not self._is_calm:
            await asyncio.sleep(dice.uniform(0.2, 2.0))
            may_want = self._wanted()
            wanted = dice.sample(may_want, dice.randint(1, len(may_want)))
            with suppress(aiohttp.ClientError, OSError, TimeoutError, AssertionError):
                async with asyncio.timeout(5):
                    await self._trigger(wanted)

    async def _trigger(self, checks: list[str]) -> None:
        target = {"target": {"checkId": checks}}
        await self._scene.ask("POST", "/v1/check-sessions/trigger", target)
        self._acknowledged += len(checks)

    def _wanted(self) -> list[str]:
        """The checks of which people may want a run now; of a heartbeat nobody may."""
        return [check for check, (kind, _) in self._checks.items() if kind != "heartbeat"]

    async def _ping(self) -> None:
        """Jobs that ping an agent each; what is answered must not be lost."""
        dice = Random(f"{self._seed} pings")
        for token, url in cycle(zip(TOKENS, cycle(self._ping_urls))):
            if self._is_calm:
                return
            await asyncio.sleep(dice.uniform(0.05, 0.5))
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with asyncio.timeout(5), self._scene.http.get(f"{url}/{token}"):
                    self._pings += 1
                    self._answered[token].append(time_ns() // 1_000_000)

    async def _ebb_and_flow(self, until: float) -> None:
        """Some pages hold their answer for a while, so that faults meet runs under way."""
        dice = Random(f"{self._seed} tide")
        while monotonic() < until:
            self._scene.target.hold()
            await asyncio.sleep(dice.uniform(0.2, 4.0))
            self._scene.target.release()
            await asyncio.sleep(dice.uniform(0.1, 1.0))

    async def _settle(self, visits: list[asyncio.Task[None]]) -> None:
        scene = self._scene
        scene.target.release()
        scene.proxy.heal()
        self._alerting.site.calm_down()
        for agent in self._agents.values():
            await agent.logged("agent.ready")
        before = self._pings
        with suppress(AssertionError):  # what is lost is counted; a paused check takes no ping
            await scene.until(lambda: stored_pings(scene.books) >= before, limit_s=_SETTLE_S)
        self._is_calm = True
        await asyncio.gather(*visits)
        with suppress(AssertionError):
            await scene.until(self._pings_arrived, limit_s=_SETTLE_S)
            # An alert that is due when checks are deactivated is made, or is not.
            await scene.until(lambda: not has_timers(scene.books), limit_s=_SETTLE_S)
        self._paused_at_ms = time_ns() // 1_000_000
        for check, (kind, body) in self._checks.items():
            await scene.ask("PUT", f"/v1/checks/{kind}/{check}", {**body, "activated": False})
        with suppress(AssertionError):  # what is left is counted
            await scene.until(lambda: scene.ledger().is_settled, limit_s=_SETTLE_S)
            await scene.until(self._nothing_waits, limit_s=_SETTLE_S)
            await scene.until(lambda: not has_waiting(scene.books), limit_s=_SETTLE_S)

    async def _nothing_waits(self) -> bool:
        waiting = [await agent.metric("results_spooled") for agent in self._agents.values()]
        return not any(waiting)

    def _pings_arrived(self) -> bool:
        return stored_pings(self._scene.books) >= self._pings

    async def _count(self, agent_size: Size, service_size: Size, *, away_s: float) -> Outcome:
        scene = self._scene
        leaked = await asyncio.gather(
            *(
                _leaked(agent, partial(size_of_agent, agent), agent_size)
                for agent in self._agents.values()
            ),
            *(_leaked(one, partial(size_of_service, one), service_size) for one in scene.services),
        )
        wanted = {child.pid for child in (*scene.services, *self._agents.values())}
        [mark] = (f"{name}={value}" for name, value in self._marks.items())
        astray = marked_processes(mark) - wanted
        ledger = scene.ledger()
        await scene.strike_set()
        searched = await asyncio.to_thread(self._secrecy.search, scene)
        print(searched.line(), flush=True)  # noqa: T201 - what a person watches
        bodies = {check: body for check, (_, body) in self._checks.items()}
        alerting = self._alerting.compare(scene.books, bodies, away_s=away_s)
        for fault in alerting.faults:
            print(fault)  # noqa: T201 - what a person watches
        failed = failed_heartbeats(scene.books)
        return Outcome(
            ledger=ledger,
            acknowledged=self._acknowledged,
            pings=self._pings,
            stored_pings=stored_pings(scene.books),
            leaked_tasks=sum(size.tasks for size in leaked),
            leaked_processes=len(astray | marked_processes(mark)),
            leaked_fds=sum(size.fds for size in leaked),
            leaked_secrets=len(searched.leaks),
            holes=count_holes(
                scheduled_records(scene.books),
                self._periods_ms(),
                until_ms=self._paused_at_ms - _DUE_SLACK_MS,
            ),
            failed_heartbeats=len(failed),
            wrong_heartbeats=count_wrong(failed, self._answered, period_ms=_PERIOD_S * 1000),
            unsteady_failures=count_faults(scene.books),
            alerting=alerting,
            silence_p99_s=p99(self._silences_s()),
        )

    def _silences_s(self) -> list[float]:
        began = min((first for first, _ in self._watch.faults), default=0)
        ends = sorted(last - began for _, last in self._watch.faults)
        silences = self._watch.silences_s()
        for end, silence_s in zip(ends, silences, strict=True):
            if silence_s > LONGEST_SILENCE_S:
                print(f"no result for {silence_s:.1f} s after a fault that ended at {end:.1f} s")  # noqa: T201 - what a person watches
        return silences

    def _periods_ms(self) -> dict[str, int]:
        """Of each check, the time between two runs."""
        return {
            check: 1000 * (60 * body["frequency"] or body["frequencyOffset"])
            for check, (_, body) in self._checks.items()
        }


def _largest(sizes: Sequence[Size]) -> Size:
    return Size(tasks=max(one.tasks for one in sizes), fds=max(one.fds for one in sizes))


async def _leaked(child: Child, measure: partial[Any], before: Size) -> Size:
    limit = Size(tasks=before.tasks + _SPARE.tasks, fds=before.fds + _SPARE.fds)
    now = await at_rest(measure, limit)
    if now.tasks > limit.tasks or now.fds > limit.fds:
        held = "\n  ".join([*await child.tasks(), *child.open_files()])
        print(f"process {child.pid} may have {limit} and holds\n  {held}")  # noqa: T201 - what a person watches
    return Size(tasks=max(0, now.tasks - limit.tasks), fds=max(0, now.fds - limit.fds))


def _bodies(
    page_url: str, secret_requests: list[dict[str, Any]], *, tcp_port: int, dns_port: int
) -> list[tuple[str, dict[str, Any]]]:
    """Checks of several types, as often as each may run, at targets that are well."""
    patient = {"maxResponseTime": 30_000, "degradedResponseTime": 30_000}
    page = {"method": "GET", "url": f"{page_url}/"}
    held = {"method": "GET", "url": f"{page_url}/held"}
    tcp = {"hostname": "127.0.0.1", "port": tcp_port}
    dns = {
        "recordType": "A",
        "query": "shop.test",
        "nameServer": "127.0.0.1",
        "port": dns_port,
    }
    kinds: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("api", page, patient),
        ("api", held, patient),
        ("api", held, patient),
        ("url", {"url": f"{page_url}/"}, patient),
        ("tcp", tcp, {"maxResponseTime": 5_000, "degradedResponseTime": 5_000}),
        ("dns", dns, {"maxResponseTime": 5_000, "degradedResponseTime": 5_000}),
        ("icmp", {"hostname": "127.0.0.1", "pingCount": 1}, {}),
    ]
    secret = [("api", request, patient) for request in secret_requests]
    bodies = [
        (kind, body_of(number, kind, request, limits))
        for number, (kind, request, limits) in enumerate(kinds * 2 + secret)
    ]
    return [*bodies, *(("heartbeat", _heartbeat(token)) for token in TOKENS)]


def _heartbeat(token: str) -> dict[str, Any]:
    """A heartbeat whose pings may reach the service after its deadline."""
    times = {"period": _PERIOD_S, "periodUnit": "seconds", "grace": 0, "graceUnit": "seconds"}
    return {
        "name": f"Heartbeat {token}",
        "heartbeat": {**times, "pingToken": token},
        "privateLocations": ["default"],
        "frequency": 1,
    }


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; agents that start again come back to theirs."""
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [int(sock.getsockname()[1]) for sock in socks]


def body_of(
    number: int, kind: str, request: dict[str, Any], limits: dict[str, Any]
) -> dict[str, Any]:
    """A check that runs as often as its type may."""
    return {
        "name": f"Check {number}",
        "request": request,
        "privateLocations": ["default"],
        # Only these types may run more often than once a minute.
        **(
            {"frequency": 0, "frequencyOffset": (10, 20, 30)[number % 3]}
            if kind in {"api", "tcp"}
            else {"frequency": 1}
        ),
        "doubleCheck": False,
        **limits,
    }
