"""Scheduled runs while things break: each slot of the rhythm has one result, and none is empty."""

import asyncio
import sqlite3
import time
from collections import defaultdict
from contextlib import closing
from itertools import pairwise

import pytest

from tests.faults.passing_time import let_leases_last, move_plans_back
from tests.faults.processes import Child
from tests.faults.scene import API_KEY, Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

PERIOD_MS = 10_000
HOUR_MS = 3_600_000


def series(scene: Scene) -> dict[str, list[int]]:
    """When the scheduled runs of each check that have a FINAL result were due.

    Without those that were due while the service was away.
    """
    with closing(sqlite3.connect(scene.database)) as file:
        rows = file.execute(
            "SELECT check_id, scheduled_ms FROM result"
            " WHERE result_type = 'FINAL' AND source = 'SCHEDULER'"
            " AND coalesce(cause, '') != 'service_down' ORDER BY scheduled_ms"
        ).fetchall()
    found: dict[str, list[int]] = defaultdict(list)
    for check, scheduled_ms in rows:
        found[check].append(scheduled_ms)
    return found


def queued(scene: Scene) -> set[tuple[str, int]]:
    """Check and time of every scheduled run so far, those that go on included."""
    with closing(sqlite3.connect(scene.database)) as file:
        return set(
            file.execute(
                "SELECT check_id, scheduled_ms FROM result"
                " UNION SELECT check_id, scheduled_ms FROM job"
            ).fetchall()
        )


def assert_no_hole(scene: Scene, *, checks: int) -> None:
    """From half a period after the first run, which is at once, a run stands in every slot.

    Only slots that went by while the service stood still or was dead are caught up on by one run.
    """
    found = series(scene)
    pauses = scene.pauses()
    assert len(found) == checks
    for times in found.values():
        first_ms = times[1] - times[0]
        assert first_ms >= PERIOD_MS // 2
        assert first_ms <= PERIOD_MS * 3 // 2 or _is_within(times[0], times[1], pauses)
        for sooner, later in pairwise(times[1:]):
            assert (later - sooner) % PERIOD_MS == 0, times
            assert later - sooner == PERIOD_MS or _is_within(sooner, later, pauses), times


def _is_within(sooner: int, later: int, pauses: list[tuple[int, int]]) -> bool:
    """Whether a pause of the service explains why no run stands between these two."""
    missing_ms = range(sooner + PERIOD_MS, later, PERIOD_MS)
    return all(
        any(began <= slot + PERIOD_MS and slot <= ended for began, ended in pauses)
        for slot in missing_ms
    )


async def test_every_slot_has_one_result_while_agents_and_service_are_killed(scene: Scene) -> None:
    agent = await scene.start_agent("first")
    await scene.check(count=8, each_10_s=True)
    await asyncio.sleep(2)
    await agent.kill()
    scene.leases_run_out()
    await scene.start_agent("second")
    await asyncio.sleep(2)
    await scene.service.kill()
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 24)
    ledger = await scene.settle(may_miss=True)
    assert_no_hole(scene, checks=8)
    assert ledger.runs >= 24


async def test_slots_that_no_agent_served_are_recorded_as_missed(scene: Scene) -> None:
    await scene.check(count=3, each_10_s=True)
    await scene.until(lambda: scene.ledger().missed >= 6)
    assert set(scene.ledger().causes) == {"no_agent"}
    assert_no_hole(scene, checks=3)
    await scene.start_agent()
    await scene.until(lambda: scene.ledger().final >= 3)
    await scene.settle(may_miss=True)
    assert_no_hole(scene, checks=3)


async def test_after_a_long_pause_of_the_service_each_check_catches_up_on_one_run(
    scene: Scene,
) -> None:
    await scene.start_agent()
    await scene.check(count=3, each_10_s=True)
    await scene.until(lambda: scene.ledger().final >= 3)
    await scene.service.kill()
    known = queued(scene)
    ran = {check: len(times) for check, times in series(scene).items()}
    move_plans_back(scene.database, by_ms=HOUR_MS)
    began_again_ms = time.time() * 1000
    await scene.start_service()
    await scene.until(lambda: all(len(series(scene)[check]) > ran[check] for check in ran))
    await scene.settle(may_miss=True)
    for check, times in series(scene).items():
        caught_up_on = [due for due in times if due <= began_again_ms and (check, due) not in known]
        assert len(caught_up_on) <= 1, times


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
    await scene.on_disk(5)
    await agent.kill()
    await scene.start_service()
    let_leases_last(scene.database)
    await scene.start_agent(module="agent")
    await scene.until(lambda: scene.ledger().final == 5)
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
    await scene.settle(may_miss=True)
    children: list[Child] = [*scene.agents, scene.service]
    for child in children:
        assert API_KEY not in child.output()
        assert "pl_ffff" not in child.output()
