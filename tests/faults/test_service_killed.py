"""The service dies by SIGKILL at each step of a job's life, and is started again."""

import asyncio
import signal

import pytest

from tests.faults.passing_time import make_due
from tests.faults.processes import AgentChild
from tests.faults.scene import RESULTS, Scene, leases_of
from tests.servers.fault_proxy import Fault

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

BOTH_SIDES_OF_THE_COMMIT = pytest.mark.parametrize("side", ["begun", "committed"])


@BOTH_SIDES_OF_THE_COMMIT
async def test_a_claim_that_the_service_died_on_is_dealt_once(scene: Scene, side: str) -> None:
    await scene.check(count=3)
    await scene.until(lambda: scene.ledger().open_runs == 3)
    scene.kill_service_at(f"claim.{side}")
    await scene.start_agent()
    await scene.service_died()
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 3)
    ledger = await scene.settle()
    assert scene.target.seen["/"] == ledger.final, "the lost answer cost no second run"


@BOTH_SIDES_OF_THE_COMMIT
async def test_results_that_the_service_died_on_count_once(scene: Scene, side: str) -> None:
    await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    scene.kill_service_at(f"results.{side}")
    scene.target.release()
    await scene.service_died()
    assert (scene.ledger().final == 0) is (side == "begun")
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 3)
    ledger = await scene.settle()
    assert ledger.late == 0
    assert scene.target.seen["/held"] == ledger.final


@BOTH_SIDES_OF_THE_COMMIT
async def test_a_schedule_that_the_service_died_on_starts_its_run_once(
    scene: Scene, side: str
) -> None:
    await scene.start_agent()
    await scene.check()
    await scene.until(lambda: scene.ledger().final == 1)
    scene.kill_service_at(f"tick.{side}")
    make_due(scene.database)
    await scene.service_died()
    assert scene.ledger().runs == (1 if side == "begun" else 2)
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 2)
    ledger = await scene.settle()
    assert scene.target.seen["/"] == ledger.final


@BOTH_SIDES_OF_THE_COMMIT
async def test_jobs_whose_return_the_service_died_on_run_elsewhere(scene: Scene, side: str) -> None:
    agent = await scene.start_agent("first")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    scene.kill_service_at(f"release.{side}")
    agent.signal(signal.SIGTERM)
    await agent.logged("agent.draining")
    agent.signal(signal.SIGTERM)
    await scene.service_died()
    await scene.start_service()
    assert await agent.ended() == 0
    scene.leases_run_out()
    await scene.start_agent("second")
    ledger = await scene.settle()
    assert ledger.final >= 3


@BOTH_SIDES_OF_THE_COMMIT
async def test_lost_leases_that_the_service_died_on_are_found_again(
    scene: Scene, side: str
) -> None:
    agent = await scene.start_agent("first")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await agent.kill()
    scene.kill_service_at(f"reap.{side}")
    scene.leases_run_out()
    await scene.service_died()
    scene.target.release()
    await scene.start_service()
    scene.leases_run_out()
    await scene.start_agent("second")
    ledger = await scene.settle()
    assert ledger.final >= 3


async def test_half_a_submission_counts_as_none(scene: Scene) -> None:
    await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    armed = scene.proxy.arm(Fault(stops_after=200), when=RESULTS)
    scene.target.release()
    await scene.proxy.struck(armed)
    await asyncio.sleep(0.5)
    await scene.service.kill()
    assert scene.ledger().final == 0
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 3)
    ledger = await scene.settle()
    assert scene.target.seen["/held"] == ledger.final


async def test_a_service_that_dies_again_and_again_loses_nothing(scene: Scene) -> None:
    for number in range(2):
        await scene.start_agent(f"agent-{number}")
    checks = await scene.check(count=5, each_10_s=True)
    for moment in range(3):
        await scene.trigger(checks, times=6)
        await asyncio.sleep(0.05 * moment)
        await scene.service.kill()
        await scene.start_service()
    ledger = await scene.settle(may_miss=True)
    assert ledger.final >= 90


@leases_of(15)
async def test_agents_outlive_a_service_that_is_away_for_longer_than_a_lease(scene: Scene) -> None:
    agent = await scene.start_agent(AGENT_READY_GRACE_S="1")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.service.kill()
    await scene.until(lambda: agent.events("leases.renewal_failed"))
    scene.target.release()
    await scene.on_disk(3)
    await scene.until(lambda: _reads(agent, 503))
    assert await agent.health("/-/liveness") == 200
    scene.leases_run_out()
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= 3)
    ledger = await scene.settle()
    assert ledger.late == 0
    await scene.until(lambda: _reads(agent, 200))


async def test_results_that_waited_for_the_service_come_before_a_second_run(scene: Scene) -> None:
    await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.service.kill()
    scene.target.release()
    await scene.on_disk(3)
    scene.leases_run_out()
    scene.proxy.arm(Fault(latency_s=1), when=RESULTS)
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final == 3)
    ledger = await scene.settle()
    assert (ledger.late, ledger.most_claims) == (0, 1)
    assert scene.target.seen["/held"] == 3


async def _reads(agent: AgentChild, status: int) -> bool:
    """Whether readiness says so."""
    return await agent.health("/-/readiness") == status
