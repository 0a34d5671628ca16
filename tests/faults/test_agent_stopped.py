"""SIGTERM: once, twice, three times, and while something is under way."""

import signal

import pytest

from tests.faults.scene import RELEASE, RESULTS, Scene, leases_of
from tests.servers.fault_proxy import BLACK_HOLE, HELD_ANSWERS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

LONGER_THAN_WE_WAIT_S = 300


async def test_the_first_signal_lets_runs_end_and_delivers_them(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=5)
    await scene.target.held(5)
    agent.signal(signal.SIGTERM)
    await agent.logged("agent.draining")
    assert await agent.health("/-/readiness") == 503
    assert await agent.health("/-/liveness") == 200
    scene.target.release()
    assert await agent.ended() == 0
    ledger = scene.ledger()
    assert (ledger.final, ledger.most_claims) == (5, 1)
    await scene.settle()


@leases_of(LONGER_THAN_WE_WAIT_S)
async def test_the_second_signal_gives_running_jobs_to_another_agent_at_once(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    await scene.start_agent("second")
    first.signal(signal.SIGTERM)
    await first.logged("agent.draining")
    first.signal(signal.SIGTERM)
    assert await first.ended() == 0
    await scene.until(lambda: scene.target.seen["/held"] == 10)
    scene.target.release()
    await scene.until(lambda: scene.ledger().final == 5)
    await scene.settle()


async def test_after_the_third_signal_the_leases_run_out(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    scene.proxy.arm(BLACK_HOLE, when=RELEASE, times=100)
    for event in ("agent.draining", "agent.cancelling"):
        first.signal(signal.SIGTERM)
        await first.logged(event)
    first.signal(signal.SIGTERM)
    assert await first.ended() == 1
    scene.leases_run_out()
    await scene.start_agent("second")
    await scene.until(lambda: scene.target.seen["/held"] == 10)
    ledger = await scene.settle()
    assert ledger.final == 5


async def test_an_agent_that_stops_without_its_service_leaves_results_to_the_next(
    scene: Scene,
) -> None:
    first = await scene.start_agent(QUICK_FLUSH_S="1")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    await scene.proxy.refuse()
    first.signal(signal.SIGTERM)
    scene.target.release()
    assert await first.ended() == 0
    assert first.events("agent.stopped")[0]["results_left"] == 5
    await scene.proxy.accept()
    await scene.start_agent()
    await scene.until(lambda: scene.ledger().final == 5)
    await scene.settle()
    assert scene.target.seen["/held"] == 5


async def test_an_agent_that_stops_while_its_results_wait_for_a_receipt_counts_once(
    scene: Scene,
) -> None:
    first = await scene.start_agent(QUICK_FLUSH_S="1")
    await scene.check("/held", count=5)
    await scene.target.held(5)
    armed = scene.proxy.arm(HELD_ANSWERS, when=RESULTS)
    scene.target.release()
    await scene.proxy.struck(armed)
    assert await first.stop() == 0
    await scene.start_agent()
    ledger = await scene.settle()
    assert (ledger.final, ledger.late) == (5, 0)
