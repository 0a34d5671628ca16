"""Random faults from a seed: of processes, and of what is between them."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Final

import psycopg

from tests.faults.processes import AgentChild, Child, ChildEndedError
from tests.faults.scene import CLAIM, HELLO, RELEASE, RENEW, RESULTS, Scene
from tests.servers.fault_proxy import (
    BLACK_HOLE,
    HALF_OPEN,
    HELD_ANSWERS,
    LOST_ANSWER,
    RESET,
    SERVER,
    Fault,
    http_answer,
)
from tests.servers.postgresql import LocalPostgres
from tests.soak.gaps import Watch

_MOMENTS: Final = ("begun", "committed")
STEPS: Final = tuple(
    f"{step}.{moment}"
    for step in ("claim", "results", "release", "tick", "reap")
    for moment in _MOMENTS
)
STEPS_OF_REPLICAS: Final = (*STEPS, *(step.replace("begun", "committing") for step in STEPS[::2]))
_CALLS: Final = (CLAIM, RENEW, RELEASE, RESULTS, HELLO)
_STEP_PATIENCE_S: Final = 4.0
_LONG_OUTAGES: Final = 0.2
"""How many of the outages are so long that heartbeats turn due in them."""
_LONG_S: Final = 40.0
_AWAY_S: Final = 60.0
"""How long PostgreSQL is stopped, if the soak is long enough for that."""
_SUPERVISED_S: Final = 0.5
_CUT_OFF: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Mischief:
    """Breaks a scene for so many seconds; whoever it broke is mended before it goes on."""

    def __init__(
        self,
        scene: Scene,
        agents: dict[str, AgentChild],
        *,
        environ: Mapping[str, Mapping[str, str]],
        watch: Watch,
        seed: int,
        for_s: float,
    ) -> None:
        self.struck = 0
        self.away_s = 0.0
        """How long PostgreSQL was stopped."""
        self._scene = scene
        self._agents = agents
        self._environ = environ
        """By agent."""
        self._watch = watch
        self._names = tuple(agents)
        self._among_processes = Random(f"{seed} processes")
        self._between = Random(f"{seed} between")
        self._at_database = Random(f"{seed} database")
        self._began = monotonic()
        self._until = self._began + for_s
        self._for_s = for_s

    async def strike_processes(self) -> None:
        """Kill, stop and freeze, one after the other."""
        dice = self._among_processes
        strikes: list[Callable[[], Awaitable[None]]] = [
            *(self._kill_agent, self._stop_agent, self._freeze_agent),
            *(self._kill_service, self._stop_service, self._kill_service_at_a_step),
        ]
        while monotonic() < self._until:
            await asyncio.sleep(dice.uniform(0.5, 4.0))
            with self._watch.fault():
                await dice.choice(strikes)()

    async def strike_connections(self) -> None:
        """Break what is between agents and service, for a while each time."""
        dice = self._between
        while monotonic() < self._until:
            await asyncio.sleep(dice.uniform(0.2, 3.0))
            with self._watch.fault():
                await dice.choice((self._slow, self._stand_still, self._arm, self._refuse))()
                self._scene.proxy.heal()

    async def strike_database(self, server: LocalPostgres) -> None:
        """Cut everybody off now and then, and stop PostgreSQL once, for a minute."""
        dice = self._at_database
        stops_at = self._began + self._for_s / 3
        while monotonic() < self._until:
            await asyncio.sleep(dice.uniform(2.0, 10.0))
            with self._watch.fault():
                self._scene.incarnation += 1
                if monotonic() >= stops_at:
                    stops_at = float("inf")
                    await self._stop_database(server)
                else:
                    await asyncio.to_thread(self._cut_all_off)
                self._scene.incarnation += 1

    async def _stop_database(self, server: LocalPostgres) -> None:
        away_s = min(_AWAY_S, self._for_s / 3)
        self._say(f"PostgreSQL is stopped for {away_s:.0f} s")
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(away_s)
        await asyncio.to_thread(server.start)
        self.away_s += away_s
        self._say("PostgreSQL is there again")

    def _cut_all_off(self) -> None:
        self._say("PostgreSQL ends all connections")
        with psycopg.connect(str(self._scene.books), autocommit=True) as connection:
            connection.execute(_CUT_OFF)

    def _say(self, what: str) -> None:
        self.struck += 1
        print(f"{monotonic() - self._began:7.1f} s  {what}", flush=True)  # noqa: T201 - what a person watches

    async def _slow(self) -> None:
        dice = self._between
        fault = dice.choice(
            (
                Fault(latency_s=dice.uniform(0.02, 0.8)),
                Fault(drip_bytes=dice.randint(20, 400), drip_s=0.02),
            )
        )
        self._say(f"slow: {fault.latency_s:.2f} s late, {fault.drip_bytes} bytes at a time")
        self._scene.proxy.fault = fault
        await asyncio.sleep(dice.uniform(0.5, 4.0))

    async def _stand_still(self) -> None:
        dice = self._between
        name, fault = dice.choice(
            (
                ("black hole", BLACK_HOLE),
                ("answers are held", HELD_ANSWERS),
                ("half-open", HALF_OPEN),
                ("reset", RESET),
                ("429", http_answer(429, retry_after=1)),
                ("503", http_answer(503)),
            )
        )
        self._say(name)
        self._scene.proxy.fault = fault
        await asyncio.sleep(dice.uniform(0.3, 5.0))

    async def _arm(self) -> None:
        dice = self._between
        call, times = dice.choice(_CALLS), dice.randint(1, 5)
        fault = dice.choice((LOST_ANSWER, RESET, Fault(cut_after=dice.randint(1, 900), of=SERVER)))
        self._say(f"the next {times} of {call.split()[1].decode()} are cut")
        self._scene.proxy.arm(fault, when=call, times=times)
        await asyncio.sleep(dice.uniform(0.5, 3.0))

    async def _refuse(self) -> None:
        is_long = self._between.random() < _LONG_OUTAGES
        self._say("refused for long" if is_long else "refused")
        await self._scene.proxy.refuse()
        await asyncio.sleep(_LONG_S if is_long else self._between.uniform(0.3, 4.0))
        await self._scene.proxy.accept()

    async def _kill_agent(self) -> None:
        name = self._among_processes.choice(self._names)
        self._say(f"{name} is killed")
        await self._agents[name].kill()
        await self._start_again(name)

    async def _stop_agent(self) -> None:
        name = self._among_processes.choice(self._names)
        self._say(f"{name} is told to stop")
        agent = self._agents[name]
        agent.signal(signal.SIGTERM)
        if self._among_processes.random() < 0.4:
            await asyncio.sleep(self._among_processes.uniform(0, 1))
            agent.signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await agent.ended()
        if agent.is_alive:
            self._say(f"{name} did not stop")
            await agent.kill()
        await self._start_again(name)

    async def _freeze_agent(self) -> None:
        name = self._among_processes.choice(self._names)
        self._say(f"{name} is frozen")
        self._agents[name].signal(signal.SIGSTOP)
        await asyncio.sleep(self._among_processes.uniform(0.5, 7.0))
        self._agents[name].signal(signal.SIGCONT)

    async def _kill_service(self) -> None:
        number, service = self._choose_service()
        self._say(f"service {number} is killed")
        await service.kill()
        await self._start_service_again(number)

    async def _stop_service(self) -> None:
        number, service = self._choose_service()
        self._say(f"service {number} is told to stop")
        await service.stop()
        await self._start_service_again(number)

    async def _kill_service_at_a_step(self) -> None:
        number, service = self._choose_service()
        steps = STEPS if self._scene.postgresql_url is None else STEPS_OF_REPLICAS
        step = self._among_processes.choice(steps)
        self._say(f"service {number} is killed at {step}")
        self._scene.kill_service_at(step, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(service.process.wait(), _STEP_PATIENCE_S)
        self._scene.spare_service(number)
        await service.kill()
        await self._start_service_again(number)

    def _choose_service(self) -> tuple[int, Child]:
        services = self._scene.services
        number = self._among_processes.randrange(len(services)) if len(services) > 1 else 0
        return number, services[number]

    async def _start_service_again(self, number: int) -> None:
        await asyncio.sleep(self._among_processes.uniform(0, 2.0))
        while True:
            try:
                await self._scene.start_service(number)
            except ChildEndedError:
                # It cannot begin without PostgreSQL; whoever supervises it starts it again.
                if self._scene.postgresql_url is None:
                    raise
                await asyncio.sleep(_SUPERVISED_S)
            else:
                return

    async def _start_again(self, name: str) -> None:
        await asyncio.sleep(self._among_processes.uniform(0, 2.0))
        environ = self._environ[name]
        self._agents[name] = await self._scene.start_agent(name, ready=False, **environ)
