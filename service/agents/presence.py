"""Which agents are connected."""

import asyncio
import re
from collections.abc import Callable
from typing import Final

import structlog
from sqlalchemy import Connection

from service.agents import store
from service.clock import Clock
from service.db.engine import Database, DatabaseBusyError, DatabaseFullError

log = structlog.get_logger()

_EVERY_S: Final = 5.0
_MOST_KNOWN: Final = 100_000

AgentKey = tuple[str, str]
"""(location, agent)"""


class Presence:
    """Remembers agents, so that a claim costs no SQL to know who asks."""

    def __init__(
        self, database: Database, clock: Clock, *, waiting: Callable[[], set[AgentKey]]
    ) -> None:
        self._database = database
        self._clock = clock
        self._waiting = waiting
        self._known: dict[AgentKey, None] = {}
        self._seen: set[AgentKey] = set()

    def introduce(self, who: AgentKey) -> None:
        """The agent said hello."""
        self._known[who] = None
        self._seen.add(who)
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    async def meet(self, who: AgentKey) -> bool:
        """The agent was heard of. False: it should say hello first."""
        if who not in self._known:
            version = await self._database.read(lambda c: store.version_of(c, *who))
            if version is None or is_too_old(version):
                return False
            self.introduce(who)
        self._seen.add(who)
        return True

    async def run(self) -> None:
        """Write down who was seen, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.write()

    async def write(self) -> None:
        """Write down who was seen since the last time, and who waits for work now."""
        seen, self._seen = self._seen, set()
        seen |= self._waiting()
        if not seen:
            return

        def change(connection: Connection) -> None:
            store.mark_seen(connection, seen, now_ms=self._clock.now_ms(connection))

        try:
            await self._database.write(change)
        except DatabaseBusyError as problem:
            self._seen |= seen
            if not isinstance(problem, DatabaseFullError):
                log.warning("presence.postponed", agents=len(seen), reason=str(problem))


MIN_AGENT_VERSION: Final = "0.1.0"
"""The oldest agent that speaks this service's language."""
_NUMBERS: Final = re.compile(r"\d{1,9}", re.ASCII)


def is_too_old(version: str, *, minimum: str = MIN_AGENT_VERSION) -> bool:
    """Whether a version comes before the minimum; one without any number does."""
    return _order(version) < _order(minimum)


def _order(version: str) -> tuple[int, ...]:
    """What stands after a plus or a minus (a build, a pre-release) does not count."""
    core = re.split(r"[+-]", version, maxsplit=1)[0]
    return tuple(int(number) for number in _NUMBERS.findall(core)[:4])
