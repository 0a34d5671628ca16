"""Every agent of a location dies, and one comes back."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faults.nursery import Nursery
from tests.faults.scene import Scene, set_scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@pytest.fixture
async def scene(tmp_path: Path, nurseries: Mapping[str, Nursery]) -> AsyncIterator[Scene]:
    """A location counts as unavailable after four seconds without an agent, not ten minutes."""
    async with set_scene(
        tmp_path, nurseries=nurseries, QUICK_UNAVAILABLE_S="4", QUICK_QUEUE_S="360"
    ) as made:
        yield made


async def the_location(scene: Scene) -> dict[str, Any]:
    (location,) = await scene.ask("GET", "/v1/private-locations")
    found: dict[str, Any] = location
    return found


async def test_scheduled_runs_at_a_location_that_was_left_are_missed_until_an_agent_comes(
    scene: Scene,
) -> None:
    agent = await scene.start_agent("first")
    checks = await scene.check(count=3, each_10_s=True)
    await scene.until(lambda: scene.ledger().final >= 3)
    assert (await the_location(scene))["lastSeen"]
    await agent.kill()
    scene.leases_run_out()
    await scene.trigger(checks)
    await scene.service.logged("location.unavailable")
    await scene.until(lambda: scene.ledger().missed >= 3)
    await scene.until(lambda: "no_agent" in scene.ledger().causes)
    await scene.start_agent("second")
    await scene.service.logged("location.available")
    await scene.until(lambda: scene.ledger().triggered == 3)
    ledger = await scene.settle(may_miss=True)
    assert ledger.final >= 6, "what somebody asked for has waited"


async def test_an_agent_that_waits_for_work_keeps_its_location_available(scene: Scene) -> None:
    await scene.start_agent()
    await scene.check(count=3)
    await scene.until(lambda: scene.ledger().final == 3)
    await seen_again(scene)
    await scene.service.kill()
    await scene.start_service()
    await seen_again(scene)
    await seen_again(scene)
    await scene.settle()


async def seen_again(scene: Scene) -> None:
    """Wait until the location's agent was seen later than now, and it is available."""
    before = (await the_location(scene))["lastSeen"]

    async def is_seen() -> bool:
        location = await the_location(scene)
        return bool(location["lastSeen"] > before and location["available"])

    await scene.until(is_seen)
