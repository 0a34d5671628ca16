"""A key of a location is deleted while agents work with it."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.faults.processes import AgentChild
from tests.faults.scene import Scene, leases_of

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


async def the_location(scene: Scene) -> dict[str, Any]:
    (location,) = await scene.ask("GET", "/v1/private-locations")
    found: dict[str, Any] = location
    return found


async def another_key(scene: Scene) -> str:
    path = f"/v1/private-locations/{(await the_location(scene))['id']}/keys"
    made: str = (await scene.ask("POST", path))["rawKey"]
    return made


async def end_first_key(scene: Scene) -> None:
    location = await the_location(scene)
    key = location["keys"][0]["id"]
    await scene.ask("DELETE", f"/v1/private-locations/{location['id']}/keys/{key}")


def ran(scene: Scene, agent: AgentChild) -> int:
    """How many FINAL results an agent brought."""
    agent_id = agent.events("agent.starting")[0]["agent_id"]
    with closing(sqlite3.connect(scene.database)) as file:
        bodies = [
            json.loads(row[0])
            for row in file.execute("SELECT body FROM run_final WHERE body NOT NULL")
        ]
    return sum(body["agentId"] == agent_id for body in bodies)


def given_up(agent: AgentChild) -> int:
    """How many runs an agent ended because their lease was gone."""
    return len(agent.events("lease.ran_out") + agent.events("lease.lost"))


async def test_an_ended_key_gets_no_job_even_by_a_poll_that_was_open(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check()
    await scene.until(lambda: scene.ledger().final == 1)
    await end_first_key(scene)
    checks = await scene.check(count=5)
    await first.logged("agent.refused")
    assert scene.target.seen["/"] == 1, "no job was even begun"
    assert await first.health("/-/readiness") == 503
    assert await first.health("/-/liveness") == 200
    await scene.trigger(checks)
    await first.stop()
    await scene.until(lambda: scene.ledger().leased == 0)
    assert scene.ledger().final == 1


@leases_of(6)
async def test_jobs_that_run_when_their_key_ends_run_with_the_other_key(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    key = await another_key(scene)
    second = await scene.start_agent("second", API_KEY=key)
    await end_first_key(scene)
    await first.logged("agent.refused")
    await scene.target.held(3)
    await scene.until(lambda: given_up(first) >= 3)
    scene.target.release()
    ledger = await scene.settle()
    assert ledger.final == 3
    assert (ran(scene, first), ran(scene, second)) == (0, 3)


async def test_a_key_is_replaced_without_a_gap(scene: Scene) -> None:
    first = await scene.start_agent("first")
    checks = await scene.check(count=5)
    key = await another_key(scene)
    await scene.start_agent("second", API_KEY=key)
    await scene.trigger(checks, times=5)
    assert await first.stop() == 0
    await end_first_key(scene)
    await scene.trigger(checks, times=5)
    await scene.until(lambda: scene.ledger().final == 55)
    ledger = await scene.settle()
    assert scene.target.seen["/"] == ledger.final


@leases_of(300)
async def test_what_an_ended_key_held_runs_elsewhere_long_before_its_lease_ends(
    scene: Scene,
) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    second = await scene.start_agent("second", API_KEY=await another_key(scene))
    await end_first_key(scene)
    await scene.until(lambda: scene.target.seen["/held"] == 6)
    await first.logged("agent.refused")
    scene.target.release()
    await scene.until(lambda: scene.ledger().final == 3)
    assert (ran(scene, first), ran(scene, second)) == (0, 3)
    assert scene.ledger().most_claims >= 2
