"""More runs than any agent has room for: what nobody can take is missed, and says why."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.faults.nursery import Nursery
from tests.faults.processes import AgentChild
from tests.faults.scene import Scene, set_scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

RUNS = 10


@pytest.fixture
async def scene(tmp_path: Path, nurseries: Mapping[str, Nursery]) -> AsyncIterator[Scene]:
    """A run is given up after three deliveries, as in the service's own figures."""
    async with set_scene(tmp_path, nurseries=nurseries, QUICK_DELIVERIES="3") as made:
        yield made


async def hold_runs(scene: Scene) -> None:
    """All of them wait before any agent comes, which would ask for as many as there are then."""
    await scene.check("/held", count=RUNS)
    await scene.until(lambda: scene.ledger().open_runs == RUNS)


async def start_small_agent(scene: Scene, name: str) -> AgentChild:
    """One slot, and it asks for as many jobs as there are."""
    return await scene.start_agent(name, UPTIME_CONCURRENCY="1", QUICK_GREED=str(RUNS))


async def gave_back(scene: Scene, agent: AgentChild, count: int) -> None:
    async def has() -> bool:
        return await agent.metric("released_total") == count

    await scene.until(has)


async def test_what_three_agents_had_no_room_for_is_missed_as_overloaded(scene: Scene) -> None:
    await hold_runs(scene)
    for number, left in enumerate((9, 8, 7), start=1):
        agent = await start_small_agent(scene, f"agent-{number}")
        await scene.target.held(number)
        await gave_back(scene, agent, left)
    await scene.until(lambda: scene.ledger().causes == {"overloaded": 7})
    assert scene.ledger().leased == 3
    ledger = await scene.settle(may_miss=True)
    assert (ledger.final, ledger.missed, ledger.causes) == (3, 7, {"overloaded": 7})


async def test_runs_that_one_agent_has_no_room_for_are_done_by_the_next(scene: Scene) -> None:
    await hold_runs(scene)
    agent = await start_small_agent(scene, "small")
    await scene.target.held(1)
    await gave_back(scene, agent, RUNS - 1)
    await scene.start_agent("large")
    await scene.target.held(RUNS)
    ledger = await scene.settle()
    assert (ledger.final, ledger.missed) == (RUNS, 0)
