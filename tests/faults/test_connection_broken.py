"""What is between agent and service breaks, in every way that networks know."""

import asyncio

import pytest

from tests.faults.processes import AgentChild
from tests.faults.scene import CLAIM, RENEW, RESULTS, Scene, leases_of
from tests.servers.fault_proxy import (
    BLACK_HOLE,
    HALF_OPEN,
    LOST_ANSWER,
    OPEN,
    RESET,
    Fault,
    http_answer,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


async def test_a_claim_whose_answer_was_cut_after_the_commit_costs_no_lease(scene: Scene) -> None:
    await scene.check(count=3)
    await scene.until(lambda: scene.ledger().open_runs == 3)
    armed = scene.proxy.arm(LOST_ANSWER, when=CLAIM)
    await scene.start_agent()
    await scene.proxy.struck(armed)
    await scene.until(lambda: scene.ledger().final >= 3)
    ledger = await scene.settle()
    assert scene.target.seen["/"] == ledger.final
    assert ledger.most_claims == 1


async def test_results_whose_answer_was_cut_after_the_commit_count_once(scene: Scene) -> None:
    await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    armed = scene.proxy.arm(LOST_ANSWER, when=RESULTS)
    scene.target.release()
    await scene.proxy.struck(armed)
    ledger = await scene.settle()
    assert ledger.late == 0
    assert scene.target.seen["/held"] == ledger.final


@pytest.mark.parametrize("passed", [0, 20, 400])
async def test_results_that_are_cut_on_their_way_arrive_once(scene: Scene, passed: int) -> None:
    await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    armed = scene.proxy.arm(Fault(cut_after=passed), when=RESULTS, times=2)
    scene.target.release()
    await scene.proxy.struck(armed)
    await scene.proxy.struck(armed)
    ledger = await scene.settle()
    assert scene.target.seen["/held"] == ledger.final


@leases_of(20)
async def test_one_failed_renewal_ends_no_run(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    for fault in (RESET, OPEN):
        await scene.proxy.struck(scene.proxy.arm(fault, when=RENEW))
    scene.target.release()
    ledger = await scene.settle()
    assert await agent.metric("lease_renew_failures_total") >= 1, agent.output()
    assert scene.target.seen["/held"] == ledger.final
    assert ledger.most_claims == 1


@leases_of(6)
async def test_a_run_whose_lease_cannot_be_renewed_is_given_up_and_done_again(
    scene: Scene,
) -> None:
    agent = await scene.start_agent("first")
    await scene.check("/held", count=2)
    await scene.target.held(2)
    scene.proxy.arm(RESET, when=RENEW, times=1_000)
    scene.proxy.arm(RESET, when=CLAIM, times=1_000)
    await scene.until(lambda: agent.events("lease.ran_out"))
    await scene.until(lambda: scene.target.waiting["/held"] == 0)
    scene.proxy.heal()
    await scene.target.held(2)
    ledger = await scene.settle()
    assert ledger.most_claims >= 2


async def test_a_storm_of_429_is_waited_out_as_long_as_it_asks(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=10)
    await scene.target.held(10)
    scene.proxy.fault = http_answer(429, retry_after=2)
    scene.target.release()
    await scene.until(lambda: _told_to_wait(agent, "claim.failed"))
    await scene.until(lambda: len(_told_to_wait(agent, "results.not_delivered")) >= 2)
    waits = _told_to_wait(agent, "results.not_delivered") + _told_to_wait(agent, "claim.failed")
    assert min(waits) >= 2
    ledger = await scene.settle()
    assert ledger.final >= 10
    assert ledger.late == 0


def _told_to_wait(agent: AgentChild, event: str) -> list[float]:
    """How long the agent waits each time that the service says it is asked too often."""
    return [line["wait_s"] for line in agent.events(event) if "429" in line["because"]]


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_5xx_for_longer_than_a_lease_loses_nothing(scene: Scene, status: int) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=10)
    await scene.target.held(10)
    scene.proxy.fault = http_answer(status)
    scene.target.release()
    await agent.logged("results.not_delivered", count=3)
    scene.leases_run_out()
    await scene.settle()
    assert agent.is_alive


async def test_refused_connections_lose_nothing(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=10)
    await scene.target.held(10)
    await scene.proxy.refuse()
    scene.target.release()
    await agent.logged("results.not_delivered", count=3)
    ledger = await scene.settle()
    assert ledger.final >= 10


@leases_of(6)
async def test_a_black_hole_is_noticed_and_left(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    scene.proxy.fault = BLACK_HOLE
    await agent.logged("claim.failed")
    await agent.logged("leases.renewal_failed")
    scene.proxy.heal()
    scene.target.release()
    await scene.until(lambda: scene.ledger().final >= 3)
    await scene.settle()


async def test_connections_whose_other_end_is_gone_are_noticed(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.proxy.struck(scene.proxy.arm(OPEN, when=CLAIM))
    scene.proxy.fault = HALF_OPEN
    await asyncio.sleep(0.2)
    scene.proxy.fault = OPEN
    await scene.check(count=3)
    await agent.logged("claim.failed")
    await scene.until(lambda: scene.ledger().final >= 3)
    await scene.settle()


@pytest.mark.parametrize(
    "fault",
    [Fault(latency_s=0.3), Fault(drip_bytes=1024, drip_s=0.02)],
    ids=["late", "drop by drop"],
)
async def test_a_slow_connection_runs_every_check_once(scene: Scene, fault: Fault) -> None:
    scene.proxy.fault = fault
    await scene.start_agent()
    await scene.check(count=10)
    await scene.until(lambda: scene.ledger().final >= 10)
    ledger = await scene.settle()
    assert scene.target.seen["/"] == ledger.final
    assert ledger.most_claims == 1
