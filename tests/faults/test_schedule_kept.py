"""Scheduled runs while things break: each slot of the rhythm has one result, and none is empty."""

import asyncio
import sqlite3
from collections import defaultdict
from contextlib import closing
from itertools import pairwise

import pytest

from tests.faults.processes import Child
from tests.faults.scene import API_KEY, Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(90)]

PERIOD_MS = 10_000


def series(scene: Scene) -> dict[str, list[int]]:
    """When the scheduled runs of each check that have a FINAL result were due."""
    with closing(sqlite3.connect(scene.database)) as file:
        rows = file.execute(
            "SELECT check_id, scheduled_ms FROM result"
            " WHERE result_type = 'FINAL' AND source = 'SCHEDULER' ORDER BY scheduled_ms"
        ).fetchall()
    found: dict[str, list[int]] = defaultdict(list)
    for check, scheduled_ms in rows:
        found[check].append(scheduled_ms)
    return found


def assert_no_hole(scene: Scene, *, checks: int) -> None:
    """After the first run, which is at once, a run stands in every slot."""
    found = series(scene)
    assert len(found) == checks
    for times in found.values():
        gaps = [later - sooner for sooner, later in pairwise(times[1:])]
        assert gaps == [PERIOD_MS] * len(gaps), times
        assert 0 < times[1] - times[0] <= PERIOD_MS


async def test_every_slot_has_one_result_while_agents_and_service_are_killed(scene: Scene) -> None:
    agent = await scene.start_agent("first")
    await scene.check(count=8, each_10_s=True)
    await asyncio.sleep(2)
    await agent.kill()
    await scene.start_agent("second")
    await asyncio.sleep(2)
    await scene.service.kill()
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 24, limit_s=45)
    ledger = await scene.settle(missed=8)
    assert_no_hole(scene, checks=8)
    assert ledger.runs >= 24


async def test_slots_that_no_agent_served_are_recorded_as_missed(scene: Scene) -> None:
    await scene.check(count=3, each_10_s=True)
    await scene.until(lambda: scene.ledger().missed >= 6, limit_s=45)
    assert set(scene.ledger().causes) == {"no_agent"}
    assert_no_hole(scene, checks=3)
    await scene.start_agent()
    await scene.until(lambda: scene.ledger().final >= 3)
    await scene.settle(missed=12)
    assert_no_hole(scene, checks=3)


async def test_after_a_long_pause_of_the_service_each_check_catches_up_on_one_run(
    scene: Scene,
) -> None:
    await scene.start_agent()
    await scene.check(count=3, each_10_s=True)
    await scene.until(lambda: scene.ledger().final >= 3)
    await scene.service.kill()
    before = scene.ledger().runs
    await asyncio.sleep(12)
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= before + 3)
    assert scene.ledger().runs - before <= 6, "one that was missed, and one of now at most"
    await scene.settle(missed=3)


async def test_the_programs_that_people_run_survive_a_crash_of_each_other(scene: Scene) -> None:
    """No short leases, no short waits: `python -m service` and `python -m agent` as they are."""
    await scene.service.stop()
    scene.service_module = "service"
    await scene.start_service()
    agent = await scene.start_agent(module="agent")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    await scene.service.kill()
    scene.target.release()
    await scene.until(lambda: list(scene.spool().glob("*.jsonl")))
    await agent.kill()
    await scene.start_service()
    await scene.start_agent(module="agent")
    await scene.until(lambda: scene.ledger().final == 5, limit_s=40)
    ledger = await scene.settle()
    assert (ledger.final, ledger.most_claims) == (5, 1)
    assert scene.target.seen["/held"] == 5


async def test_no_key_is_written_to_a_log_whatever_breaks(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check(count=2)
    await scene.proxy.refuse()
    await agent.logged("claim.failed")
    await scene.service.kill()
    await scene.start_service()
    await scene.settle(missed=2)
    children: list[Child] = [*scene.agents, scene.service]
    for child in children:
        assert API_KEY not in child.output()
        assert "pl_ffff" not in child.output()
