import pytest
from sqlalchemy import insert, select, update

from contract.agent_api import Hello
from service.agents import actions
from service.agents.model import Opened
from service.db.tables.locations import agent, location_key
from service.http.errors import LocationKeyError
from tests.builders.world import World


async def say_hello(world: World, agent_id: str) -> None:
    hello = Hello(
        agent_id=agent_id, version="1.0.0", platform="linux-x86_64", check_types=(), slots={}
    )
    opened = Opened(world.location_id, "key-1")
    await world.change(lambda c, now: actions.say_hello(c, opened, hello, now_ms=now))


async def test_a_hello_that_is_written_after_its_key_ended_leaves_no_agent(world: World) -> None:
    row = {"id": "key-1", "location_id": world.location_id, "hash": b"1", "masked": "pl_…1"}
    await world.change(lambda c, now: c.execute(insert(location_key), {**row, "created_ms": now}))
    await say_hello(world, "agent-1")
    await world.change(lambda c, now: c.execute(update(location_key).values(revoked_ms=now)))
    with pytest.raises(LocationKeyError):
        await say_hello(world, "ghost")
    assert "ghost" not in {row.id for row in await world.rows(select(agent.c.id))}
