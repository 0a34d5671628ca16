import asyncio

import pytest
from sqlalchemy import Connection, text

from service.db import periodic_tasks
from service.db.periodic_tasks import Periodic, changing
from tests.builders.patience import LONG_S
from tests.builders.world import World


async def run_until(world: World, change: Periodic, *, calls: list[int], most: int) -> None:
    task = asyncio.create_task(change.run(world.database))
    async with asyncio.timeout(LONG_S):
        while len(calls) < most:  # noqa: ASYNC110 - the loop under test tells nobody
            await asyncio.sleep(0.01)
    task.cancel()


async def test_it_goes_on_at_once_while_there_may_be_more(world: World) -> None:
    calls: list[int] = []

    def change(_connection: Connection) -> int:
        calls.append(len(calls))
        return 5 if len(calls) < 4 else 0

    loop = Periodic(name="test", act=changing(change), every_s=3600, most=5)
    await run_until(world, loop, calls=calls, most=4)


async def test_one_failing_turn_does_not_stop_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(periodic_tasks, "_PAUSE_AFTER_FAULT_S", 0.01)
    calls: list[int] = []

    def change(connection: Connection) -> int:
        calls.append(len(calls))
        if len(calls) == 1:
            connection.execute(text("SELECT * FROM no_such_table"))
        return 0

    loop = Periodic(name="test", act=changing(change), every_s=0.01, most=5)
    await run_until(world, loop, calls=calls, most=3)
