"""The first call to the service: who this agent is, and what it can run."""

import asyncio
import platform
from collections.abc import Callable, Iterable, Mapping

import structlog

from agent.api_client.client import ServiceClient
from agent.api_client.errors import KeyRefusedError, ServiceError, VersionRefusedError
from agent.api_client.retry import Backoff
from contract.agent_api import Hello, Limits
from contract.checks import MAIN_LANE_TYPES, CheckType, Lane
from runners.scripting.node.runtimes import Runtimes

log = structlog.get_logger(__name__)


class Handshake:
    """Says hello to the service, and again whenever the service may have forgotten the agent."""

    def __init__(
        self, client: ServiceClient, hello: Hello, *, on_limits: Callable[[Limits], None]
    ) -> None:
        self._client = client
        self._hello = hello
        self._on_limits = on_limits

    def check_types(self, lanes: Iterable[Lane]) -> tuple[CheckType, ...]:
        """What the agent can run now of the jobs that come by these lanes."""
        lost = {one.type for one in self._hello.unavailable if one.only_with_scripts}
        if frozenset(lanes) != {Lane.MAIN} or not lost:
            return self._hello.check_types
        return tuple(kind for kind in self._hello.check_types if kind not in lost)

    def slots(self) -> Mapping[Lane, int]:
        """How many jobs it runs at once, by lane."""
        return self._hello.slots

    def learn(self, hello: Hello) -> None:
        """Send this hello from now on: the agent can run more, or less."""
        self._hello = hello

    async def say_hello(self) -> None:
        """Introduce the agent; raises ServiceError when that failed."""
        answer = await self._client.hello(self._hello)
        self._on_limits(answer.limits)
        log.info("agent.greeted", location=answer.location.slug_name)

    async def first_hello(self, backoff: Backoff, *, until: asyncio.Event) -> bool:
        """Try until the service greets the agent; False: the event came first.

        Raises:
            KeyRefusedError, VersionRefusedError: there is no use trying.
        """
        trying = asyncio.create_task(self._say_until_greeted(backoff), name="hello")
        stop = asyncio.create_task(until.wait(), name="hello-until")
        try:
            await asyncio.wait((trying, stop), return_when=asyncio.FIRST_COMPLETED)
            if not trying.done():
                return False
            trying.result()
            return True
        finally:
            trying.cancel()
            stop.cancel()
            await asyncio.gather(trying, stop, return_exceptions=True)

    async def _say_until_greeted(self, backoff: Backoff) -> None:
        while True:
            try:
                await self.say_hello()
            except (KeyRefusedError, VersionRefusedError):
                raise
            except ServiceError as problem:
                wait_s = backoff.next_wait_s(problem)
                log.debug("hello.failed", because=str(problem), wait_s=round(wait_s, 1))
                await backoff.wait(problem, wait_s)
            else:
                return


def served_slots(
    slots: Mapping[Lane, int], check_types: tuple[CheckType, ...], *, with_scripts: bool = False
) -> dict[Lane, int]:
    """The slots of the lanes that have anything to run; the others get no jobs.

    `with_scripts`: API checks with scripts run here; they come by the main lane.
    """
    kinds = frozenset(check_types)
    has_work = {
        Lane.UPTIME: bool(kinds - MAIN_LANE_TYPES),
        Lane.MAIN: with_scripts or bool(kinds & MAIN_LANE_TYPES),
    }
    return {on: count if has_work[on] else 0 for on, count in slots.items()}


def platform_name() -> str:
    """The system and its architecture, such as `linux-x86_64`."""
    return f"{platform.system().lower()}-{platform.machine()}"


def runtimes(of_scripts: Runtimes | None = None) -> dict[str, str]:
    """What runs the checks, by name and version; a runtime of scripts by that of its Node."""
    found = {"python": platform.python_version()}
    if of_scripts is None:
        return found
    found |= {one.id: one.node_version for one in of_scripts.by_id.values()}
    if of_scripts.browser_version is not None:
        found["chromium"] = of_scripts.browser_version
    return found
