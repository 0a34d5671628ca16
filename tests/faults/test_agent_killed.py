"""An agent dies by SIGKILL, wherever it is in the life of a job."""

import asyncio
import signal

import pytest

from tests.faults.processes import AgentChild
from tests.faults.scene import CLAIM, RESULTS, Scene, leases_of
from tests.servers.fault_proxy import HELD_ANSWERS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


async def test_jobs_whose_claim_was_not_even_heard_run_elsewhere(scene: Scene) -> None:
    agent = await scene.start_agent("first")
    armed = scene.proxy.arm(HELD_ANSWERS, when=CLAIM, times=1_000)
    scene.proxy.reset_all()
    await scene.proxy.struck(armed)
    await scene.check(count=3)
    # The claim may have got the first one alone, and is repeated for as long as that is leased.
    await scene.until(lambda: scene.ledger().leased >= 1)
    await agent.kill()
    scene.proxy.heal()
    scene.leases_run_out()
    await scene.start_agent("second")
    ledger = await scene.settle()
    assert ledger.final >= 3


async def test_jobs_that_ran_when_their_agent_was_killed_run_again(scene: Scene) -> None:
    agent = await scene.start_agent("first")
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await agent.kill()
    scene.leases_run_out()
    scene.target.release()
    await scene.start_agent("second")
    ledger = await scene.settle()
    assert ledger.final >= 3
    assert ledger.late == 0


async def test_a_spooled_result_survives_its_agent(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.proxy.refuse()
    scene.target.release()
    await scene.on_disk(3)
    await agent.kill()
    await scene.proxy.accept()
    again = await scene.start_agent()
    await again.logged("spool.taken_over")
    await scene.settle()
    assert scene.target.seen["/held"] == 3, "the results were sent, not made again"
    await scene.until(lambda: list(scene.spool().iterdir()) == [])


async def test_a_result_whose_receipt_was_not_heard_counts_once(scene: Scene) -> None:
    agent = await scene.start_agent()
    await scene.check("/held", count=3)
    await scene.target.held(3)
    await scene.proxy.refuse()
    scene.target.release()
    await scene.on_disk(3)
    armed = scene.proxy.arm(HELD_ANSWERS, when=RESULTS)
    await scene.proxy.accept()
    await scene.proxy.struck(armed)
    await scene.until(lambda: scene.ledger().final >= 3)
    assert list(scene.spool().glob("*.jsonl")), "not settled, as far as the agent knows"
    await agent.kill()
    await scene.start_agent()
    ledger = await scene.settle()
    assert ledger.late == 0, "a result that is stored already is no history"
    assert scene.target.seen["/held"] == 3


@leases_of(60)  # what the one that stands still is dealt by a poll that was open comes back
async def test_an_agent_that_stood_still_past_its_lease_does_no_harm(scene: Scene) -> None:
    first = await scene.start_agent("first")
    await scene.check("/held", count=2)
    await scene.target.held(2)
    first.signal(signal.SIGSTOP)
    scene.leases_run_out()
    await scene.start_agent("second")
    await scene.target.held(4)
    scene.target.release()
    await scene.until(lambda: scene.ledger().final >= 2)
    first.signal(signal.SIGCONT)
    await scene.until(lambda: _given_up(first) + scene.ledger().late >= 2)
    ledger = await scene.settle()
    assert ledger.late <= 2


async def test_a_result_that_comes_after_its_job_went_to_another_agent_is_history(
    scene: Scene,
) -> None:
    await scene.start_agent("first")
    await scene.check("/held", count=2)
    await scene.target.held(2)
    await scene.proxy.refuse()
    scene.target.release()
    await scene.on_disk(2, name="first")
    scene.target.hold()
    scene.leases_run_out()
    await scene.start_agent("second", SERVICE_URL=scene.url)
    await scene.target.held(2)
    await scene.proxy.accept()
    await scene.until(lambda: scene.ledger().late == 2)
    assert scene.ledger().final == 0, "only the newest claim counts"
    ledger = await scene.settle()
    assert (ledger.final, ledger.late, ledger.most_claims) == (2, 2, 2)


async def test_three_agents_killed_at_random_moments_leave_no_hole(scene: Scene) -> None:
    checks = await scene.check(count=10, each_10_s=True)
    for moment in range(3):
        agent = await scene.start_agent(f"agent-{moment}")
        await scene.trigger(checks, times=3)
        await asyncio.sleep(0.05 * moment)
        await agent.kill()
    scene.leases_run_out()
    await scene.start_agent("last")
    ledger = await scene.settle(may_miss=True)
    assert ledger.final >= 90


def _given_up(agent: AgentChild) -> int:
    return len(agent.events("lease.lost") + agent.events("lease.ran_out"))
