"""Another process holds the database's lock."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults.scene import Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

_HOLD = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
file.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def locked(scene: Scene) -> AsyncIterator[None]:
    """Another process writes, and does not come to an end."""
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _HOLD, str(scene.database)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline()
    try:
        yield
    finally:
        holder.kill()
        await holder.wait()


async def test_a_lock_that_lasts_longer_than_the_patience_loses_nothing(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=10)
    await scene.target.held(10)
    async with locked(scene):
        scene.target.release()
        await agent.logged("results.not_delivered", count=2)
        line = agent.events("results.not_delivered")[0]
        assert "503" in line["because"]
        assert line["wait_s"] >= 1, "the service said when to come back"
        await scene.service.logged("periodic.postponed")
    ledger = await scene.settle()
    assert ledger.final == 10


async def test_jobs_that_turn_due_while_the_lock_is_held_run_afterwards(scene: Scene) -> None:
    checks = await scene.check(count=5)
    await scene.start_agent()
    await scene.until(lambda: scene.ledger().final == 5)
    async with locked(scene):
        await scene.service.logged("periodic.postponed")
    await scene.trigger(checks, times=3)
    await scene.until(lambda: scene.ledger().final == 20)
    ledger = await scene.settle()
    assert ledger.most_claims == 1


async def test_the_service_stops_in_time_while_the_lock_is_held(scene: Scene) -> None:
    await scene.start_agent()
    await scene.check(count=5)
    await scene.until(lambda: scene.ledger().final == 5)
    async with locked(scene):
        scene.service.signal(signal.SIGTERM)
        assert await scene.service.ended() == 0
    await scene.start_service()
    await scene.settle()


async def test_a_service_that_is_killed_while_the_lock_is_held_goes_on_afterwards(
    scene: Scene,
) -> None:
    await scene.start_agent()
    await scene.check("/held", count=5)
    await scene.target.held(5)
    async with locked(scene):
        scene.target.release()
        await asyncio.sleep(0.5)
        await scene.service.kill()
    await scene.start_service()
    ledger = await scene.settle()
    assert ledger.final == 5
