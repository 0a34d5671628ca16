"""Two agents that take themselves for the same one, and two that share a folder."""

import pytest

from tests.faults.scene import Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

SAME = "00000000-0000-4000-8000-00000000abcd"


async def test_two_agents_with_the_same_id_run_each_job_once(scene: Scene) -> None:
    for name in ("first", "second"):
        await scene.start_agent(name, QUICK_AGENT_ID=SAME)
    checks = await scene.check(count=10)
    await scene.trigger(checks, times=5)
    await scene.until(lambda: scene.ledger().final == 60)
    ledger = await scene.settle()
    assert ledger.most_claims == 1
    assert scene.target.seen["/"] == 60


async def test_an_agent_outlives_another_one_of_the_same_id(scene: Scene) -> None:
    first = await scene.start_agent("first", QUICK_AGENT_ID=SAME)
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.start_agent("second", QUICK_AGENT_ID=SAME)
    await first.kill()
    scene.leases_run_out()
    await scene.until(lambda: scene.target.seen["/held"] >= 6)
    ledger = await scene.settle()
    assert ledger.final == 3


async def test_two_agents_that_share_a_folder_deliver_each_result_once(scene: Scene) -> None:
    for _ in range(2):
        await scene.start_agent("shared")
    await scene.check("/held", count=20)
    await scene.target.held(20)
    await scene.proxy.refuse()
    scene.target.release()
    await scene.until(lambda: list(scene.spool("shared").glob("*.jsonl")))
    ledger = await scene.settle()
    assert ledger.final == 20
    await scene.until(lambda: list(scene.spool("shared").iterdir()) == [])
