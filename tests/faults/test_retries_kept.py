"""Runs that are tried again while things break: each attempt counts once, each run ends once."""

import pytest

from tests.faults.scene import Scene

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

CHECKS = 4


async def hold_first_attempts(scene: Scene) -> None:
    for number in range(CHECKS):
        await scene.check(f"/held/flaky/{number}", retries=5)
    for number in range(CHECKS):
        await scene.target.held(path=f"/held/flaky/{number}")


def seen(scene: Scene) -> list[int]:
    return [scene.target.seen[f"/held/flaky/{number}"] for number in range(CHECKS)]


@pytest.mark.parametrize("side", ["begun", "committed"])
async def test_attempts_that_the_service_died_on_count_once(scene: Scene, side: str) -> None:
    await scene.start_agent()
    await hold_first_attempts(scene)
    scene.kill_service_at(f"results.{side}")
    scene.target.release()
    await scene.service_died()
    assert (scene.ledger().attempts == 0) is (side == "begun")
    await scene.start_service()
    await scene.until(lambda: scene.ledger().final >= CHECKS)
    ledger = await scene.settle()
    assert (ledger.final, ledger.attempts) == (CHECKS, 2 * CHECKS)
    assert seen(scene) == [3] * CHECKS, "no attempt was made twice"


async def test_attempts_of_an_agent_that_was_killed_are_made_by_another(scene: Scene) -> None:
    agent = await scene.start_agent("first")
    await hold_first_attempts(scene)
    await agent.kill()
    scene.leases_run_out()
    scene.target.release()
    await scene.start_agent("second")
    await scene.until(lambda: scene.ledger().final >= CHECKS)
    ledger = await scene.settle()
    # What the first one was answered is lost with it: the page failed once more than was told.
    assert (ledger.final, ledger.attempts) == (CHECKS, CHECKS)
    assert seen(scene) == [3] * CHECKS


async def test_a_retry_that_waits_survives_a_crash_of_everybody(scene: Scene) -> None:
    agent = await scene.start_agent("first")
    await hold_first_attempts(scene)
    scene.target.release()
    await scene.until(lambda: scene.ledger().attempts >= 1)
    await scene.service.kill()
    await agent.kill()
    await scene.start_service()
    scene.leases_run_out()
    await scene.start_agent("second")
    await scene.until(lambda: scene.ledger().final >= CHECKS)
    ledger = await scene.settle()
    assert ledger.final == CHECKS
    assert CHECKS <= ledger.attempts <= 2 * CHECKS
