from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, select

from service.agents.presence import Presence
from service.db.engine import DatabaseBusyError
from service.db.tables.locations import agent
from tests.builders.world import World

T = TypeVar("T")


class Unwilling:
    """A database that refuses changes while it is told to."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.busy = False

    async def write(self, change: Callable[[Connection], T]) -> T:
        if self.busy:
            raise DatabaseBusyError("busy")
        return await self._world.database.write(change)

    async def read(self, query: Callable[[Connection], T]) -> T:
        return await self._world.database.read(query)


def a_presence(world: World, *waiting: tuple[str, str]) -> tuple[Presence, Unwilling]:
    database = Unwilling(world)
    made = Presence(database, world.clock, waiting=lambda: set(waiting))  # type: ignore[arg-type]  # as much of one as it uses
    return made, database


async def last_seen(world: World) -> int:
    [row] = await world.rows(select(agent))
    return int(row.last_seen_ms)


async def test_an_agent_is_known_by_its_hello_even_after_a_restart(world: World) -> None:
    await world.agent_seen()
    presence, _ = a_presence(world)
    assert await presence.meet((world.location_id, "agent-1"))
    assert not await presence.meet((world.location_id, "stranger"))
    assert not await presence.meet(("elsewhere", "agent-1"))


async def test_who_was_heard_of_is_written_down(world: World) -> None:
    await world.agent_seen()
    presence, _ = a_presence(world)
    world.time.pass_s(60)
    await presence.meet((world.location_id, "agent-1"))
    await presence.write()
    assert await last_seen(world) == world.time.now


async def test_who_waits_for_work_counts_as_seen(world: World) -> None:
    await world.agent_seen()
    presence, _ = a_presence(world, (world.location_id, "agent-1"))
    world.time.pass_s(60)
    await presence.write()
    assert await last_seen(world) == world.time.now


async def test_what_a_busy_database_did_not_take_is_written_the_next_time(world: World) -> None:
    await world.agent_seen()
    presence, database = a_presence(world)
    await presence.meet((world.location_id, "agent-1"))
    database.busy = True
    await presence.write()
    database.busy = False
    world.time.pass_s(60)
    await presence.write()
    assert await last_seen(world) == world.time.now
